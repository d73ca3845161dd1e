package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// Decimal reads the forms a NUMERIC or BIGNUMERIC column accepts and checks them against its digits.
//
// A value is first brought to the type's own scale, 9 or 38 digits, and checked against the type's own range; a column
// with (P,S) of its own then rounds it to S digits and refuses more than P-S digits before the point.
type Decimal struct {
	Big bool // BIGNUMERIC
	// Precision and Scale are the column's; Precision 0 is the bare type.
	Precision, Scale int64
	HalfEven         bool // round half to even instead of half away from zero
}

var (
	numericMax    = new(big.Int).Sub(pow10(38), big.NewInt(1))
	bigNumericMax = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(1))
	bigNumericMin = new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 255))
)

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

func (d *Decimal) name() string {
	if d.Big {
		return "BIGNUMERIC"
	}
	return "NUMERIC"
}

func (d *Decimal) typeScale() int64 {
	if d.Big {
		return 38
	}
	return 9
}

// Text reads a decimal text with an optional exponent; the result is scaled by the column's scale.
func (d *Decimal) Text(s string) (*big.Int, error) {
	coefficient, exponent, ok := parseDecimal(s)
	if !ok {
		return nil, fmt.Errorf("Invalid %s value: %s", d.name(), s)
	}
	scaled, ok := shift(coefficient, exponent+d.typeScale(), d.HalfEven)
	if !ok {
		return nil, d.outOfRange(s)
	}
	return d.fit(scaled, s)
}

// Int takes an integer.
func (d *Decimal) Int(v *big.Int) (*big.Int, error) {
	return d.fit(new(big.Int).Mul(v, pow10(d.typeScale())), v)
}

// Scaled takes an integer of a scale not above the type's own.
func (d *Decimal) Scaled(v *big.Int, scale int64) (*big.Int, error) {
	v = new(big.Int).Mul(v, pow10(d.typeScale()-scale))
	return d.fit(v, v)
}

// Float takes the exact value of a double and rounds it half away from zero.
func (d *Decimal) Float(v float64) (*big.Int, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e39 {
		return nil, d.outOfRange(v)
	}
	exact := new(big.Rat).SetFloat64(v)
	exact.Mul(exact, new(big.Rat).SetInt(pow10(d.typeScale())))
	return d.fit(divide(exact.Num(), exact.Denom(), false), v)
}

// Bytes takes a scaled integer in two's complement, least significant byte first, of the type's own scale; none is zero.
func (d *Decimal) Bytes(b []byte) (*big.Int, error) {
	limit := 16
	if d.Big {
		limit = 32
	}
	if len(b) > limit {
		return nil, fmt.Errorf("Invalid %s value: %d bytes, at most %d are allowed", d.name(), len(b), limit)
	}
	msb := slices.Clone(b)
	slices.Reverse(msb)
	v := new(big.Int).SetBytes(msb)
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return d.fit(v, v)
}

// fit checks an integer of the type's own scale and brings it to the column's; shown is what the error names.
func (d *Decimal) fit(v *big.Int, shown any) (*big.Int, error) {
	if d.Big && (v.Cmp(bigNumericMin) < 0 || v.Cmp(bigNumericMax) > 0) || !d.Big && v.CmpAbs(numericMax) > 0 {
		return nil, d.outOfRange(shown)
	}
	if d.Precision == 0 {
		return v, nil
	}
	v, _ = shift(v, d.Scale-d.typeScale(), d.HalfEven)
	if v.CmpAbs(pow10(d.Precision)) >= 0 {
		return nil, fmt.Errorf("%s(%d, %d) has precision %d and scale %d but got a value that is not in range: %v",
			d.name(), d.Precision, d.Scale, d.Precision, d.Scale, shown)
	}
	return v, nil
}

func (d *Decimal) outOfRange(shown any) error {
	return fmt.Errorf("%s value is out of range: %v", d.name(), shown)
}

// parseDecimal splits "[sign]digits[.digits][e[sign]digits]" into an integer and a power of ten.
func parseDecimal(s string) (*big.Int, int64, bool) {
	s = strings.TrimSpace(s)
	mantissa, exponent := s, int64(0)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil {
			return nil, 0, false
		}
		mantissa, exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	sign, digits := "", whole+fraction
	if whole != "" && (whole[0] == '-' || whole[0] == '+') {
		sign, digits = whole[:1], whole[1:]+fraction
	}
	// The longest number of interest has 77 digits; zeros may surround it, but not for ever.
	if digits == "" || len(digits) > 4096 || strings.Trim(digits, "0123456789") != "" {
		return nil, 0, false
	}
	v, ok := new(big.Int).SetString(sign+digits, 10)
	return v, exponent - int64(len(fraction)), ok
}

// shift multiplies v by a power of ten, rounding where it is negative; false where the result has no chance to fit.
func shift(v *big.Int, power int64, halfEven bool) (*big.Int, bool) {
	switch {
	case v.Sign() == 0:
		return v, true
	case power > 100:
		return nil, false
	case power >= 0:
		return new(big.Int).Mul(v, pow10(power)), true
	case power < -8192:
		return new(big.Int), true
	}
	return divide(v, pow10(-power), halfEven), true
}

// divide rounds a/b, b positive, to the nearest integer.
func divide(a, b *big.Int, halfEven bool) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	c := new(big.Int).Lsh(r, 1).CmpAbs(b)
	if c > 0 || c == 0 && (!halfEven || q.Bit(0) == 1) {
		q.Add(q, big.NewInt(int64(a.Sign())))
	}
	return q
}

// Num128 and Num256 are an integer in Arrow's form.
func Num128(v *big.Int) decimal128.Num { return decimal128.FromBigInt(v) }

// Num256 is Num128 for 256 bits. It takes all of -2²⁵⁵ to 2²⁵⁵-1, which decimal256.FromBigInt does not.
func Num256(v *big.Int) decimal256.Num {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, twoTo256)
	}
	var b [32]byte
	v.FillBytes(b[:])
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return decimal256.New(word(0), word(1), word(2), word(3))
}

var twoTo256 = new(big.Int).Lsh(big.NewInt(1), 256)
