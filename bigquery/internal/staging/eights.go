package staging

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes at a time, the first one lowest, in a register. A varint is seven bits in each byte, the lowest first, with the
// eighth bit set in all bytes but the last (protobuf documentation, "Encoding", "Base 128 Varints").
const (
	eighthBits = 0x8080808080808080
	sevenBits  = 0x7f7f7f7f7f7f7f7f
)

// eightAt is the eight bytes at an index, with zeros for those behind the end.
func eightAt(b []byte, at int) uint64 {
	if at+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[at:])
	}
	return lastAt(b, at)
}

func lastAt(b []byte, at int) (v uint64) {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b[len(b)-8:]) >> (8 * uint(at+8-len(b)))
	}
	for i := len(b) - 1; i >= at; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// firstVarint is the varint at the beginning, and how many bytes it takes: nine stands for more than eight. Its bits are left
// where they are, seven in each byte.
func firstVarint(eight uint64) (spread uint64, n int) {
	ends := ^eight & eighthBits // set in bytes that are the last of a varint
	return eight & (ends&-ends - 1) & sevenBits, bits.TrailingZeros64(ends)>>3 + 1
}

// doubled is the varint of twice a number below 1<<55, whose bits stand as firstVarint leaves them, and how many bytes it takes.
// It is what Avro has for a number that is not negative (Avro specification, "Binary encoding", zig-zag).
func doubled(spread uint64) (varint uint64, n int) {
	const top = 0x4040404040404040 // of seven bits; it becomes the lowest of the next byte
	spread = spread<<1&sevenBits | spread&top<<2
	size := uint(bits.Len64(spread|1)+7) >> 3
	return spread | eighthBits&(1<<(8*size-8)-1), int(size)
}
