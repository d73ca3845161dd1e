package scalar

import (
	"encoding/binary"
	"math/bits"
)

// FarmFingerprint is Fingerprint64 of FarmHash, which is its Hash64 in the farmhashna variant (google/farmhash).
func FarmFingerprint(s []byte) (int64, error) { return int64(farmHash64(s)), nil }

const (
	farmK0 = 0xc3a5c85c97cb3127
	farmK1 = 0xb492b66fbe98f273
	farmK2 = 0x9ae16a3b2f90404f
)

func fetch64(s []byte) uint64 { return binary.LittleEndian.Uint64(s) }
func fetch32(s []byte) uint64 { return uint64(binary.LittleEndian.Uint32(s)) }

func rotate(v uint64, n int) uint64 { return bits.RotateLeft64(v, -n) }
func shiftMix(v uint64) uint64      { return v ^ v>>47 }

func hash16(u, v, mul uint64) uint64 {
	a := shiftMix((u ^ v) * mul)
	return shiftMix((v^a)*mul) * mul
}

func hash0to16(s []byte) uint64 {
	n := uint64(len(s))
	switch {
	case n >= 8:
		mul := farmK2 + n*2
		a := fetch64(s) + farmK2
		b := fetch64(s[n-8:])
		c := rotate(b, 37)*mul + a
		d := (rotate(a, 25) + b) * mul
		return hash16(c, d, mul)
	case n >= 4:
		mul := farmK2 + n*2
		return hash16(n+fetch32(s)<<3, fetch32(s[n-4:]), mul)
	case n > 0:
		y := uint64(s[0]) + uint64(s[n>>1])<<8
		z := n + uint64(s[n-1])<<2
		return shiftMix(y*farmK2^z*farmK0) * farmK2
	}
	return farmK2
}

func hash17to32(s []byte) uint64 {
	n := uint64(len(s))
	mul := farmK2 + n*2
	a := fetch64(s) * farmK1
	b := fetch64(s[8:])
	c := fetch64(s[n-8:]) * mul
	d := fetch64(s[n-16:]) * farmK2
	return hash16(rotate(a+b, 43)+rotate(c, 30)+d, a+rotate(b+farmK2, 18)+c, mul)
}

func hash33to64(s []byte) uint64 {
	n := uint64(len(s))
	mul := farmK2 + n*2
	a := fetch64(s) * farmK2
	b := fetch64(s[8:])
	c := fetch64(s[n-8:]) * mul
	d := fetch64(s[n-16:]) * farmK2
	y := rotate(a+b, 43) + rotate(c, 30) + d
	z := hash16(y, a+rotate(b+farmK2, 18)+c, mul)
	e := fetch64(s[16:]) * mul
	f := fetch64(s[24:])
	g := (y + fetch64(s[n-32:])) * mul
	h := (z + fetch64(s[n-24:])) * mul
	return hash16(rotate(e+f, 43)+rotate(g, 30)+h, e+rotate(f+a, 18)+g, mul)
}

// weak hashes 32 bytes into two numbers.
func weak(s []byte, a, b uint64) (uint64, uint64) {
	w, x, y, z := fetch64(s), fetch64(s[8:]), fetch64(s[16:]), fetch64(s[24:])
	a += w
	b = rotate(b+a+z, 21)
	c := a
	a += x + y
	b += rotate(a, 44)
	return a + z, b + c
}

func farmHash64(s []byte) uint64 {
	switch n := len(s); {
	case n <= 16:
		return hash0to16(s)
	case n <= 32:
		return hash17to32(s)
	case n <= 64:
		return hash33to64(s)
	}
	const seed = 81
	x := uint64(seed)
	y := uint64(seed)
	y = y*farmK1 + 113
	z := shiftMix(y*farmK2+113) * farmK2
	var v1, v2, w1, w2 uint64
	x = x*farmK2 + fetch64(s)
	last := s[len(s)-64:]
	end := (len(s) - 1) / 64 * 64
	for ; end > 0; end -= 64 {
		x = rotate(x+y+v1+fetch64(s[8:]), 37) * farmK1
		y = rotate(y+v2+fetch64(s[48:]), 42) * farmK1
		x ^= w2
		y += v1 + fetch64(s[40:])
		z = rotate(z+w1, 33) * farmK1
		v1, v2 = weak(s, v2*farmK1, x+w1)
		w1, w2 = weak(s[32:], z+w2, y+fetch64(s[16:]))
		z, x = x, z
		s = s[64:]
	}
	mul := farmK1 + (z&0xff)<<1
	w1 += uint64(len(s)-1) & 63
	v1 += w1
	w1 += v1
	x = rotate(x+y+v1+fetch64(last[8:]), 37) * mul
	y = rotate(y+v2+fetch64(last[48:]), 42) * mul
	x ^= w2 * 9
	y += v1*9 + fetch64(last[40:])
	z = rotate(z+w1, 33) * mul
	v1, v2 = weak(last, v2*mul, x+w1)
	w1, w2 = weak(last[32:], z+w2, y+fetch64(last[16:]))
	z, x = x, z
	return hash16(hash16(v1, w1, mul)+shiftMix(y)*farmK0+z, hash16(v2, w2, mul)+x, mul)
}
