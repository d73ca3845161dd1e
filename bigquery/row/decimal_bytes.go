package row

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
)

// AppendScaled appends the value of a NUMERIC or BIGNUMERIC column, with its length: the fewest bytes of two's complement that
// hold it, least significant first, one for zero.
func AppendScaled(buf []byte, v Scaled) []byte {
	var b [32]byte
	n := v.bytes(&b)
	buf = append(buf, byte(n))
	return append(buf, b[:n]...)
}

// AppendBigEndian appends the fewest bytes of two's complement, most significant first: the form of Value.Bytes.
func (v Scaled) AppendBigEndian(buf []byte) []byte {
	var b [32]byte
	n := v.bytes(&b)
	slices.Reverse(b[:n])
	return append(buf, b[:n]...)
}

// bytes fills b, least significant first, and says how many of them matter.
func (v Scaled) bytes(b *[32]byte) int {
	for i, w := range v {
		binary.LittleEndian.PutUint64(b[i*8:], w)
	}
	sign := byte(int8(b[31]) >> 7) // 0x00 or 0xff
	n := 32
	for n > 1 && b[n-1] == sign && (b[n-2]^sign)&0x80 == 0 {
		n--
	}
	return n
}

// ScaledFromWire reads the bytes of a NUMERIC or BIGNUMERIC column, least significant first. None at all are zero.
func ScaledFromWire(b []byte) (Scaled, error) {
	var full [32]byte
	if len(b) > len(full) {
		return Scaled{}, errDecimalBytes
	}
	copy(full[:], b)
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
		for i := len(b); i < len(full); i++ {
			full[i] = 0xff
		}
	}
	var v Scaled
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(full[i*8:])
	}
	return v, nil
}

// ScaledFromBigEndian reads two's complement, most significant byte first: the form of Value.Bytes. Bytes beyond 32 must
// only repeat the sign.
func ScaledFromBigEndian(b []byte) (Scaled, error) {
	for len(b) > 32 && b[0] == byte(int8(b[1])>>7) {
		b = b[1:]
	}
	if len(b) > 32 {
		return Scaled{}, errDecimalBytes
	}
	var little [32]byte
	for i, c := range b {
		little[len(b)-1-i] = c
	}
	return ScaledFromWire(little[:len(b)])
}

// AppendText appends the number v / 10^scale in full, without trailing zeros behind the point: "-1.25", "100". The scale
// is 0 to 77.
func (v Scaled) AppendText(buf []byte, scale int) []byte {
	if int64(v[3]) < 0 {
		buf = append(buf, '-')
		v = v.negated()
	}
	var text [2 * maxSignificant]byte
	digits := text[:maxSignificant:maxSignificant]
	digits = digits[:len(v.appendDigits(digits[:0]))]
	if missing := scale + 1 - len(digits); missing > 0 {
		padded := append(text[maxSignificant:maxSignificant], zeros[:missing]...)
		digits = append(padded, digits...)
	}
	whole := len(digits) - scale
	buf = append(buf, digits[:whole]...)
	if fraction := bytes.TrimRight(digits[whole:], "0"); len(fraction) > 0 {
		buf = append(append(buf, '.'), fraction...)
	}
	return buf
}

const zeros = "00000000000000000000000000000000000000000000000000000000000000000000000000000000"

// appendDigits appends the magnitude in decimal; "0" for zero.
func (v Scaled) appendDigits(buf []byte) []byte {
	low := v.divide(1e19)
	if v == (Scaled{}) {
		return strconv.AppendUint(buf, low, 10)
	}
	buf = v.appendDigits(buf)
	var chunk [20]byte
	tail := strconv.AppendUint(chunk[:0], low, 10)
	for range 19 - len(tail) {
		buf = append(buf, '0')
	}
	return append(buf, tail...)
}

// FromBig is the number unscaled / 10^scale, as the column keeps it.
func (d Decimal) FromBig(unscaled *big.Int, scale int) (Scaled, error) {
	text := unscaled.Append(make([]byte, 0, 2*maxSignificant), 10)
	text = strconv.AppendInt(append(text, 'e'), int64(-scale), 10)
	return ParseDecimal(d, text)
}

// FromRat is the number r, as the column keeps it. Fractions that have no end in decimal, such as 1/3, are refused like
// any other digit the column does not keep.
func (d Decimal) FromRat(r *big.Rat) (Scaled, error) {
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.scale)), nil)
	scaled, rest := ten.QuoRem(ten.Mul(ten, r.Num()), r.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		return Scaled{}, errDecimalScale
	}
	return d.FromBig(scaled, d.scale)
}

// Rat is the number v / 10^scale.
func (v Scaled) Rat(scale int) *big.Rat {
	r, ok := new(big.Rat).SetString(string(v.AppendText(nil, scale)))
	if !ok {
		panic("row: decimal text is not a number")
	}
	return r
}
