package avrofile

import (
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
)

// unpacker is a codec that only reads: a name, and how to read what a block packed with it holds.
type unpacker struct {
	name string
	// unpack answers at most one byte more than most.
	unpack func(src []byte, most int64) ([]byte, error)
}

var (
	bzip2Codec = unpacker{"bzip2", func(src []byte, most int64) ([]byte, error) {
		return io.ReadAll(io.LimitReader(bzip2.NewReader(bytes.NewReader(src)), most+1))
	}}
	xzCodec = unpacker{"xz", unxz}
)

func (u unpacker) Name() string { return u.name }
func (u unpacker) Close() error { return nil }

func (u unpacker) Compress([]byte) ([]byte, error) {
	return nil, fmt.Errorf("%s is only read", u.name)
}

func (u unpacker) Decompress(src []byte) ([]byte, error) { return u.DecompressBounded(src, 64<<20) }

func (u unpacker) DecompressBounded(src []byte, most int64) ([]byte, error) {
	out, err := u.unpack(src, most)
	if err == nil && int64(len(out)) > most {
		err = fmt.Errorf("a block holds more than %d bytes", most)
	}
	return out, err
}
