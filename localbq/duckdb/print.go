//go:build cgo

package duckdb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/bignumeric"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/scalar"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// printing are the functions that take values of any type, whose GoogleSQL type is spelt out in an argument
// (compile.Type.Spell): TO_JSON_STRING and FORMAT.
func printing() []native.Function {
	toJSON := native.Function{Result: native.Varchar, SeesNulls: true, Params: []native.Type{native.Any, native.Varchar, native.Bool}, Run: runToJSON}
	format := native.Function{Result: native.Varchar, SeesNulls: true, Params: []native.Type{native.Varchar, native.Varchar}, Variadic: true, Run: runFormat}
	toJSON.Name, format.Name = "bq_to_json", "bq_format"
	safeJSON, safeFormat := toJSON, format
	safeJSON.Name, safeFormat.Name = "bqs_to_json", "bqs_format"
	return []native.Function{toJSON, format, safeJSON, safeFormat}
}

var spelt sync.Map // text to *schema.Field

func spelling(s string) (*schema.Field, error) {
	if f, ok := spelt.Load(s); ok {
		return f.(*schema.Field), nil
	}
	f := &schema.Field{}
	if err := json.Unmarshal([]byte(s), f); err != nil {
		return nil, fmt.Errorf("a type is spelt %q: %w", s, err)
	}
	spelt.Store(strings.Clone(s), f)
	return f, nil
}

func runToJSON(args []native.Vector, n int, out *native.Vector) error {
	for i := range n {
		f, err := spelling(kText.get(&args[1], i))
		if err != nil {
			return err
		}
		doc := appendJSON(nil, f, &args[0], i)
		if !args[2].Null(i) && kBool.get(&args[2], i) {
			pretty, err := scalar.Indent(string(doc))
			if err != nil {
				return err
			}
			doc = []byte(pretty)
		}
		out.SetBytes(i, doc)
	}
	return nil
}

// appendJSON writes a value as TO_JSON_STRING does.
func appendJSON(dst []byte, f *schema.Field, v *native.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, "null"...)
	}
	if f.Mode == schema.Repeated {
		element := *f
		element.Mode = schema.Nullable
		span := native.Values[native.Span](v, i+1)[i]
		elements, _ := v.Elements()
		dst = append(dst, '[')
		for k := range int(span.Length) {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, &element, &elements, int(span.Offset)+k)
		}
		return append(dst, ']')
	}
	return appendScalarJSON(dst, f, v, i)
}

func appendScalarJSON(dst []byte, f *schema.Field, v *native.Vector, i int) []byte {
	switch f.Type {
	case schema.Struct:
		dst = append(dst, '{')
		for k, m := range f.Fields {
			if k > 0 {
				dst = append(dst, ',')
			}
			member := v.Member(k)
			dst = append(appendQuoted(dst, m.Name), ':')
			dst = appendJSON(dst, m, &member, i)
		}
		return append(dst, '}')
	case schema.Int64:
		return appendIntJSON(dst, kInt.get(v, i))
	case schema.Float64:
		return appendFloatJSON(dst, kFloat.get(v, i))
	case schema.Bool:
		return strconv.AppendBool(dst, kBool.get(v, i))
	case schema.JSON:
		return append(dst, v.Bytes(i)...)
	case schema.Bytes:
		return appendQuoted(dst, base64.StdEncoding.EncodeToString(v.Bytes(i)))
	case schema.Numeric, schema.BigNumeric:
		return appendDecimalJSON(dst, string(appendText(nil, f, v, i)))
	case schema.DateTime:
		return append(text.AppendDateTime(append(dst, '"'), kTimestamp.get(v, i), 'T'), '"')
	case schema.Timestamp:
		return append(text.AppendDateTime(append(dst, '"'), kTimestamp.get(v, i), 'T'), `Z"`...)
	}
	return appendQuoted(dst, string(appendText(nil, f, v, i)))
}

// Integers and decimals that a double cannot hold are strings (GoogleSQL reference, "JSON encodings").
const maxExact = 1 << 53

func appendIntJSON(dst []byte, n int64) []byte {
	if n > -maxExact && n < maxExact {
		return strconv.AppendInt(dst, n, 10)
	}
	return append(strconv.AppendInt(append(dst, '"'), n, 10), '"')
}

func appendFloatJSON(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return text.AppendSQLFloat(dst, f)
}

func appendDecimalJSON(dst []byte, s string) []byte {
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s {
		return append(dst, s...)
	}
	return appendQuoted(dst, s)
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\b':
			dst = append(dst, `\b`...)
		case r == '\f':
			dst = append(dst, `\f`...)
		case r < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendText writes a scalar as CAST(x AS STRING) does.
func appendText(dst []byte, f *schema.Field, v *native.Vector, i int) []byte {
	switch f.Type {
	case schema.Int64:
		return strconv.AppendInt(dst, kInt.get(v, i), 10)
	case schema.Float64:
		return text.AppendSQLFloat(dst, kFloat.get(v, i))
	case schema.Bool:
		return strconv.AppendBool(dst, kBool.get(v, i))
	case schema.Numeric:
		return text.AppendDecimal(dst, kNumeric.get(v, i), 9)
	case schema.BigNumeric:
		return text.AppendDecimal(dst, kBigNumeric.get(v, i), bignumeric.Scale)
	case schema.Date:
		return text.AppendDate(dst, int64(kDate.get(v, i)))
	case schema.Time:
		return text.AppendSQLTime(dst, kTime.get(v, i))
	case schema.DateTime:
		return text.AppendSQLDateTime(dst, kTimestamp.get(v, i))
	case schema.Timestamp:
		return append(text.AppendSQLDateTime(dst, kTimestamp.get(v, i)), "+00"...)
	case schema.Interval:
		s := kSpan.get(v, i)
		return text.AppendInterval(dst, int64(s.Months), int64(s.Days), s.Micros)
	case schema.Range:
		return appendRangeText(dst, f, v, i)
	}
	return append(dst, v.Bytes(i)...)
}

func appendRangeText(dst []byte, f *schema.Field, v *native.Vector, i int) []byte {
	for k, open := range []string{"[", ", "} {
		dst = append(dst, open...)
		end := v.Member(k)
		if end.Null(i) {
			dst = append(dst, "UNBOUNDED"...)
		} else {
			dst = appendText(dst, &schema.Field{Type: f.RangeElement}, &end, i)
		}
	}
	return append(dst, ')')
}

// runFormat is FORMAT(format, types, arguments…): the types are spelt on a line each.
func runFormat(args []native.Vector, n int, out *native.Vector) error {
	for i := range n {
		if args[0].Null(i) {
			out.SetNull(i)
			continue
		}
		var values []scalar.Argument
		if names := kText.get(&args[1], i); names != "" {
			for k, s := range strings.Split(names, "\n") {
				f, err := spelling(s)
				if err != nil {
					return err
				}
				values = append(values, argument(f, &args[k+2], i))
			}
		}
		s, ok, err := scalar.Format(kText.get(&args[0], i), values)
		if err := outcome(kText, out, i, s, ok, err, false); err != nil {
			return err
		}
	}
	return nil
}

// argument is a value as FORMAT sees it.
func argument(f *schema.Field, v *native.Vector, i int) scalar.Argument {
	a := scalar.Argument{Type: f.Type.String(), Null: v.Null(i)}
	a.Text, a.Code = formatText(f, v, i, false), formatText(f, v, i, true)
	if a.Null || f.Mode == schema.Repeated {
		return a
	}
	switch f.Type {
	case schema.Int64:
		a.Int = new(kInt.get(v, i))
	case schema.Float64:
		a.Float = new(kFloat.get(v, i))
	case schema.Numeric:
		a.Decimal = kNumeric.get(v, i)
	case schema.String:
		a.String = new(string(v.Bytes(i)))
	}
	return a
}

// formatText is what %t prints, or with code %T, which reads back as the same value.
func formatText(f *schema.Field, v *native.Vector, i int, code bool) string {
	if v.Null(i) {
		return "NULL"
	}
	if f.Mode == schema.Repeated {
		element := *f
		element.Mode = schema.Nullable
		span := native.Values[native.Span](v, i+1)[i]
		elements, _ := v.Elements()
		items := make([]string, span.Length)
		for k := range items {
			items[k] = formatText(&element, &elements, int(span.Offset)+k, code)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if f.Type == schema.Struct {
		items := make([]string, len(f.Fields))
		for k, m := range f.Fields {
			member := v.Member(k)
			items[k] = formatText(m, &member, i, code)
		}
		return "(" + strings.Join(items, ", ") + ")"
	}
	s := string(appendText(nil, f, v, i))
	switch {
	case f.Type == schema.Float64 && !strings.ContainsAny(s, ".en"):
		return s + ".0"
	case !code:
		return s
	case f.Type == schema.String:
		return text.Quoted(s)
	case f.Type == schema.Bytes:
		return "b" + text.Quoted(s)
	case f.Type == schema.Int64 || f.Type == schema.Float64 || f.Type == schema.Bool:
		return s
	}
	return f.Type.String() + " " + text.Quoted(s)
}
