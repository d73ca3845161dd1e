package export

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packer packs a chunk by itself: members of gzip and frames of zstd that follow each other are one file to every reader, and none
// depends on the one before, so that a file can be cut between two.
type packer interface{ pack(text []byte) []byte }

func newPacker(c compression) (packer, error) {
	switch c {
	case gz:
		w, err := gzip.NewWriterLevel(nil, gzip.DefaultCompression)
		return &gzipPacker{w}, err
	case zst:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return zstdPacker{w}, err
	}
	return nil, nil
}

type gzipPacker struct{ w *gzip.Writer }

func (p *gzipPacker) pack(text []byte) []byte {
	var out bytes.Buffer
	p.w.Reset(&out)
	_, _ = p.w.Write(text) // a bytes.Buffer takes everything
	_ = p.w.Close()
	return out.Bytes()
}

type zstdPacker struct{ w *zstd.Encoder }

func (p zstdPacker) pack(text []byte) []byte { return p.w.EncodeAll(text, nil) }
