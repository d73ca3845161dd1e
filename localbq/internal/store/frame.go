package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Files of the store are a magic of eight bytes and frames: length of the payload and its CRC32C, four bytes each, then the
// payload, padded with zeros to a multiple of eight. So every payload starts at a multiple of eight.

const (
	magicBytes  = 8
	headerBytes = 8
	// maxFrame is far above what a request can make, and keeps a damaged length from asking for memory.
	maxFrame = 1 << 30
	// maxWrite is the most bytes of rows in one frame, which leaves room for what stands beside them.
	maxWrite = maxFrame - 64<<20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is a frame that was not written to its end.
var errTorn = errors.New("frame is not whole")

// beginFrame makes room for a header. The payload is appended behind it, then endFrame is called with the same start.
func beginFrame(buf []byte) (out []byte, start int) {
	return append(buf, make([]byte, headerBytes)...), len(buf)
}

// endFrame pads the payload and fills in the header.
func endFrame(buf []byte, start int) []byte {
	payload := buf[start+headerBytes:]
	binary.LittleEndian.PutUint32(buf[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(buf[start+4:], crc32.Checksum(payload, castagnoli))
	return pad(buf)
}

func pad(buf []byte) []byte {
	for len(buf)%8 != 0 {
		buf = append(buf, 0)
	}
	return buf
}

// readFrame reads the frame at offset of a file of size bytes, and where the next one begins.
func readFrame(r io.ReaderAt, offset, size int64) (payload []byte, next int64, err error) {
	var header [headerBytes]byte
	if offset+headerBytes > size {
		return nil, 0, errTorn
	}
	if _, err := r.ReadAt(header[:], offset); err != nil {
		return nil, 0, err
	}
	length := int64(binary.LittleEndian.Uint32(header[:]))
	next = offset + headerBytes + (length+7)/8*8
	if length == 0 || length > maxFrame || next > size {
		return nil, 0, errTorn
	}
	payload = make([]byte, length)
	if _, err := r.ReadAt(payload, offset+headerBytes); err != nil {
		return nil, 0, err
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(header[4:]) {
		return nil, 0, errTorn
	}
	return payload, next, nil
}

// frames calls each with the payloads of a file, in order. It returns where the whole frames end, and errTorn if the file
// goes on behind that.
func frames(f *os.File, magic string, each func(payload []byte) error) (end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	if size < magicBytes { // killed while it was made
		return 0, errTorn
	}
	var head [magicBytes]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0, err
	}
	if string(head[:]) != magic {
		return 0, fmt.Errorf("%s: not a file of this kind and version: it begins with %q, expected %q", f.Name(), head[:], magic)
	}
	for end = magicBytes; end < size; {
		payload, next, err := readFrame(f, end, size)
		if err != nil {
			return end, err
		}
		if err := each(payload); err != nil {
			return end, fmt.Errorf("%s: frame at byte %d: %w", f.Name(), end, err)
		}
		end = next
	}
	return end, nil
}

// frameBehind looks for a whole frame of the log behind a damaged one, and answers where it begins; 0 is nowhere. What a
// killed process has left of its last write has none: a write ends with the bytes that were written.
//
// What looks like a frame is read to tell, and each of them may reach to the end of the file. A file in which many do is no
// killed process's either: rather than read it over and over, the one at hand is taken for whole.
func frameBehind(r io.ReaderAt, damaged, size int64) (int64, error) {
	const looks = 8 // times the file
	var head [headerBytes + 4]byte
	left := looks * size
	for at := damaged + headerBytes; at+int64(len(head)) <= size; at += 8 {
		if _, err := r.ReadAt(head[:], at); err != nil {
			return 0, err
		}
		length := int64(binary.LittleEndian.Uint32(head[:]))
		if !frameLike(head) || length > size-at-headerBytes {
			continue
		}
		if left -= length; left < 0 {
			return at, nil
		}
		if _, _, err := readFrame(r, at, size); err == nil {
			return at, nil
		} else if !errors.Is(err, errTorn) {
			return 0, err
		}
	}
	return 0, nil
}

// frameLike reports whether a frame of the log may begin like that: most of what looks like a length is a value of a row with
// zeros behind it.
func frameLike(head [headerBytes + 4]byte) bool {
	sum, b := binary.LittleEndian.Uint32(head[4:]), head[headerBytes:]
	switch b[0] {
	case frameCatalog:
		return sum != 0 && b[1] == '{'
	case frameRows:
		return sum != 0 && b[1] >= rowsOfTable && b[1] <= rowsThatRemove && b[2] <= 1 && b[3] == 0
	case frameChanges:
		return sum != 0 && b[1] == 1 && b[2] == 0 && b[3] == 0
	}
	return false
}

// changedFrame reports whether the frame at offset, the last of a file, was written to its end and has changed since. What a
// killed process leaves of a frame is shorter than its length says, and what the end of the machine leaves ends in zeros.
func changedFrame(r io.ReaderAt, offset, size int64) (bool, error) {
	rest := size - offset - headerBytes
	if rest <= 0 || rest > maxFrame {
		return false, nil
	}
	b := make([]byte, headerBytes+rest)
	if _, err := r.ReadAt(b, offset); err != nil {
		return false, err
	}
	length, sum, payload := int64(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]), b[headerBytes:]
	if 0 < length && length <= rest {
		tail := payload[max(0, length-512):length]
		return bytes.Count(tail, []byte{0}) < len(tail), nil
	}
	// A length that has changed, of a frame whose payload has not.
	for pad := range min(8, rest) {
		if crc32.Checksum(payload[:rest-pad], castagnoli) == sum {
			return true, nil
		}
	}
	return false, nil
}
