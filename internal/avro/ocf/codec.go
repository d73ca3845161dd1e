package ocf

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// codec unpacks blocks. It is used from one goroutine.
type codec interface {
	// unpack appends what raw holds to buf, or answers errTooLarge where that is more than limit bytes. The answer may be raw.
	unpack(buf, raw []byte, limit int) ([]byte, error)
}

var errTooLarge = errors.New("more bytes than a block may have")

func codecOf(name string) (codec, error) {
	switch name {
	case "null":
		return plain{}, nil
	case "deflate":
		return &inflater{}, nil
	case "snappy":
		return snappyCodec{}, nil
	case "zstandard":
		return &zstdCodec{}, nil
	case "bzip2":
		return streamed(func(r io.Reader) io.Reader { return bzip2.NewReader(r) }), nil
	case "xz":
		return xzCodec{}, nil
	}
	return nil, fmt.Errorf("the Avro file is packed with %q: expected null, deflate, snappy, zstandard, bzip2 or xz", name)
}

type plain struct{}

func (plain) unpack(_, raw []byte, _ int) ([]byte, error) { return raw, nil }

// streamed is a codec of which there is a reader.
type streamed func(io.Reader) io.Reader

func (s streamed) unpack(buf, raw []byte, limit int) ([]byte, error) {
	return drain(buf, s(bytes.NewReader(raw)), limit)
}

// drain appends what r holds, up to the limit.
func drain(buf []byte, r io.Reader, limit int) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(512, len(buf)))
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// inflater keeps its window from block to block.
type inflater struct{ r io.ReadCloser }

func (c *inflater) unpack(buf, raw []byte, limit int) ([]byte, error) {
	in := bytes.NewReader(raw)
	if c.r == nil {
		c.r = flate.NewReader(in)
	} else if err := c.r.(flate.Resetter).Reset(in, nil); err != nil {
		return nil, err
	}
	return drain(buf, c.r, limit)
}

// snappyCodec is followed by the CRC-32 of what is packed, most significant byte first.
type snappyCodec struct{}

func (snappyCodec) unpack(buf, raw []byte, limit int) ([]byte, error) {
	if len(raw) < 4 {
		return nil, errors.New("the checksum is missing")
	}
	raw, sum := raw[:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
	n, err := snappy.DecodedLen(raw)
	if err != nil {
		return nil, err
	}
	// A copy of 64 bytes takes three: what says it will be more than this is no snappy.
	if n > limit {
		return nil, errTooLarge
	}
	if n > 32*len(raw)+64 {
		return nil, errors.New("it says more bytes than it can hold")
	}
	out, err := snappy.Decode(buf[:cap(buf)], raw)
	if err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(out) != sum {
		return nil, errors.New("the checksum is another one")
	}
	return out, nil
}

// zstdCodec keeps its decoder from block to block. It has no goroutines.
type zstdCodec struct{ r *zstd.Decoder }

func (c *zstdCodec) unpack(buf, raw []byte, limit int) ([]byte, error) {
	if c.r == nil {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(max(uint64(limit), zstd.MinWindowSize)), zstd.WithDecoderMaxMemory(max(uint64(limit), 1<<20)))
		if err != nil {
			return nil, err
		}
		c.r = r
	}
	out, err := c.r.DecodeAll(raw, buf)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, errTooLarge
	}
	return out, err
}
