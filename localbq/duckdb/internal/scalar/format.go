package scalar

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Argument is one argument of FORMAT.
type Argument struct {
	Type string // GoogleSQL name, for messages
	Null bool
	// One of these is set, by the type; Text is set for every type, as %t and %T print it.
	Int     *int64
	Float   *float64
	Decimal *big.Int // of NUMERIC
	String  *string
	Text    string // %t
	Code    string // %T
}

// Format is FORMAT; false, which is NULL, where an argument of a specifier other than %t and %T is NULL.
func Format(format string, args []Argument) (string, bool, error) {
	f := formatting{args: args}
	for rest := format; rest != ""; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			f.out.WriteString(rest)
			break
		}
		f.out.WriteString(rest[:i])
		n, err := f.specifier(rest[i+1:])
		if err != nil {
			return "", false, fmt.Errorf("Error in FORMAT string: %w", err)
		}
		rest = rest[i+1+n:]
	}
	if f.at < len(args) {
		return "", false, fmt.Errorf("Too many arguments to FORMAT for pattern %q: expected %d, got %d", format, f.at, len(args))
	}
	return f.out.String(), !f.null, nil
}

type formatting struct {
	out  strings.Builder
	args []Argument
	at   int
	null bool
}

// specifier writes the specifier at the start of s, behind its per cent sign, and answers its length.
func (f *formatting) specifier(s string) (int, error) {
	n := 0
	flags := ""
	for n < len(s) && strings.IndexByte("-+ #0'", s[n]) >= 0 {
		flags += s[n : n+1]
		n++
	}
	width, n, err := f.count(s, n)
	if err != nil {
		return 0, err
	}
	precision := -1
	if n < len(s) && s[n] == '.' {
		if precision, n, err = f.count(s, n+1); err != nil {
			return 0, err
		}
		precision = max(precision, 0)
	}
	if n >= len(s) {
		return 0, fmt.Errorf("the format ends inside of a specifier")
	}
	verb := s[n]
	if verb == '%' {
		f.out.WriteByte('%')
		return n + 1, nil
	}
	a, err := f.next()
	if err != nil {
		return 0, err
	}
	text, err := f.argument(a, verb, flags, width, precision)
	f.out.WriteString(text)
	return n + 1, err
}

// count reads a width or precision: digits, or * for an argument; -1 for none.
func (f *formatting) count(s string, n int) (int, int, error) {
	if n < len(s) && s[n] == '*' {
		a, err := f.next()
		if err != nil {
			return 0, 0, err
		}
		if a.Int == nil || *a.Int < 0 || *a.Int > maxText {
			return 0, 0, fmt.Errorf("a width or precision must be an INT64 from 0")
		}
		return int(*a.Int), n + 1, nil
	}
	from := n
	for n < len(s) && s[n] >= '0' && s[n] <= '9' && n-from < 9 {
		n++
	}
	if from == n {
		return -1, n, nil
	}
	v, err := strconv.Atoi(s[from:n])
	if v > maxText {
		return 0, 0, fmt.Errorf("a width of %d is too large", v)
	}
	return v, n, err
}

func (f *formatting) next() (*Argument, error) {
	if f.at >= len(f.args) {
		return nil, fmt.Errorf("too few arguments: expected more than %d", len(f.args))
	}
	f.at++
	return &f.args[f.at-1], nil
}

func (f *formatting) argument(a *Argument, verb byte, flags string, width, precision int) (string, error) {
	text := ""
	switch {
	case verb == 't':
		text = a.Text
	case verb == 'T':
		text = a.Code
	case a.Null:
		f.null = true
		return "", nil
	case strings.IndexByte("dixXou", verb) >= 0 && a.Int != nil:
		return integerText(*a.Int, verb, flags, width, precision), nil
	case strings.IndexByte("fFeEgG", verb) >= 0 && (a.Float != nil || a.Decimal != nil):
		return realText(a, verb, flags, width, precision), nil
	case verb == 's' && a.String != nil:
		text = *a.String
	default:
		return "", fmt.Errorf("invalid type for argument %d to FORMAT: expected another than %s for %%%c", f.at+1, a.Type, verb)
	}
	if precision >= 0 && precision < utf8.RuneCountInString(text) {
		text = text[:runeOffset(text, int64(precision))]
	}
	return padded(text, flags, width), nil
}

func padded(s, flags string, width int) string {
	missing := width - utf8.RuneCountInString(s)
	if missing <= 0 {
		return s
	}
	if strings.Contains(flags, "-") {
		return s + strings.Repeat(" ", missing)
	}
	return strings.Repeat(" ", missing) + s
}

func integerText(v int64, verb byte, flags string, width, precision int) string {
	digits := strconv.FormatUint(magnitude(v), map[byte]int{'x': 16, 'X': 16, 'o': 8}[verb]+map[bool]int{true: 10}[strings.IndexByte("diu", verb) >= 0])
	if verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if len(digits) < precision {
		digits = strings.Repeat("0", precision-len(digits)) + digits
	}
	if strings.Contains(flags, "'") && strings.IndexByte("diu", verb) >= 0 {
		digits = grouped(digits)
	}
	if strings.Contains(flags, "#") {
		digits = map[byte]string{'x': "0x", 'X': "0X", 'o': "0"}[verb] + digits
	}
	return signed(v < 0, digits, flags, width, precision < 0)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// grouped puts commas between thousands.
func grouped(digits string) string {
	whole, fraction, _ := strings.Cut(digits, ".")
	var out strings.Builder
	for i, d := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	if fraction != "" || strings.HasSuffix(digits, ".") {
		out.WriteString("." + fraction)
	}
	return out.String()
}

// signed puts the sign before digits and fills up to the width.
func signed(negative bool, digits, flags string, width int, zeros bool) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case strings.Contains(flags, "+"):
		sign = "+"
	case strings.Contains(flags, " "):
		sign = " "
	}
	if missing := width - len(sign) - len(digits); missing > 0 && zeros && strings.Contains(flags, "0") && !strings.Contains(flags, "-") {
		return sign + strings.Repeat("0", missing) + digits
	}
	return padded(sign+digits, flags, width)
}

func realText(a *Argument, verb byte, flags string, width, precision int) string {
	if precision < 0 {
		precision = 6
	}
	var digits string
	negative := false
	if a.Decimal != nil && (verb == 'f' || verb == 'F') {
		negative = a.Decimal.Sign() < 0
		digits = new(big.Rat).SetFrac(new(big.Int).Abs(a.Decimal), numericUnit).FloatString(precision)
	} else {
		v := 0.0
		if a.Float != nil {
			v = *a.Float
		} else {
			v, _ = new(big.Rat).SetFrac(a.Decimal, numericUnit).Float64()
		}
		digits = fmt.Sprintf("%"+map[bool]string{true: "#"}[strings.Contains(flags, "#")]+"."+strconv.Itoa(precision)+string(verb), v)
		digits = strings.TrimPrefix(digits, "+")
		if rest, ok := strings.CutPrefix(digits, "-"); ok {
			negative, digits = true, rest
		}
		digits = strings.NewReplacer("NaN", "nan", "Inf", "inf").Replace(digits)
	}
	if strings.Contains(flags, "'") {
		digits = grouped(digits)
	}
	return signed(negative, digits, flags, width, true)
}
