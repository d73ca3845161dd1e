package avrofile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"slices"

	"github.com/ulikunitz/xz/lzma"
)

// The container is read here and not by the package that reads LZMA2, because a block of it may declare a window of 4 GiB, which
// would be allocated. A block of Avro needs no window larger than itself (The .xz File Format, version 1.2.1).

var errXZ = errors.New("xz data is damaged")

const (
	xzMagic  = "\xfd7zXZ\x00"
	xzHeader = 12 // magic, flags, checksum of the flags
	lzma2    = 0x21
)

// xzChecks are the checks of a block's content, by the number in the header.
var xzChecks = map[byte]func() hash.Hash{
	0:  nil,
	1:  func() hash.Hash { return crc32.NewIEEE() },
	4:  func() hash.Hash { return crc64.New(crc64.MakeTable(crc64.ECMA)) },
	10: sha256.New,
}

// unxz reads a stream of blocks. The index behind them says nothing that they do not.
func unxz(src []byte, most int64) ([]byte, error) {
	if len(src) < xzHeader || string(src[:6]) != xzMagic || crc32.ChecksumIEEE(src[6:8]) != binary.LittleEndian.Uint32(src[8:]) {
		return nil, errXZ
	}
	check, known := xzChecks[src[7]]
	if !known || src[6] != 0 {
		return nil, fmt.Errorf("xz check %d is not known", src[7])
	}
	in := bytes.NewReader(src[xzHeader:])
	var out []byte
	for {
		window, more, err := xzBlockHeader(in)
		if err != nil || !more {
			return out, err
		}
		block, err := xzBlock(in, min(max(window, lzma.MinDictCap), max(most, lzma.MinDictCap)), most-int64(len(out))+1, check)
		if out = append(out, block...); err != nil || int64(len(out)) > most {
			return out, err
		}
	}
}

// xzBlockHeader reads a block's header: its window, and whether there is a block at all.
func xzBlockHeader(in *bytes.Reader) (window int64, more bool, err error) {
	words, err := in.ReadByte()
	if err != nil {
		return 0, false, errXZ
	}
	if words == 0 {
		return 0, false, nil
	}
	header := make([]byte, (int(words)+1)*4)
	header[0] = words
	if _, err := io.ReadFull(in, header[1:]); err != nil {
		return 0, false, errXZ
	}
	end := len(header) - 4
	if crc32.ChecksumIEEE(header[:end]) != binary.LittleEndian.Uint32(header[end:]) {
		return 0, false, errXZ
	}
	flags, fields := header[1], bytes.NewReader(header[2:end])
	if flags&0x3f != 0 {
		return 0, false, errors.New("xz filters other than LZMA2 are not read")
	}
	for _, size := range []byte{0x40, 0x80} { // packed and unpacked, if they are said
		if flags&size != 0 {
			binary.ReadUvarint(fields) // one that is cut off leaves no filter
		}
	}
	var filter [3]byte // what it is, the length of its properties, and they
	if _, err := io.ReadFull(fields, filter[:]); err != nil || filter[0] != lzma2 || filter[1] != 1 {
		return 0, false, errors.New("xz filters other than LZMA2 are not read")
	}
	window, err = lzma.DecodeDictCap(filter[2])
	return window, true, err
}

// xzBlock reads up to most bytes of a block; all of it is behind in then, unless there is more than that.
func xzBlock(in *bytes.Reader, window, most int64, check func() hash.Hash) ([]byte, error) {
	before := in.Len()
	packed, err := lzma.Reader2Config{DictCap: int(window)}.NewReader2(in)
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(packed, most))
	if err != nil || int64(len(out)) == most {
		return out, err
	}
	if padding := -(before - in.Len()) & 3; padding > 0 {
		in.Seek(int64(padding), io.SeekCurrent)
	}
	if check == nil {
		return out, nil
	}
	sum := check()
	sum.Write(out)
	want := sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in, got); err != nil {
		return out, errXZ
	}
	if len(got) < sha256.Size { // numbers are little endian, as all of the format is
		slices.Reverse(got)
	}
	if !bytes.Equal(got, want) {
		return out, errXZ
	}
	return out, nil
}
