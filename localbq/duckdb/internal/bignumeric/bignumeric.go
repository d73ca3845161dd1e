// Package bignumeric holds BIGNUMERIC values where DuckDB has no number that wide: as 32 bytes that compare as the numbers
// do. The number is the integer value × 10^38, most significant byte first, in two's complement with the sign bit turned
// over.
package bignumeric

import (
	"fmt"
	"math/big"
)

// Scale is the number of digits behind the point.
const Scale = 38

const size = 32

var offset = new(big.Int).Lsh(big.NewInt(1), 8*size-1)

// Encode writes a scaled number of at most 256 bits.
func Encode(scaled *big.Int) []byte {
	return new(big.Int).Add(scaled, offset).FillBytes(make([]byte, size))
}

// Decode reads what Encode wrote.
func Decode(b []byte) (*big.Int, error) {
	if len(b) != size {
		return nil, fmt.Errorf("a BIGNUMERIC is held in %d bytes, not %d", size, len(b))
	}
	n := new(big.Int).SetBytes(b)
	return n.Sub(n, offset), nil
}
