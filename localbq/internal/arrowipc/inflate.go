package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codecs of Message.fbs, CompressionType.
const (
	codecLZ4Frame = 0
	codecZstd     = 1
)

// maxInflated is the most that the buffers of one batch may yield: what MaxRows rows of 24 bytes take. A request of a few
// bytes could otherwise ask for all of the memory.
const maxInflated = 24 * MaxRows

// inflater decompresses the buffers of one batch.
type inflater struct {
	codec uint8
	total int64 // yielded so far
}

// buffer is a buffer decompressed: eight bytes of length, or -1 for bytes that are not compressed, and what follows.
func (f *inflater) buffer(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("%d bytes are too few for a compressed buffer", len(b))
	}
	length := int64(binary.LittleEndian.Uint64(b))
	b = b[8:]
	switch {
	case length == -1:
		return b, nil
	case length < 0:
		return nil, fmt.Errorf("it says it has %d bytes uncompressed", length)
	case length > maxInflated-f.total:
		return nil, fmt.Errorf("the buffers take more than %d bytes uncompressed", int64(maxInflated))
	}
	f.total += length
	out, err := f.read(b, length)
	if err != nil {
		return nil, fmt.Errorf("it does not decompress to %d bytes: %w", length, err)
	}
	return out, nil
}

var zstds = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), // no goroutines with 1
		zstd.WithDecoderMaxMemory(maxInflated), zstd.WithDecoderMaxWindow(maxInflated))
	if err != nil {
		panic(err) // only of options
	}
	return d
}}

// read grows with what comes, not with what is declared.
func (f *inflater) read(b []byte, length int64) ([]byte, error) {
	var from io.Reader = lz4.NewReader(bytes.NewReader(b))
	if f.codec == codecZstd {
		if err := checkWindow(b, length); err != nil {
			return nil, err
		}
		d := zstds.Get().(*zstd.Decoder)
		defer zstds.Put(d)
		if err := d.Reset(bytes.NewReader(b)); err != nil {
			return nil, err
		}
		from = d
	}
	var out bytes.Buffer
	out.Grow(int(min(length, 4*int64(len(b))+bytes.MinRead)))
	n, err := io.Copy(&out, io.LimitReader(from, length+1))
	switch {
	case err != nil:
		return nil, err
	case n < length:
		return nil, io.ErrUnexpectedEOF
	case n > length:
		return nil, errors.New("there is more")
	}
	return out.Bytes(), nil
}

// ordinaryWindow is the window that every decoder is to support (RFC 8878, section 3.1.1.1.2), and the largest that writers of
// the usual levels ask for. Its memory is taken before any byte is there.
const ordinaryWindow = 8 << 20

func checkWindow(b []byte, length int64) error {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return err
	}
	if most := uint64(max(length, ordinaryWindow)); h.WindowSize > most {
		return fmt.Errorf("the frame asks for a window of %d bytes, at most %d are allowed", h.WindowSize, most)
	}
	return nil
}
