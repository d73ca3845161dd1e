package ocf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzCodec reads the container of LZMA2 itself (The .xz File Format, version 1.2.1): a block of it may ask for a window of 4 GiB,
// which no block of a file needs, and the usual reader allocates.
type xzCodec struct{}

var (
	errXZ       = errors.New("it is no xz")
	errXZFilter = errors.New("it has other filters than LZMA2")
	errXZSum    = errors.New("the checksum is another one")
)

func (xzCodec) unpack(buf, raw []byte, limit int) ([]byte, error) {
	const header = 12 // six bytes of magic, two of flags, four of their checksum
	if len(raw) < header || !bytes.HasPrefix(raw, []byte("\xfd7zXZ\x00")) || raw[6] != 0 ||
		crc32.ChecksumIEEE(raw[6:8]) != binary.LittleEndian.Uint32(raw[8:]) {
		return nil, errXZ
	}
	sum, err := xzSum(raw[7])
	if err != nil {
		return nil, err
	}
	in := bytes.NewReader(raw[header:])
	for {
		window, err := xzWindow(in)
		if err != nil || window == 0 {
			return buf, err // the index that follows says nothing new
		}
		if buf, err = xzBlock(buf, in, window, limit, sum); err != nil {
			return nil, err
		}
	}
}

// xzSum is what a block's content is checked by; nil is nothing.
func xzSum(kind byte) (hash.Hash, error) {
	switch kind {
	case 0:
		return nil, nil
	case 1:
		return crc32.NewIEEE(), nil
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), nil
	case 10:
		return sha256.New(), nil
	}
	return nil, errors.New("it is checked in a way that is not known")
}

// xzWindow reads a block's header and answers the window it asks for; 0 where the index follows.
func xzWindow(in *bytes.Reader) (int64, error) {
	first, err := in.ReadByte()
	if err != nil {
		return 0, errXZ
	}
	if first == 0 {
		return 0, nil
	}
	h := make([]byte, 4*(int(first)+1))
	h[0] = first
	if _, err := io.ReadFull(in, h[1:]); err != nil {
		return 0, errXZ
	}
	body, sum := h[:len(h)-4], h[len(h)-4:]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(sum) {
		return 0, errXZSum
	}
	flags, rest := body[1], body[2:]
	if flags&0x3f != 0 {
		return 0, errXZFilter
	}
	for _, said := range []byte{0x40, 0x80} { // the sizes, packed and not
		if flags&said == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, errXZ
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return 0, errXZFilter
	}
	return lzma.DecodeDictCap(rest[2])
}

func xzBlock(buf []byte, in *bytes.Reader, window int64, limit int, sum hash.Hash) ([]byte, error) {
	start, before := len(buf), in.Len()
	// No content reaches further back than it is long.
	window = max(min(window, int64(limit)), lzma.MinDictCap)
	r, err := lzma.Reader2Config{DictCap: int(window)}.NewReader2(in)
	if err != nil {
		return nil, err
	}
	if buf, err = drain(buf, r, limit); err != nil {
		return nil, err
	}
	padding := -(before - in.Len()) & 3
	check := make([]byte, padding)
	if sum != nil {
		check = make([]byte, padding+sum.Size())
	}
	if _, err := io.ReadFull(in, check); err != nil {
		return nil, errXZ
	}
	if sum == nil {
		return buf, nil
	}
	sum.Reset()
	sum.Write(buf[start:])
	want := sum.Sum(nil)
	if len(want) < sha256.Size { // numbers are written the other way round
		for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
			want[i], want[j] = want[j], want[i]
		}
	}
	if !bytes.Equal(want, check[padding:]) {
		return nil, errXZSum
	}
	return buf, nil
}
