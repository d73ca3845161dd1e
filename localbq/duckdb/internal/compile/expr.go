package compile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// Some forms are compiled or written down twice, so that a hostile statement could take time or memory without end.
const (
	maxSteps   = 300_000
	maxSQL     = 8 << 20
	tooComplex = "The query is too complex: it exceeds what the local BigQuery compiles"
)

// expr compiles an expression. A grouping key is as good as a column of its own, whatever it is made of.
func (c *compiler) expr(e googlesql.Expr, s *scope) (value, error) {
	if c.steps++; c.steps > maxSteps {
		return value{}, e.At().Errorf("%s", tooComplex)
	}
	v, err := c.compile(e, s)
	if err != nil {
		return value{}, err
	}
	if len(v.sql) > maxSQL {
		return value{}, e.At().Errorf("%s", tooComplex)
	}
	if s.grouped[v.sql] {
		v.ungrouped = nil
	}
	return v, nil
}

func (c *compiler) compile(e googlesql.Expr, s *scope) (value, error) {
	switch e := e.(type) {
	case *googlesql.Literal:
		return literal(e)
	case *googlesql.TypedLiteral:
		return c.typedLiteral(e)
	case *googlesql.Interval:
		return c.interval(e, s)
	case *googlesql.Param:
		return c.param(e)
	case *googlesql.Path:
		return c.path(e, s)
	case *googlesql.Field:
		v, err := c.expr(e.X, s)
		if err != nil {
			return v, err
		}
		return field(v, e.Name)
	case *googlesql.Subscript:
		return c.subscript(e, s)
	case *googlesql.Call:
		return c.call(e, s)
	case *googlesql.Unary:
		return c.unary(e, s)
	case *googlesql.Binary:
		return c.binary(e, s)
	case *googlesql.Like:
		return c.like(e, s)
	case *googlesql.Between:
		return c.between(e, s)
	case *googlesql.In:
		return c.in(e, s)
	case *googlesql.Is:
		return c.is(e, s)
	case *googlesql.Case:
		return c.caseOf(e, s)
	case *googlesql.Cast:
		return c.cast(e, s)
	case *googlesql.Extract:
		return c.extract(e, s)
	case *googlesql.Array:
		return c.array(e, s)
	case *googlesql.Struct:
		return c.structOf(e, s)
	case *googlesql.Subquery:
		return c.subquery(e, s)
	}
	return value{}, e.At().Unsupported("this expression")
}

func (c *compiler) exprs(list []googlesql.Expr, s *scope) ([]value, error) {
	out := make([]value, len(list))
	for i, e := range list {
		var err error
		if out[i], err = c.expr(e, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// path resolves a column, or a function that is called without parentheses.
func (c *compiler) path(p *googlesql.Path, s *scope) (value, error) {
	v, err := c.resolve(s, p)
	if err == nil || len(p.Names) > 1 {
		return v, err
	}
	switch name := strings.ToUpper(p.Names[0].Text); name {
	case "CURRENT_DATE", "CURRENT_DATETIME", "CURRENT_TIMESTAMP", "CURRENT_TIME":
		return c.call(&googlesql.Call{Pos: p.Pos, Name: name}, s)
	}
	return v, err
}

// subscript compiles x[i] on arrays and JSON.
func (c *compiler) subscript(e *googlesql.Subscript, s *scope) (value, error) {
	x, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	i, err := c.expr(e.Index, s)
	if err != nil {
		return value{}, err
	}
	if x.typ.is(schema.JSON) && e.Kind == "" {
		return jsonSubscript(x, i)
	}
	if !x.typ.Array {
		return value{}, e.Pos.Errorf("Subscript access using [%s] is not supported on values of type %s", i.typ, x.typ)
	}
	n, ok := coerce(i, int64Type)
	if !ok {
		return value{}, e.Pos.Errorf("Array position in [] must be coercible to INT64 type, but has type %s", i.typ)
	}
	operands := []value{x, n}
	t := settled(x.typ.element())
	// The position is checked outside, because DuckDB answers NULL for one that is not there, and counts back from the end.
	format := map[string]string{
		"": "list_extract(%[1]s, bq_offset(%[2]s, len(%[1]s)))", "OFFSET": "list_extract(%[1]s, bq_offset(%[2]s, len(%[1]s)))",
		"ORDINAL":      "list_extract(%[1]s, bq_ordinal(%[2]s, len(%[1]s)))",
		"SAFE_OFFSET":  "list_extract(%[1]s, bq_safe_offset(%[2]s, len(%[1]s)))",
		"SAFE_ORDINAL": "list_extract(%[1]s, bq_safe_ordinal(%[2]s, len(%[1]s)))",
	}[e.Kind]
	return expr(e.Pos, t, operands, format, x.sql, n.sql), nil
}

func jsonSubscript(x, i value) (value, error) {
	switch {
	case i.literal != nil && i.literal.Kind == googlesql.String:
		return x.jsonStep(i.literal.Text), nil
	case i.literal != nil && i.literal.Kind == googlesql.Integer:
		n, err := strconv.ParseInt(i.literal.Text, 0, 64)
		if err != nil || n < 0 {
			return expr(x.pos, jsonType, []value{x, i}, "CAST(NULL AS VARCHAR)"), nil
		}
		return x.jsonIndex(n), nil
	case i.typ.is(schema.String):
		return expr(x.pos, jsonType, []value{x, i}, "CAST(json_extract(%s, '/' || replace(replace(%s, '~', '~0'), '/', '~1')) AS VARCHAR)", x.sql, i.sql), nil
	case i.typ.is(schema.Int64):
		return expr(x.pos, jsonType, []value{x, i}, "CAST(CASE WHEN %[2]s >= 0 THEN json_extract(%[1]s, '$[' || CAST(%[2]s AS VARCHAR) || ']') END AS VARCHAR)", x.sql, i.sql), nil
	}
	return value{}, i.pos.Errorf("Subscript access using [%s] is not supported on values of type JSON", i.typ)
}

func (c *compiler) caseOf(e *googlesql.Case, s *scope) (value, error) {
	conditions := make([]value, len(e.Whens))
	results := make([]value, len(e.Whens), len(e.Whens)+1)
	for i, w := range e.Whens {
		var err error
		if e.Operand != nil {
			conditions[i], err = c.binary(&googlesql.Binary{Pos: w.If.At(), Op: "=", X: e.Operand, Y: w.If}, s)
		} else {
			conditions[i], err = c.condition(w.If, s, "CASE condition")
		}
		if err != nil {
			return value{}, err
		}
		if results[i], err = c.expr(w.Then, s); err != nil {
			return value{}, err
		}
	}
	if e.Else != nil {
		v, err := c.expr(e.Else, s)
		if err != nil {
			return value{}, err
		}
		results = append(results, v)
	}
	t, results, err := together(results, e.Pos, "operator CASE")
	if err != nil {
		return value{}, err
	}
	var b strings.Builder
	for i, w := range conditions {
		fmt.Fprintf(&b, " WHEN %s THEN %s", w.sql, results[i].sql)
	}
	if e.Else != nil {
		fmt.Fprintf(&b, " ELSE %s", results[len(e.Whens)].sql)
	}
	return expr(e.Pos, t, append(conditions, results...), "CASE%s END", b.String()), nil
}

// together gives values the one type that all of them become.
func together(values []value, pos googlesql.Pos, what string) (Type, []value, error) {
	if err := badLiteral(values); err != nil {
		return Type{}, nil, err
	}
	t, ok := common(values)
	if !ok {
		return Type{}, nil, noSignature(what, values, pos)
	}
	out := make([]value, len(values))
	for i, v := range values {
		if out[i], ok = coerce(v, t); !ok {
			return Type{}, nil, noSignature(what, values, pos)
		}
	}
	return t, out, nil
}

// badLiteral refuses a text that stands where a date or time is wanted and is none.
func badLiteral(values []value) error {
	for _, wanted := range values {
		if wanted.gives() || wanted.typ.Array {
			continue
		}
		for _, v := range values {
			if v.text == nil {
				continue
			}
			if _, err := civilLiteral(*v.text, wanted.typ.Kind); err != nil {
				return v.pos.Errorf("Could not cast literal %s to type %s", text.Quoted(*v.text), wanted.typ)
			}
		}
	}
	return nil
}

// common is the type that all values become. Literals give way to what is not one.
func common(values []value) (Type, bool) {
	var t Type
	for _, v := range values {
		if !v.gives() {
			var ok bool
			if t, ok = supertype(t, v.typ); !ok {
				return t, false
			}
		}
	}
	for _, v := range values {
		if _, ok := coerce(v, t); v.gives() && (t.untyped() || !ok) {
			if t, ok = supertype(t, v.typ); !ok {
				return t, false
			}
		}
	}
	return t, true
}

// gives reports whether a value takes whatever type is wanted before its own counts.
func (v value) gives() bool {
	return v.typ.untyped() || v.text != nil || v.literal != nil && v.literal.Kind == googlesql.Float
}

// noSignature is the error for operands that no signature takes.
func noSignature(what string, operands []value, pos googlesql.Pos) error {
	names := make([]string, len(operands))
	for i, v := range operands {
		names[i] = v.typ.String()
	}
	return pos.Errorf("No matching signature for %s for argument types: %s", what, strings.Join(names, ", "))
}

func (c *compiler) array(e *googlesql.Array, s *scope) (value, error) {
	elements, err := c.exprs(e.Elements, s)
	if err != nil {
		return value{}, err
	}
	if e.Element != nil {
		return c.typedArray(e, elements)
	}
	if len(elements) == 0 {
		return value{sql: "[]", typ: Type{Array: true}, pos: e.Pos}, nil
	}
	t, ok := common(elements)
	if !ok {
		names := make([]string, len(elements))
		for i, v := range elements {
			names[i] = v.typ.String()
		}
		return value{}, e.Pos.Errorf("Array elements of types {%s} do not have a common supertype", strings.Join(names, ", "))
	}
	if t = settled(t); t.Array {
		return value{}, e.Pos.Errorf("Cannot construct array with element type %s because nested arrays are not supported", t)
	}
	return listOf(elements, t, e.Pos)
}

func (c *compiler) typedArray(e *googlesql.Array, elements []value) (value, error) {
	t, err := typeOf(e.Element)
	if err != nil {
		return value{}, err
	}
	if t.Array {
		return value{}, e.Pos.Errorf("Arrays of arrays are not supported")
	}
	if len(elements) == 0 {
		return value{sql: cast("[]", arrayOf(t)), typ: arrayOf(t), pos: e.Pos}, nil
	}
	return listOf(elements, t, e.Pos)
}

func listOf(elements []value, t Type, pos googlesql.Pos) (value, error) {
	items := make([]string, len(elements))
	for i, v := range elements {
		w, ok := coerce(v, t)
		if !ok {
			return value{}, v.pos.Errorf("Array element type %s does not coerce to %s", v.typ, t)
		}
		items[i] = w.sql
	}
	return expr(pos, arrayOf(t), elements, "[%s]", strings.Join(items, ", ")), nil
}

func (c *compiler) structOf(e *googlesql.Struct, s *scope) (value, error) {
	fields, err := c.exprs(e.Fields, s)
	if err != nil {
		return value{}, err
	}
	items := make([]item, len(fields))
	for i, v := range fields {
		items[i] = item{value: v}
		if e.Names[i] != nil {
			items[i].name = e.Names[i].Text
		} else if _, named := e.Fields[i].(*googlesql.Path); !named {
			items[i].name = ""
		}
	}
	if e.Type == nil {
		return packed(items, e.Pos), nil
	}
	t, err := typeOf(e.Type)
	if err != nil {
		return value{}, err
	}
	if len(t.Fields) != len(fields) {
		return value{}, e.Pos.Errorf("STRUCT type has %d fields but constructor call has %d fields", len(t.Fields), len(fields))
	}
	for i, f := range t.Fields {
		v, ok := coerce(items[i].value, f.Type)
		if !ok {
			return value{}, items[i].pos.Errorf("Struct field %d has type %s which does not coerce to %s", i+1, items[i].typ, f.Type)
		}
		v.name = f.Name
		items[i].value = v
	}
	out := packed(items, e.Pos)
	out.typ = t
	return out, nil
}

func (c *compiler) subquery(e *googlesql.Subquery, s *scope) (value, error) {
	r, err := c.query(e.Query, s)
	if err != nil {
		return value{}, err
	}
	if e.Kind == "EXISTS" {
		return value{sql: "EXISTS (" + r.sql + ")", typ: boolean, pos: e.Pos}, nil
	}
	if len(r.columns) != 1 {
		what := "Scalar subquery"
		if e.Kind == "ARRAY" {
			what = "ARRAY subquery"
		}
		return value{}, e.Pos.Errorf("%s cannot have more than one column unless using SELECT AS STRUCT to build STRUCT values", what)
	}
	t := settled(r.columns[0].typ)
	if e.Kind == "" {
		return value{sql: "(" + r.sql + ")", typ: t, pos: e.Pos}, nil
	}
	if t.Array {
		return value{}, e.Pos.Errorf("Cannot use array subquery with column of type %s because nested arrays are not supported", t)
	}
	return value{sql: "ARRAY(" + r.sql + ")", typ: arrayOf(t), pos: e.Pos}, nil
}
