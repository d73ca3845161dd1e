package row

import (
	"math/bits"

	"github.com/millrace-dev/millrace/bigquery/table"
)

var (
	errDecimalText  = &ValueError{KindType, "expected a decimal number"}
	errDecimalScale = &ValueError{KindScale, "expected fewer digits behind the point: the column does not keep them"}
	errDecimalRange = &ValueError{KindRange, "expected a number within the column's range"}
	errDecimalBytes = &ValueError{KindDecode, "expected the bytes of a decimal number, at most 32"}
)

// Decimal is what a NUMERIC or BIGNUMERIC column keeps.
type Decimal struct {
	scale    int // of the wire form: 9 or 38
	fraction int // digits behind the point that the column keeps
	integer  int // digits before it; a BIGNUMERIC without a precision keeps some numbers of 39
}

// DecimalOf is the Decimal of a column, which must be NUMERIC or BIGNUMERIC.
func DecimalOf(f *table.Field) Decimal {
	d := Decimal{scale: 9, fraction: 9, integer: 29}
	if f.Type == table.BigNumeric {
		d = Decimal{scale: 38, fraction: 38, integer: 39}
	}
	if f.Precision > 0 {
		d.fraction, d.integer = int(f.Scale), int(f.Precision-f.Scale)
	}
	return d
}

// Scale is the power of ten that values are multiplied with on the wire: 9 or 38.
func (d Decimal) Scale() int { return d.scale }

// Scaled is a decimal number times a power of ten: an integer in two's complement, least significant word first.
type Scaled [4]uint64

// maxSignificant is more digits than any column keeps.
const maxSignificant = 80

// decimalText is decimal text taken apart: digits without leading and trailing zeros, times ten to the exponent.
type decimalText struct {
	digits   [maxSignificant]byte
	n        int
	exponent int64
	negative bool
	lost     bool // there were more digits than fit, and not only zeros
}

// ParseDecimal reads [sign]digits[.digits][e[sign]digits] exactly. Digits that the column does not keep are refused,
// except zeros. It takes time proportional to the text, however large its exponent.
func ParseDecimal[S Text](d Decimal, s S) (Scaled, error) {
	var t decimalText
	if !scanDecimal(&t, s) {
		return Scaled{}, errDecimalText
	}
	return d.scaled(&t)
}

func scanDecimal[S Text](t *decimalText, s S) bool {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		t.negative = s[i] == '-'
		i++
	}
	start, point := i, -1
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && point < 0 {
			point = i
			continue
		}
		if c-'0' > 9 {
			break
		}
		t.digit(c, point >= 0)
	}
	if i == start || i == start+1 && point >= 0 {
		return false // no digit at all
	}
	if i < len(s) {
		e, ok := scanExponent(s, i)
		if !ok {
			return false
		}
		t.exponent += e
	}
	t.trim()
	return true
}

// scanExponent reads an exponent at i to the end of s. Exponents no column could keep come back as some other such one.
func scanExponent[S Text](s S, i int) (e int64, ok bool) {
	if s[i] != 'e' && s[i] != 'E' {
		return 0, false
	}
	i++
	negative := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	if i == len(s) {
		return 0, false
	}
	for ; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return 0, false
		}
		e = min(e*10+int64(s[i]-'0'), 1<<40)
	}
	return signed(e, negative), true
}

func (t *decimalText) digit(c byte, behindPoint bool) {
	if behindPoint {
		t.exponent--
	}
	switch {
	case t.n == 0 && c == '0':
		return
	case t.n < maxSignificant:
		t.digits[t.n] = c
	case c != '0':
		t.lost = true
	}
	t.n++
}

func (t *decimalText) trim() {
	for t.n > maxSignificant && !t.lost || t.n > 0 && t.n <= maxSignificant && t.digits[t.n-1] == '0' {
		t.n--
		t.exponent++
	}
}

func (d Decimal) scaled(t *decimalText) (Scaled, error) {
	switch {
	case t.n == 0:
		return Scaled{}, nil
	case int64(t.n)+t.exponent > int64(d.integer):
		return Scaled{}, errDecimalRange
	case -t.exponent > int64(d.fraction) || t.lost:
		return Scaled{}, errDecimalScale
	}
	var v Scaled
	for i := 0; i < t.n; {
		var chunk uint64
		from := i
		for ; i < t.n && i-from < 19; i++ {
			chunk = chunk*10 + uint64(t.digits[i]-'0')
		}
		v.multiplyAdd(powers[i-from], chunk)
	}
	for shift := int64(d.scale) + t.exponent; shift > 0; shift -= 19 {
		v.multiplyAdd(powers[min(shift, 19)], 0)
	}
	return v.withSign(t.negative)
}

// powers are the powers of ten that fit a word.
var powers = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
	1e18, 1e19}

// multiplyAdd does v = v*m + a. Callers keep v below 10^77, which is less than 2^256.
func (v *Scaled) multiplyAdd(m, a uint64) {
	for i := range v {
		hi, lo := bits.Mul64(v[i], m)
		var carry uint64
		v[i], carry = bits.Add64(lo, a, 0)
		a = hi + carry
	}
}

// withSign turns a magnitude into two's complement, which holds -2^255 but not 2^255.
func (v Scaled) withSign(negative bool) (Scaled, error) {
	if !negative {
		if v[3]>>63 != 0 {
			return Scaled{}, errDecimalRange
		}
		return v, nil
	}
	n := v.negated()
	if n[3]>>63 == 0 && n != (Scaled{}) {
		return Scaled{}, errDecimalRange
	}
	return n, nil
}

func (v Scaled) negated() Scaled {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
	return v
}

// divide does v = v/m and returns the rest.
func (v *Scaled) divide(m uint64) (rest uint64) {
	for i := len(v) - 1; i >= 0; i-- {
		v[i], rest = bits.Div64(rest, v[i], m)
	}
	return rest
}

// tens are the powers of ten below 2^255.
var tens = func() (t [77]Scaled) {
	t[0] = Scaled{1}
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1]
		t[i].multiplyAdd(10, 0)
	}
	return t
}()

// FractionDigits is the number of digits behind the point that the column keeps: 9 for NUMERIC, 38 for BIGNUMERIC, unless it
// has parameters.
func (d Decimal) FractionDigits() int { return d.fraction }

// Precision is the number of digits that the column keeps, those behind the point included: 38 for NUMERIC, 77 for
// BIGNUMERIC, unless it has parameters.
func (d Decimal) Precision() int { return d.integer + d.fraction }

// Fit turns the wire form of a number, an integer times 10^-Scale, into the integer times 10^-FractionDigits that decimals of
// Avro and Parquet are. A number that the column does not keep is refused.
func (d Decimal) Fit(v Scaled) (Scaled, error) {
	negative := int64(v[3]) < 0
	if negative {
		v = v.negated()
	}
	for shift := d.scale - d.fraction; shift > 0; shift -= 19 {
		if v.divide(powers[min(shift, 19)]) != 0 {
			return Scaled{}, errDecimalScale
		}
	}
	if p := d.Precision(); p < len(tens) && !v.below(&tens[p]) {
		return Scaled{}, errDecimalRange
	}
	if negative {
		v = v.negated()
	}
	return v, nil
}

// FromUnscaled is the inverse of Fit: it turns the integer times 10^-FractionDigits that a decimal of Avro or Parquet is into
// the wire form. A number that the column does not keep is refused.
func (d Decimal) FromUnscaled(v Scaled) (Scaled, error) { return d.Rescale(v, d.fraction) }

// Rescale is the number v / 10^scale, as the column keeps it: the way from decimals of Arrow and Parquet. Digits that it does
// not keep are refused, except zeros. The scale may be negative.
func (d Decimal) Rescale(v Scaled, scale int) (Scaled, error) {
	negative := int64(v[3]) < 0
	if negative {
		v = v.negated()
	}
	for ; scale > d.fraction; scale -= min(scale-d.fraction, 19) {
		if v.divide(powers[min(scale-d.fraction, 19)]) != 0 {
			return Scaled{}, errDecimalScale
		}
	}
	if p := d.integer + scale; p < len(tens) && !v.below(&tens[max(p, 0)]) {
		return Scaled{}, errDecimalRange
	}
	if v == (Scaled{}) {
		return v, nil
	}
	for shift := d.scale - scale; shift > 0; shift -= 19 {
		v.multiplyAdd(powers[min(shift, 19)], 0)
	}
	return v.withSign(negative)
}

func (v *Scaled) below(limit *Scaled) bool {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i] != limit[i] {
			return v[i] < limit[i]
		}
	}
	return false
}

// Rounded is the number v / 10^from as an integer times 10^-to, halves rounded away from zero. It is false when that has more
// than precision digits. Scales are 0 to 77, the precision is below 77.
func (v Scaled) Rounded(from, to, precision int) (Scaled, bool) {
	negative := int64(v[3]) < 0
	if negative {
		v = v.negated()
	}
	for ; from > to+1; from -= min(from-to-1, 19) {
		v.divide(powers[min(from-to-1, 19)])
	}
	if from > to && v.divide(10) >= 5 {
		v.multiplyAdd(1, 1)
	}
	if more := max(to-from, 0); !v.below(&tens[max(precision-more, 0)]) && v != (Scaled{}) {
		return Scaled{}, false
	}
	for more := to - from; more > 0; more -= 19 {
		v.multiplyAdd(powers[min(more, 19)], 0)
	}
	if negative {
		v = v.negated()
	}
	return v, true
}
