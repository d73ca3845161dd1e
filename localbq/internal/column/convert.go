package column

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// convert makes a value one of a column's type, in the form that add takes: bool, int64, float64, string, []byte, int32 for a
// DATE, int64 for TIME, DATETIME and TIMESTAMP, *big.Int at the column's scale, value.Span, and []any of two for a RANGE.
func convert(f *schema.Field, v any) (any, error) {
	if n, ok := v.(Number); ok {
		switch f.Type {
		case schema.JSON:
			v = Raw(n)
		case schema.Int64, schema.Float64, schema.Numeric, schema.BigNumeric, schema.String, schema.Timestamp:
			v = string(n)
		default:
			return nil, misfit(f, v)
		}
	}
	switch f.Type {
	case schema.Bool:
		return toBool(v)
	case schema.Int64:
		return toInt64(v)
	case schema.Float64:
		return toFloat64(v)
	case schema.Numeric, schema.BigNumeric:
		return toDecimal(f, v)
	case schema.String:
		return toString(f, v)
	case schema.Bytes:
		return toBytes(f, v)
	case schema.Date:
		return parsed(v, func(d Date) (int32, error) { return int32(d), inDates(int64(d)) }, value.Date)
	case schema.Time:
		return parsed(v, func(t Time) (int64, error) { return int64(t), inDay(int64(t)) }, value.Time)
	case schema.DateTime:
		return parsed(v, func(t DateTime) (int64, error) { return int64(t), inTimes(int64(t)) }, value.DateTime)
	case schema.Timestamp:
		return toTimestamp(f, v)
	case schema.JSON:
		return toJSON(v)
	case schema.Geography:
		if s, ok := v.(string); ok {
			return value.Geography(s)
		}
	case schema.Interval:
		return parsed(v, func(s value.Span) (value.Span, error) { return s, s.Check() }, value.Interval)
	case schema.Range:
		return toRange(f, v)
	}
	return nil, misfit(f, v)
}

func misfit(f *schema.Field, v any) error {
	return fmt.Errorf("cannot convert %s to %s", kind(v), f.Type)
}

// parsed takes a value of the type's own or a text.
func parsed[V, R any](v any, own func(V) (R, error), parse func(string) (R, error)) (any, error) {
	switch v := v.(type) {
	case V:
		return own(v)
	case string:
		return parse(v)
	}
	return nil, fmt.Errorf("cannot convert %s", kind(v))
}

// The first and the last day and microsecond of the calendar: 0001-01-01 and 9999-12-31.
const (
	minDay, maxDay = -719_162, 2_932_896
	dayMicros      = 86_400_000_000
)

func inDates(days int64) error {
	if days < minDay || days > maxDay {
		return fmt.Errorf("date of %d days since 1970-01-01 is out of range", days)
	}
	return nil
}

func inDay(micros int64) error {
	if micros < 0 || micros >= dayMicros {
		return fmt.Errorf("time of %d microseconds is out of range", micros)
	}
	return nil
}

func inTimes(micros int64) error {
	if micros < minDay*dayMicros || micros >= (maxDay+1)*dayMicros {
		return fmt.Errorf("time of %d microseconds since 1970-01-01 is out of range", micros)
	}
	return nil
}

func toBool(v any) (any, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "true", "t", "yes", "y", "1":
			return true, nil
		case "false", "f", "no", "n", "0":
			return false, nil
		}
		return nil, fmt.Errorf("Could not parse '%s' as BOOL", v)
	case int64:
		if v == 0 || v == 1 {
			return v == 1, nil
		}
	}
	return nil, fmt.Errorf("Could not convert %s %v to BOOL", kind(v), v)
}

func toInt64(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		n, err := strconv.ParseInt(strings.TrimPrefix(v, "+"), 10, 64)
		if err == nil {
			return n, nil
		}
		if n, ok := exactInt(v); ok {
			return n, nil
		}
		return nil, fmt.Errorf("Could not parse '%s' as INT64", v)
	case float64:
		if v == math.Trunc(v) && v >= -1<<63 && v < 1<<63 {
			return int64(v), nil
		}
		return nil, fmt.Errorf("Could not convert value to integer: %v", v)
	case Decimal:
		if q, r := new(big.Int).QuoRem(v.Unscaled, power(v.Scale), new(big.Int)); r.Sign() == 0 && q.IsInt64() {
			return q.Int64(), nil
		}
	}
	return nil, fmt.Errorf("Could not convert %s to INT64", kind(v))
}

// exactInt reads an integer that is written as another number: 1.0, 1e3. An exponent of more than three digits, which would
// have to be written out, or a text without end is none.
func exactInt(s string) (int64, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > 400 || len(strings.TrimLeft(exponent, "+-0")) > 3 || strings.ContainsAny(s, "/xXpP_") {
		return 0, false
	}
	f, ok := new(big.Rat).SetString(s)
	if !ok || !f.IsInt() || !f.Num().IsInt64() {
		return 0, false
	}
	return f.Num().Int64(), true
}

func toFloat64(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case string:
		switch strings.ToLower(v) {
		case "nan":
			return math.NaN(), nil
		case "inf", "+inf", "infinity", "+infinity":
			return math.Inf(1), nil
		case "-inf", "-infinity":
			return math.Inf(-1), nil
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || strings.ContainsAny(v, "xXpP_") {
			return nil, fmt.Errorf("Could not parse '%s' as FLOAT64", v)
		}
		return f, nil
	case Decimal:
		f, _ := new(big.Rat).SetFrac(v.Unscaled, power(v.Scale)).Float64()
		return f, nil
	}
	return nil, fmt.Errorf("Could not convert %s to FLOAT64", kind(v))
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// text is the decimal as digits.
func (d Decimal) text() string { return string(text.AppendDecimal(nil, d.Unscaled, d.Scale)) }

func toDecimal(f *schema.Field, v any) (any, error) {
	d := value.Decimal{
		Big: f.Type == schema.BigNumeric, Precision: f.Precision, Scale: f.Scale, HalfEven: f.RoundingMode == "ROUND_HALF_EVEN",
	}
	switch v := v.(type) {
	case Decimal:
		return d.Text(v.text())
	case string:
		return d.Text(v)
	case int64:
		return d.Int(big.NewInt(v))
	case float64:
		return d.Float(v)
	}
	return nil, misfit(f, v)
}

func toString(f *schema.Field, v any) (any, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case bool:
		s = strconv.FormatBool(v)
	case int64:
		s = strconv.FormatInt(v, 10)
	case float64:
		s = string(text.AppendFloat(nil, v))
	case Decimal:
		s = v.text()
	case Date:
		s = string(text.AppendDate(nil, int64(v)))
	case Time:
		s = string(text.AppendTime(nil, int64(v)))
	case DateTime:
		s = string(text.AppendDateTime(nil, int64(v), 'T'))
	case Timestamp:
		s = string(text.AppendDateTime(nil, int64(v), ' ')) + " UTC"
	default:
		return nil, misfit(f, v)
	}
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("value is not valid UTF-8")
	}
	if n := int64(utf8.RuneCountInString(s)); f.MaxLength > 0 && n > f.MaxLength {
		return nil, tooLong(f, n)
	}
	return s, nil
}

func tooLong(f *schema.Field, n int64) error {
	return fmt.Errorf("%s(%d) has maximum length %d but got a value with length %d", f.Type, f.MaxLength, f.MaxLength, n)
}

// toBytes takes text as base64, as JSON and CSV have it.
func toBytes(f *schema.Field, v any) (any, error) {
	var b []byte
	switch v := v.(type) {
	case []byte:
		b = v
	case string:
		var err error
		if b, err = base64.StdEncoding.DecodeString(v); err != nil {
			return nil, fmt.Errorf("Could not decode base64 string to bytes: %.40q", v)
		}
	default:
		return nil, misfit(f, v)
	}
	if n := int64(len(b)); f.MaxLength > 0 && n > f.MaxLength {
		return nil, tooLong(f, n)
	}
	return b, nil
}

// toTimestamp takes numbers as seconds, which is what they are in JSON and CSV.
func toTimestamp(f *schema.Field, v any) (any, error) {
	var micros int64
	switch v := v.(type) {
	case Timestamp:
		micros = int64(v)
	case int64:
		if v > maxDay*86_400+86_400 || v < minDay*86_400 {
			return nil, fmt.Errorf("timestamp of %d seconds is out of range", v)
		}
		micros = v * 1_000_000
	case float64:
		m := math.Round(v * 1e6)
		if !(math.Abs(m) < 1<<62) {
			return nil, fmt.Errorf("timestamp of %v seconds is out of range", v)
		}
		micros = int64(m)
	case string:
		return parseTimestamp(f, v)
	default:
		return nil, misfit(f, v)
	}
	if err := inTimes(micros); err != nil {
		return nil, err
	}
	if f.Picos() {
		return value.FormatPicos(micros, 0), nil
	}
	return micros, nil
}

func parseTimestamp(f *schema.Field, s string) (any, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if whole, err := strconv.ParseInt(s, 10, 64); err == nil {
			return toTimestamp(f, whole)
		}
		return toTimestamp(f, seconds)
	}
	if f.Picos() {
		return value.TimestampPicos(s)
	}
	return value.Timestamp(s)
}

func toJSON(v any) (any, error) {
	var raw []byte
	switch v := v.(type) {
	case Raw:
		raw = v
	case string:
		raw = []byte(v)
	default:
		return nil, fmt.Errorf("cannot convert %s to JSON", kind(v))
	}
	out, err := value.AppendJSON(nil, raw)
	return string(out), err
}

// toRange takes a record of start and end, or the text [start, end).
func toRange(f *schema.Field, v any) (any, error) {
	var ends [2]any
	switch v := v.(type) {
	case Record:
		for _, m := range v {
			switch strings.ToLower(m.Name) {
			case "start":
				ends[0] = m.Value
			case "end":
				ends[1] = m.Value
			}
		}
	case string:
		inner, ok := strings.CutPrefix(v, "[")
		inner, closed := strings.CutSuffix(inner, ")")
		start, end, two := strings.Cut(inner, ",")
		if !ok || !closed || !two {
			return nil, fmt.Errorf("Could not parse '%s' as RANGE: expected [start, end)", v)
		}
		ends = [2]any{bound(start), bound(end)}
	default:
		return nil, misfit(f, v)
	}
	element := &schema.Field{Type: f.RangeElement}
	out := make([]any, 2)
	for i, e := range ends {
		if e == nil {
			continue
		}
		var err error
		if out[i], err = convert(element, e); err != nil {
			return nil, err
		}
	}
	if out[0] != nil && out[1] != nil && number(out[0]) >= number(out[1]) {
		return nil, fmt.Errorf("the start of a RANGE must be before its end")
	}
	return out, nil
}

func bound(s string) any {
	s = strings.TrimSpace(s)
	if strings.EqualFold(s, "UNBOUNDED") || strings.EqualFold(s, "NULL") {
		return nil
	}
	return s
}

func number(v any) int64 {
	if d, ok := v.(int32); ok {
		return int64(d)
	}
	return v.(int64)
}
