package avro

// The functions here read at b[i:] and return the index behind what they read, or Failed.

// Failed is the index behind something that could not be read.
const Failed = -1

// Zigzag turns an unsigned number of the binary encoding into the number it means.
func Zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// Varint reads up to 64 bits, 7 in a byte. It fails where the bytes end too early or go on too long.
func Varint(b []byte, i int) (u uint64, next int) {
	for shift := 0; i < len(b); shift += 7 {
		c := b[i]
		i++
		if c < 0x80 {
			if shift == 63 && c > 1 {
				break
			}
			return u | uint64(c)<<shift, i
		}
		if shift == 63 {
			break
		}
		u |= uint64(c&0x7f) << shift
	}
	return 0, Failed
}

// Length reads the length of bytes that are all there; next is where they start.
func Length(b []byte, i int) (n, next int) {
	if i < len(b) && b[i] < 0x80 {
		n, next = int(Zigzag(uint64(b[i]))), i+1
	} else {
		u, after := Varint(b, i)
		z := Zigzag(u)
		if after < 0 || z > int64(len(b)) {
			return 0, Failed
		}
		n, next = int(z), after
	}
	if n < 0 || n > len(b)-next {
		return 0, Failed
	}
	return n, next
}

// Count reads how many elements of an array or a map come next; 0 ends it. size is their size in bytes where the count was
// negative and said it, else -1. What the count says is not held against the bytes that are there.
func Count(b []byte, i int) (n int64, size int64, next int) {
	u, next := Varint(b, i)
	if next < 0 {
		return 0, 0, Failed
	}
	n, size = Zigzag(u), -1
	if n < 0 {
		if u, next = Varint(b, next); next < 0 {
			return 0, 0, Failed
		}
		n, size = -n, Zigzag(u)
	}
	if n < 0 {
		return 0, 0, Failed // -2^63 has no positive counterpart
	}
	return n, size, next
}
