package compile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/bignumeric"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
	civil "github.com/millrace-dev/millrace/localbq/internal/value"
)

// value is an expression that has been compiled.
type value struct {
	sql string // as DuckDB reads it, safe to stand anywhere an expression can
	typ Type
	pos googlesql.Pos
	// name is the alias the expression has where none is given; "" for none.
	name string
	// literal is set for a literal; text for a string literal or a STRING parameter, which may become a date or time.
	literal *googlesql.Literal
	text    *string
	stored  bool // see column.stored
	// json is set for a part of a JSON value: where it is and in what.
	json *jsonPart
	// aggregate and analytic tell of functions inside; ungrouped is the first column of the query's own FROM clause that is
	// used outside of aggregates and of grouping keys.
	aggregate, analytic bool
	ungrouped           *googlesql.Path
}

// from keeps of the operands what holds for an expression over them.
func (v value) from(operands ...value) value {
	for _, o := range operands {
		v.aggregate = v.aggregate || o.aggregate
		v.analytic = v.analytic || o.analytic
		if v.ungrouped == nil {
			v.ungrouped = o.ungrouped
		}
	}
	return v
}

// expr is a value of a type, of an expression at pos over operands.
func expr(pos googlesql.Pos, t Type, operands []value, format string, args ...any) value {
	return value{sql: fmt.Sprintf(format, args...), typ: t, pos: pos}.from(operands...)
}

// quote is a string as a DuckDB literal. A NUL would end the statement's text: it is put together from pieces.
func quote(s string) string {
	if strings.Contains(s, "\x00") {
		pieces := strings.Split(s, "\x00")
		for i := range pieces {
			pieces[i] = quote(pieces[i])
		}
		return "(" + strings.Join(pieces, " || chr(0) || ") + ")"
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

func quoteBytes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02X`, s[i])
	}
	return "CAST('" + b.String() + "' AS BLOB)"
}

func cast(sql string, t Type) string { return "CAST(" + sql + " AS " + t.Duck() + ")" }

// coerce makes v a value of type t if GoogleSQL does so by itself: NULL becomes anything, numbers become wider, and a
// literal may become more than that.
func coerce(v value, t Type) (value, bool) {
	out := v
	out.typ = t
	switch {
	case v.typ.same(t):
		return out, true
	case v.typ.untyped() || emptyArray(v) && t.Array:
		out.sql = cast(v.sql, t)
		return out, true
	case t.Kind == schema.Struct && v.typ.Kind == schema.Struct && !t.Array && !v.typ.Array:
		if s, ok := supertype(t, v.typ); !ok || !s.same(t) {
			return v, false
		}
		out.sql = cast(v.sql, t)
		return out, true
	case t.Array || v.typ.Array:
		return v, false
	case widens(v.typ.Kind, t.Kind):
		out.sql = widen(v.sql, v.typ.Kind, t.Kind)
		out.literal, out.text = nil, nil
		return out, true
	case v.literal != nil && v.literal.Kind == googlesql.Float && (t.is(schema.Numeric) || t.is(schema.BigNumeric)):
		return decimalLiteral(v.literal.Text, t, v)
	case v.text != nil:
		return textLiteral(*v.text, t, v)
	}
	return v, false
}

// emptyArray reports whether v is [], which has no type yet.
func emptyArray(v value) bool { return v.typ.Array && v.typ.Kind == 0 }

func widen(sql string, from, to schema.Type) string {
	if to == schema.BigNumeric {
		return "bq_bignumeric(" + sql + ")"
	}
	if from == schema.BigNumeric {
		return "bq_bignumeric_float64(" + sql + ")"
	}
	return cast(sql, Type{Kind: to})
}

// textLiteral is a string literal where a date or time is wanted.
func textLiteral(s string, t Type, v value) (value, bool) {
	sql, err := civilLiteral(s, t.Kind)
	if err != nil || sql == "" {
		return v, false
	}
	out := v
	out.sql, out.typ, out.text, out.literal = sql, t, nil, nil
	return out, true
}

// civilLiteral is a date or time as DuckDB reads it; "" for a type that is none of them.
func civilLiteral(s string, k schema.Type) (string, error) {
	switch k {
	case schema.Date:
		days, err := civil.Date(s)
		return "CAST('" + string(text.AppendDate(nil, int64(days))) + "' AS DATE)", err
	case schema.Time:
		micros, err := civil.Time(s)
		return "CAST('" + string(text.AppendTime(nil, micros)) + "' AS TIME)", err
	case schema.DateTime:
		micros, err := civil.DateTime(s)
		return microsLiteral(micros), err
	case schema.Timestamp:
		micros, err := civil.Timestamp(s)
		return microsLiteral(micros), err
	}
	return "", nil
}

func microsLiteral(micros int64) string {
	return "make_timestamp(CAST(" + strconv.FormatInt(micros, 10) + " AS BIGINT))"
}

// decimalLiteral is the text of a number as NUMERIC or BIGNUMERIC.
func decimalLiteral(number string, t Type, v value) (value, bool) {
	d := civil.Decimal{Big: t.Kind == schema.BigNumeric}
	n, err := d.Text(number)
	if err != nil {
		return v, false
	}
	out := v
	out.typ, out.literal = t, nil
	if t.Kind == schema.BigNumeric {
		out.sql = quoteBytes(string(bignumeric.Encode(n)))
	} else {
		out.sql = cast("'"+string(text.AppendDecimal(nil, n, 9))+"'", numeric)
	}
	return out, true
}
