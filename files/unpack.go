package files

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

const (
	packedGzip = "gzip"
	packedZstd = "zstd"
)

var magic = map[string][]byte{
	packedGzip: {0x1f, 0x8b},
	packedZstd: {0x28, 0xb5, 0x2f, 0xfd},
}

// sniff says how f is compressed, by its first bytes, and goes back to the start. Pipes and other files that cannot go
// back are taken as uncompressed.
func sniff(f *os.File) (string, error) {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil
	}
	for name, m := range magic {
		if bytes.HasPrefix(head[:n], m) {
			return name, nil
		}
	}
	return "", nil
}

// counted counts the bytes read through it, and remembers what went wrong with reading them.
type counted struct {
	r   io.Reader
	n   int64
	err error // nil at the end of the input too
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// Seek goes to an offset of what is read.
func (c *counted) Seek(offset int64, whence int) (int64, error) {
	s, ok := c.r.(io.Seeker)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return s.Seek(offset, whence)
}

// unpack reads what r holds in the clear.
func unpack(r io.Reader, packed string) (io.ReadCloser, error) {
	switch packed {
	case packedGzip:
		return gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
	case packedZstd:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}
