package scalar

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/millrace-dev/millrace/localbq/internal/text"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// Integers.

// AddInt, SubtractInt and MultiplyInt refuse to overflow.
func AddInt(a, b int64) (int64, error) {
	c := a + b
	if (c > a) != (b > 0) {
		return 0, overflow(a, "+", b)
	}
	return c, nil
}

func SubtractInt(a, b int64) (int64, error) {
	c := a - b
	if (c < a) != (b > 0) {
		return 0, overflow(a, "-", b)
	}
	return c, nil
}

func MultiplyInt(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	c := a * b
	if c/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, overflow(a, "*", b)
	}
	return c, nil
}

func overflow(a int64, op string, b int64) error {
	return fmt.Errorf("int64 overflow: %d %s %d", a, op, b)
}

func zeroDivision(a, b any) error { return fmt.Errorf("division by zero: %v / %v", a, b) }

// DivInt is DIV: the quotient without its fraction.
func DivInt(a, b int64) (int64, error) {
	switch {
	case b == 0:
		return 0, zeroDivision(a, b)
	case b == -1:
		return SubtractInt(0, a)
	}
	return a / b, nil
}

// ModInt has the sign of the dividend.
func ModInt(a, b int64) (int64, error) {
	switch b {
	case 0:
		return 0, zeroDivision(a, b)
	case -1:
		return 0, nil
	}
	return a % b, nil
}

// DivideInt is a / b of two INT64, which is a FLOAT64.
func DivideInt(a, b int64) (float64, error) {
	if b == 0 {
		return 0, zeroDivision(a, b)
	}
	return float64(a) / float64(b), nil
}

// FloorDiv rounds down.
func FloorDiv(a, b int64) (int64, error) {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q, nil
}

// Shift moves bits left by n, or right by -n.
func Shift(v, n int64) (int64, error) {
	switch {
	case n >= 64 || n <= -64:
		return 0, nil
	case n >= 0:
		return v << n, nil
	}
	return int64(uint64(v) >> -n), nil
}

// FLOAT64.

var errFloat = errors.New("Floating point overflow")

// finite refuses a result that is infinite or no number while the operands were finite.
func finite(v float64, what func() string, operands ...float64) (float64, error) {
	if !math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, nil
	}
	for _, o := range operands {
		if math.IsInf(o, 0) || math.IsNaN(o) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%w: %s", errFloat, what())
}

func operation(a float64, op string, b float64) func() string {
	return func() string { return floatText(a) + " " + op + " " + floatText(b) }
}

func floatText(v float64) string { return string(text.AppendSQLFloat(nil, v)) }

func AddFloat(a, b float64) (float64, error) { return finite(a+b, operation(a, "+", b), a, b) }

func SubtractFloat(a, b float64) (float64, error) { return finite(a-b, operation(a, "-", b), a, b) }

func MultiplyFloat(a, b float64) (float64, error) { return finite(a*b, operation(a, "*", b), a, b) }

func DivideFloat(a, b float64) (float64, error) {
	if b == 0 {
		return 0, zeroDivision(floatText(a), floatText(b))
	}
	return finite(a/b, operation(a, "/", b), a, b)
}

// IEEEDivide never fails.
func IEEEDivide(a, b float64) (float64, error) { return a / b, nil }

func Sqrt(v float64) (float64, error) {
	if v < 0 {
		return 0, fmt.Errorf("Argument to SQRT cannot be negative: SQRT(%s)", floatText(v))
	}
	return math.Sqrt(v), nil
}

func Pow(a, b float64) (float64, error) {
	if a == 0 && b < 0 || a < 0 && b != math.Trunc(b) {
		return 0, fmt.Errorf("Floating point error in function: POW(%s, %s)", floatText(a), floatText(b))
	}
	return finite(math.Pow(a, b), func() string { return fmt.Sprintf("POW(%s, %s)", floatText(a), floatText(b)) }, a, b)
}

func Exp(v float64) (float64, error) {
	return finite(math.Exp(v), func() string { return "EXP(" + floatText(v) + ")" }, v)
}

func Ln(v float64) (float64, error) {
	if v <= 0 {
		return 0, fmt.Errorf("Floating point error in function: LN(%s)", floatText(v))
	}
	return math.Log(v), nil
}

func Log(v, base float64) (float64, error) {
	switch {
	case v <= 0 || base <= 0 || base == 1:
		return 0, fmt.Errorf("Floating point error in function: LOG(%s, %s)", floatText(v), floatText(base))
	case base == 10:
		return math.Log10(v), nil
	case base == 2:
		return math.Log2(v), nil
	}
	return math.Log(v) / math.Log(base), nil
}

// RoundFloat rounds half away from zero, to n digits behind the point or, below 0, before it.
func RoundFloat(v float64, n int64) (float64, error) { return scaled(v, n, math.Round) }

// TruncFloat rounds toward zero.
func TruncFloat(v float64, n int64) (float64, error) { return scaled(v, n, math.Trunc) }

func scaled(v float64, n int64, round func(float64) float64) (float64, error) {
	switch {
	case n == 0 || math.IsInf(v, 0) || math.IsNaN(v):
		return round(v), nil
	case n > 308:
		return v, nil
	case n < -308:
		return 0, nil
	}
	if n < 0 {
		p := math.Pow10(int(-n))
		return round(v/p) * p, nil
	}
	p := math.Pow10(int(n))
	if s := v * p; !math.IsInf(s, 0) {
		return round(s) / p, nil
	}
	return v, nil
}

// NUMERIC: integers scaled by 10^9.

var (
	numericUnit = big.NewInt(1_000_000_000)
	numericMax  = new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1))
)

func numericText(v *big.Int) string { return string(text.AppendDecimal(nil, v, 9)) }

func fits(v *big.Int, what func() string) (*big.Int, error) {
	if v.CmpAbs(numericMax) > 0 {
		return nil, fmt.Errorf("numeric overflow: %s", what())
	}
	return v, nil
}

func numericOperation(a *big.Int, op string, b *big.Int) func() string {
	return func() string { return numericText(a) + " " + op + " " + numericText(b) }
}

func AddNumeric(a, b *big.Int) (*big.Int, error) {
	return fits(new(big.Int).Add(a, b), numericOperation(a, "+", b))
}

func SubtractNumeric(a, b *big.Int) (*big.Int, error) {
	return fits(new(big.Int).Sub(a, b), numericOperation(a, "-", b))
}

// MultiplyNumeric rounds half away from zero.
func MultiplyNumeric(a, b *big.Int) (*big.Int, error) {
	return fits(quotient(new(big.Int).Mul(a, b), numericUnit), numericOperation(a, "*", b))
}

// DivideNumeric rounds half away from zero.
func DivideNumeric(a, b *big.Int) (*big.Int, error) {
	if b.Sign() == 0 {
		return nil, zeroDivision(numericText(a), numericText(b))
	}
	return fits(quotient(new(big.Int).Mul(a, numericUnit), b), numericOperation(a, "/", b))
}

// quotient rounds half away from zero.
func quotient(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(b) >= 0 {
		if a.Sign() == b.Sign() {
			return q.Add(q, big.NewInt(1))
		}
		return q.Sub(q, big.NewInt(1))
	}
	return q
}

func DivNumeric(a, b *big.Int) (*big.Int, error) {
	if b.Sign() == 0 {
		return nil, zeroDivision(numericText(a), numericText(b))
	}
	q := new(big.Int).Quo(a, b)
	return fits(q.Mul(q, numericUnit), numericOperation(a, "/", b))
}

func ModNumeric(a, b *big.Int) (*big.Int, error) {
	if b.Sign() == 0 {
		return nil, zeroDivision(numericText(a), numericText(b))
	}
	return new(big.Int).Rem(a, b), nil
}

// RoundNumeric rounds half away from zero, to n digits behind the point or, below 0, before it.
func RoundNumeric(v *big.Int, n int64) (*big.Int, error) { return digits(v, n, quotient) }

// TruncNumeric rounds toward zero.
func TruncNumeric(v *big.Int, n int64) (*big.Int, error) {
	return digits(v, n, func(a, b *big.Int) *big.Int { return new(big.Int).Quo(a, b) })
}

func digits(v *big.Int, n int64, divide func(a, b *big.Int) *big.Int) (*big.Int, error) {
	switch {
	case n >= 9:
		return v, nil
	case n < -30:
		return new(big.Int), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(9-n), nil)
	q := divide(v, unit)
	return fits(q.Mul(q, unit), func() string { return fmt.Sprintf("ROUND(%s, %d)", numericText(v), n) })
}

// Average is a sum over a count.
func Average(sum *big.Int, count int64) (*big.Int, error) {
	return quotient(sum, big.NewInt(count)), nil
}

// Casts to INT64.

func FloatToInt(v float64) (int64, error) {
	r := math.Round(v)
	if math.IsNaN(v) || r < -0x1p63 || r >= 0x1p63 {
		return 0, fmt.Errorf("Illegal conversion of value %s of type double to type int64: out of range", floatText(v))
	}
	return int64(r), nil
}

func NumericToInt(v *big.Int) (int64, error) {
	q := quotient(v, numericUnit)
	if !q.IsInt64() {
		return 0, fmt.Errorf("int64 out of range: %s", numericText(v))
	}
	return q.Int64(), nil
}

// TextToInt reads an integer, decimal or 0x….
func TextToInt(s string) (int64, error) {
	t := trimSpace(s)
	base := 10
	if sign, rest := splitSign(t); len(rest) > 2 && (rest[:2] == "0x" || rest[:2] == "0X") {
		base, t = 16, sign+rest[2:]
	}
	v, err := strconv.ParseInt(t, base, 64)
	if err != nil {
		return 0, fmt.Errorf("Bad int64 value: %s", s)
	}
	return v, nil
}

func splitSign(s string) (sign, rest string) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1], s[1:]
	}
	return "", s
}

func TextToFloat(s string) (float64, error) {
	v, err := strconv.ParseFloat(trimSpace(s), 64)
	if err != nil && !math.IsInf(v, 0) || len(s) > 1 && hasHexOrUnderscore(s) {
		return 0, fmt.Errorf("Bad double value: %s", s)
	}
	return v, nil
}

func hasHexOrUnderscore(s string) bool {
	for i := range len(s) {
		if s[i] == '_' || s[i] == 'x' || s[i] == 'X' {
			return true
		}
	}
	return false
}

var numericColumn, bigNumericColumn = value.Decimal{}, value.Decimal{Big: true}

func TextToNumeric(s string) (*big.Int, error) { return numericColumn.Text(s) }

func FloatToNumeric(v float64) (*big.Int, error) { return numericColumn.Float(v) }

// BIGNUMERIC: integers scaled by 10^38.

var (
	bigUnit = new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	bigStep = new(big.Int).Exp(big.NewInt(10), big.NewInt(29), nil) // from NUMERIC's scale
)

func TextToBig(s string) (*big.Int, error)      { return bigNumericColumn.Text(s) }
func FloatToBig(v float64) (*big.Int, error)    { return bigNumericColumn.Float(v) }
func IntToBig(v int64) (*big.Int, error)        { return new(big.Int).Mul(big.NewInt(v), bigUnit), nil }
func NumericToBig(v *big.Int) (*big.Int, error) { return new(big.Int).Mul(v, bigStep), nil }

func BigToNumeric(v *big.Int) (*big.Int, error) {
	return fits(quotient(v, bigStep), func() string { return bigText(v) })
}

func BigToInt(v *big.Int) (int64, error) {
	q := quotient(v, bigUnit)
	if !q.IsInt64() {
		return 0, fmt.Errorf("int64 out of range: %s", bigText(v))
	}
	return q.Int64(), nil
}

func BigToFloat(v *big.Int) (float64, error) {
	f, _ := new(big.Rat).SetFrac(v, bigUnit).Float64()
	return f, nil
}

func BigToText(v *big.Int) (string, error) { return bigText(v), nil }

var bigLimit = new(big.Int).Lsh(big.NewInt(1), 255)

func fitsBig(v *big.Int, a *big.Int, op string, b *big.Int) (*big.Int, error) {
	if v.Cmp(bigLimit) >= 0 || v.Cmp(new(big.Int).Neg(bigLimit)) < 0 {
		return nil, fmt.Errorf("BIGNUMERIC overflow: %s %s %s", bigText(a), op, bigText(b))
	}
	return v, nil
}

func bigText(v *big.Int) string { return string(text.AppendDecimal(nil, v, 38)) }

func AddBig(a, b *big.Int) (*big.Int, error)      { return fitsBig(new(big.Int).Add(a, b), a, "+", b) }
func SubtractBig(a, b *big.Int) (*big.Int, error) { return fitsBig(new(big.Int).Sub(a, b), a, "-", b) }

// MultiplyBig rounds half away from zero.
func MultiplyBig(a, b *big.Int) (*big.Int, error) {
	return fitsBig(quotient(new(big.Int).Mul(a, b), bigUnit), a, "*", b)
}

// DivideBig rounds half away from zero.
func DivideBig(a, b *big.Int) (*big.Int, error) {
	if b.Sign() == 0 {
		return nil, zeroDivision(bigText(a), bigText(b))
	}
	return fitsBig(quotient(new(big.Int).Mul(a, bigUnit), b), a, "/", b)
}

func NegateBig(v *big.Int) (*big.Int, error) { return SubtractBig(new(big.Int), v) }

func AbsBig(v *big.Int) (*big.Int, error) {
	if v.Sign() < 0 {
		return NegateBig(v)
	}
	return v, nil
}
