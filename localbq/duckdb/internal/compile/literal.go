package compile

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
	civil "github.com/millrace-dev/millrace/localbq/internal/value"
)

func literal(l *googlesql.Literal) (value, error) {
	v := value{pos: l.Pos, literal: l}
	switch l.Kind {
	case googlesql.Null:
		v.sql = "NULL"
	case googlesql.Bool:
		v.sql, v.typ = l.Text, boolean
	case googlesql.Integer:
		n, err := strconv.ParseInt(l.Text, 0, 64)
		if err != nil {
			return v, l.Pos.Errorf("Invalid integer literal: %s", l.Text)
		}
		v.sql, v.typ = cast("'"+strconv.FormatInt(n, 10)+"'", int64Type), int64Type
	case googlesql.Float:
		f, err := strconv.ParseFloat(l.Text, 64)
		if err != nil {
			return v, l.Pos.Errorf("Invalid floating point literal: %s", l.Text)
		}
		v.sql, v.typ = cast("'"+strconv.FormatFloat(f, 'e', -1, 64)+"'", float64T), float64T
	case googlesql.String:
		v.sql, v.typ, v.text = quote(l.Text), stringType, &l.Text
	case googlesql.Bytes:
		v.sql, v.typ = quoteBytes(l.Text), bytesType
	}
	return v, nil
}

// typedLiteral compiles DATE '2020-01-01' and the like.
func (c *compiler) typedLiteral(l *googlesql.TypedLiteral) (value, error) {
	k, _ := schema.ParseType(l.Type) // the syntax knows types only
	v := value{pos: l.Pos, typ: Type{Kind: k}}
	var err error
	switch k {
	case schema.Numeric, schema.BigNumeric:
		out, ok := decimalLiteral(strings.TrimSpace(l.Text), v.typ, v)
		if !ok {
			return v, l.Pos.Errorf("Invalid %s literal: %s", k, text.Quoted(l.Text))
		}
		return out, nil
	case schema.JSON:
		var normal []byte
		normal, err = civil.AppendJSON(nil, []byte(l.Text))
		v.sql = quote(string(normal))
	case schema.Range:
		return c.rangeLiteral(l)
	default:
		v.sql, err = civilLiteral(l.Text, k)
	}
	if err != nil {
		return v, l.Pos.Errorf("Invalid %s literal: %v", k, err)
	}
	return v, nil
}

// rangeLiteral compiles RANGE<T> '[start, end)'.
func (c *compiler) rangeLiteral(l *googlesql.TypedLiteral) (value, error) {
	element, err := typeOf(l.Element)
	if err != nil {
		return value{}, err
	}
	body, okOpen := strings.CutPrefix(strings.TrimSpace(l.Text), "[")
	body, okClose := strings.CutSuffix(body, ")")
	low, high, okComma := strings.Cut(body, ",")
	if !okOpen || !okClose || !okComma {
		return value{}, l.Pos.Errorf("Invalid RANGE literal: expected '[start, end)', got %s", text.Quoted(l.Text))
	}
	t := Type{Kind: schema.Range, Range: element.Kind}
	ends := [2]string{}
	for i, end := range []string{low, high} {
		if end = strings.TrimSpace(end); strings.EqualFold(end, "UNBOUNDED") || strings.EqualFold(end, "NULL") {
			ends[i] = "NULL"
			continue
		}
		if ends[i], err = civilLiteral(end, element.Kind); err != nil || ends[i] == "" {
			return value{}, l.Pos.Errorf("Invalid RANGE literal: %s", text.Quoted(l.Text))
		}
	}
	return value{pos: l.Pos, typ: t, sql: cast("struct_pack(_0 := "+ends[0]+", _1 := "+ends[1]+")", t)}, nil
}

// interval compiles INTERVAL x part, or INTERVAL 'text' part TO part.
func (c *compiler) interval(e *googlesql.Interval, s *scope) (value, error) {
	x, err := c.expr(e.Value, s)
	if err != nil {
		return value{}, err
	}
	if e.To != "" || x.typ.is(schema.String) {
		t, ok := coerce(x, stringType)
		if !ok || e.To == "" && x.literal == nil {
			return value{}, e.Pos.Errorf("Invalid interval literal: expected a number, or a string with two parts")
		}
		return expr(e.Pos, interval, []value{x}, "bq_interval_text(%s, %s)", t.sql, quote(e.From+" "+e.To)), nil
	}
	n, ok := coerce(x, int64Type)
	if !ok {
		return value{}, e.Pos.Errorf("Interval value must be coercible to INT64 type, but has type %s", x.typ)
	}
	if !intervalParts[e.From] {
		return value{}, e.Pos.Errorf("Invalid interval datetime field '%s'", e.From)
	}
	return expr(e.Pos, interval, []value{x}, "bq_interval(%s, %s)", n.sql, quote(e.From)), nil
}

var intervalParts = words("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
