package compile

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// call compiles a function call.
func (c *compiler) call(e *googlesql.Call, s *scope) (value, error) {
	switch {
	case e.Over != nil:
		return c.analytic(e, s)
	case aggregates[e.Name] != nil || specialAggregate(e.Name) != nil:
		return c.aggregate(e, s)
	case analytics[e.Name] != nil:
		return value{}, e.Pos.Errorf("Analytic function %s cannot be called without an OVER clause", e.Name)
	}
	if err := plain(e); err != nil {
		return value{}, err
	}
	if compile := special(e.Name); compile != nil {
		return compile(c, e, s)
	}
	return c.function(e, s)
}

// plain refuses what only aggregates take.
func plain(e *googlesql.Call) error {
	switch {
	case e.Distinct:
		return e.Pos.Errorf("Non-aggregate %s() call cannot use DISTINCT", e.Name)
	case e.Star:
		return e.Pos.Errorf("Argument * can only be used in COUNT(*)")
	case e.OrderBy != nil, e.Limit != nil, e.Nulls != "", e.Having != nil:
		return e.Pos.Errorf("Non-aggregate %s() call cannot use ORDER BY, LIMIT, HAVING or IGNORE NULLS", e.Name)
	case e.Named != nil:
		return e.Named[0].Name.Pos.Unsupported("named arguments: %s of %s", e.Named[0].Name.Text, e.Name)
	}
	return nil
}

// function compiles a call of a function in the table.
func (c *compiler) function(e *googlesql.Call, s *scope) (value, error) {
	if signatures[e.Name] == nil || strings.HasPrefix(e.Name, "$") {
		return value{}, unknownFunction(e)
	}
	args, err := c.arguments(e, s)
	if err != nil {
		return value{}, err
	}
	v, ok, err := c.applyArguments(e.Name, args, e.Safe, e.Pos)
	switch {
	case err != nil:
		return value{}, err
	case !ok:
		return value{}, noFunctionSignature(e, args)
	case e.Safe && strings.HasPrefix(v.sql, "TRY(") && (v.aggregate || v.analytic):
		return value{}, e.Pos.Unsupported("SAFE.%s over aggregates", e.Name)
	}
	return v, nil
}

// unknownFunction tells a function of GoogleSQL from one that does not exist.
func unknownFunction(e *googlesql.Call) error {
	if known[e.Name] || strings.HasPrefix(e.Name, "ST_") || strings.HasPrefix(e.Name, "ML.") || strings.HasPrefix(e.Name, "AI.") {
		return e.Pos.Unsupported("function %s", e.Name)
	}
	return e.Pos.Errorf("Function not found: %s", e.Name)
}

func noFunctionSignature(e *googlesql.Call, args []argument) error {
	names := make([]string, len(args))
	for i, a := range args {
		switch {
		case a.span != nil && a.span.To == "" && !takes(e.Name, i, func(p parameter) bool { return p.parts[a.span.From] }):
			return a.span.Pos.Errorf("%s does not support the %s date part", e.Name, a.span.From)
		case a.span != nil:
			names[i] = "INTERVAL"
		case a.sql == "":
			names[i] = "DATE_TIME_PART"
		default:
			names[i] = a.typ.String()
		}
	}
	if len(args) == 0 {
		return e.Pos.Errorf("No matching signature for function %s with no arguments", e.Name)
	}
	return e.Pos.Errorf("No matching signature for function %s for argument types: %s", e.Name, strings.Join(names, ", "))
}

// arguments compiles the arguments of a function in the table. A word that may be a date part is left to the signature.
func (c *compiler) arguments(e *googlesql.Call, s *scope) ([]argument, error) {
	args := make([]argument, len(e.Args))
	for i, x := range e.Args {
		args[i].expr = x
		var err error
		switch {
		case takesSpan(e.Name, i):
			err = c.spanArgument(&args[i], x, s)
		case takesPart(e.Name, i):
			if _, ok := datePart(x, partSets["all"]); ok {
				continue
			}
			args[i].value, err = c.expr(x, s)
		default:
			args[i].value, err = c.expr(x, s)
		}
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (c *compiler) spanArgument(a *argument, x googlesql.Expr, s *scope) error {
	span, ok := x.(*googlesql.Interval)
	if !ok {
		var err error
		a.value, err = c.expr(x, s)
		return err
	}
	n, err := c.expr(span.Value, s)
	if err != nil {
		return err
	}
	a.span = span
	if a.value, ok = coerce(n, int64Type); !ok {
		return span.Pos.Errorf("Interval value must be coercible to INT64 type, but has type %s", n.typ)
	}
	return nil
}

func takesSpan(name string, i int) bool {
	return takes(name, i, func(p parameter) bool { return p.span })
}
func takesPart(name string, i int) bool {
	return takes(name, i, func(p parameter) bool { return p.parts != nil && !p.span })
}

func takes(name string, i int, what func(parameter) bool) bool {
	for _, s := range signatures[name] {
		if i < len(s.params) && what(s.params[i]) {
			return true
		}
	}
	return false
}

// special finds functions whose meaning a template cannot say, nil for all others.
func special(name string) func(*compiler, *googlesql.Call, *scope) (value, error) {
	switch name {
	case "CURRENT_TIMESTAMP", "CURRENT_DATETIME", "CURRENT_DATE", "CURRENT_TIME":
		return (*compiler).now
	case "SESSION_USER":
		return (*compiler).sessionUser
	case "TO_JSON_STRING", "TO_JSON":
		return (*compiler).toJSON
	case "FORMAT":
		return (*compiler).format
	case "JSON_VALUE", "JSON_QUERY", "JSON_EXTRACT", "JSON_EXTRACT_SCALAR", "JSON_QUERY_ARRAY", "JSON_EXTRACT_ARRAY",
		"JSON_VALUE_ARRAY", "JSON_EXTRACT_STRING_ARRAY":
		return (*compiler).jsonFunction
	}
	return nil
}

// now is the instant of the service's clock, in a zone where one is given.
func (c *compiler) now(e *googlesql.Call, s *scope) (value, error) {
	c.volatile = true
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	at := value{sql: microsLiteral(c.env.Now.UnixMicro()), typ: timestamp, pos: e.Pos}
	if len(args) > 1 || len(args) == 1 && e.Name == "CURRENT_TIMESTAMP" {
		return value{}, noSignature("function "+e.Name, args, e.Pos)
	}
	if e.Name == "CURRENT_TIMESTAMP" {
		return at, nil
	}
	name := strings.TrimPrefix(e.Name, "CURRENT_")
	v, ok, err := c.apply(name, append([]value{at}, args...), e.Pos)
	if err == nil && !ok {
		err = noSignature("function "+e.Name, args, e.Pos)
	}
	return v, err
}

func (c *compiler) sessionUser(e *googlesql.Call, _ *scope) (value, error) {
	if len(e.Args) > 0 {
		return value{}, e.Pos.Errorf("No matching signature for function SESSION_USER")
	}
	c.volatile = true
	return value{sql: quote(c.env.User), typ: stringType, pos: e.Pos}, nil
}

// toJSON compiles TO_JSON and TO_JSON_STRING, for which the type is spelt out, because DuckDB knows no names of members.
func (c *compiler) toJSON(e *googlesql.Call, s *scope) (value, error) {
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	pretty := "FALSE"
	switch {
	case len(args) == 2 && e.Name == "TO_JSON_STRING" && args[1].typ.is(schema.Bool):
		pretty = args[1].sql
	case len(args) != 1:
		return value{}, noSignature("function "+e.Name, args, e.Pos)
	}
	t := stringType
	if e.Name == "TO_JSON" {
		t = jsonType
	}
	return expr(e.Pos, t, args, "bq_to_json(%s, %s, %s)", args[0].sql, quote(args[0].typ.Spell()), pretty), nil
}

// format compiles FORMAT, whose arguments are of any type.
func (c *compiler) format(e *googlesql.Call, s *scope) (value, error) {
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	if len(args) == 0 || !args[0].typ.is(schema.String) {
		return value{}, noSignature("function FORMAT", args, e.Pos)
	}
	types := make([]string, 0, len(args))
	list := ""
	for _, a := range args[1:] {
		types = append(types, a.typ.Spell())
		list += ", " + a.sql
	}
	return expr(e.Pos, stringType, args, "bq_format(%s, %s%s)", args[0].sql, quote(strings.Join(types, "\n")), list), nil
}

// jsonFunctions are the functions that take a JSONPath: what they answer for a STRING and for a JSON.
var jsonFunctions = map[string]struct {
	scalar, list bool
}{
	"JSON_VALUE": {scalar: true}, "JSON_EXTRACT_SCALAR": {scalar: true}, "JSON_QUERY": {}, "JSON_EXTRACT": {},
	"JSON_QUERY_ARRAY": {list: true}, "JSON_EXTRACT_ARRAY": {list: true},
	"JSON_VALUE_ARRAY": {scalar: true, list: true}, "JSON_EXTRACT_STRING_ARRAY": {scalar: true, list: true},
}

func (c *compiler) jsonFunction(e *googlesql.Call, s *scope) (value, error) {
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	if len(args) < 1 || len(args) > 2 || !args[0].typ.is(schema.String) && !args[0].typ.is(schema.JSON) || len(args) == 2 && !args[1].typ.is(schema.String) {
		return value{}, noSignature("function "+e.Name, args, e.Pos)
	}
	path := "$"
	if len(args) == 2 {
		if args[1].text == nil {
			return value{}, args[1].pos.Errorf("JSONPath must be a string literal or query parameter")
		}
		if path, err = duckPath(*args[1].text, args[1].pos); err != nil {
			return value{}, err
		}
	}
	doc, part := args[0].sql, args[0].typ
	if args[0].json != nil {
		doc, path = args[0].json.base, args[0].json.path+strings.TrimPrefix(path, "$")
	}
	if part.is(schema.String) {
		// A STRING need not be JSON: then there is nothing in it.
		doc = fmt.Sprintf("CASE WHEN json_valid(%s) THEN %s END", doc, doc)
	}
	f := jsonFunctions[e.Name]
	switch {
	case f.list && f.scalar:
		return expr(e.Pos, arrayOf(stringType), args, "bq_json_strings(CAST(json_extract(%s, %s) AS VARCHAR))", doc, quote(path)), nil
	case f.list:
		return expr(e.Pos, arrayOf(part), args, "bq_json_elements(CAST(json_extract(%s, %s) AS VARCHAR))", doc, quote(path)), nil
	case f.scalar:
		return expr(e.Pos, stringType, args, "json_extract_string(json_value(%s, %s), '$')", doc, quote(path)), nil
	}
	return expr(e.Pos, part, args, "CAST(json_extract(%s, %s) AS VARCHAR)", doc, quote(path)), nil
}

// extract compiles EXTRACT(part FROM x [AT TIME ZONE zone]).
func (c *compiler) extract(e *googlesql.Extract, s *scope) (value, error) {
	x, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	operands := []value{x}
	if e.Zone != nil {
		zone, err := c.expr(e.Zone, s)
		if err != nil {
			return value{}, err
		}
		if !x.typ.is(schema.Timestamp) || !zone.typ.is(schema.String) {
			return value{}, e.Pos.Errorf("EXTRACT with AT TIME ZONE expects a TIMESTAMP and a STRING, not %s and %s", x.typ, zone.typ)
		}
		operands = append(operands, zone)
	}
	part, ok := datePart(e.Part, extractParts)
	if !ok {
		return value{}, e.Part.At().Errorf("A valid date part name is required in EXTRACT")
	}
	name := "$EXTRACT"
	if part == "DATE" || part == "TIME" || part == "DATETIME" {
		name = part
		if x.typ.is(schema.Date) || x.typ.is(schema.Time) {
			return value{}, e.Pos.Errorf("EXTRACT from %s does not support the %s date part", x.typ, part)
		}
	} else {
		operands = append([]value{{sql: quote(part), typ: stringType, pos: e.Pos}}, operands...)
	}
	v, ok, err := c.apply(name, operands, e.Pos)
	if err == nil && !ok {
		err = e.Pos.Errorf("EXTRACT does not support arguments of type: %s", x.typ)
	}
	return v, err
}

var extractParts = words(`MICROSECOND MILLISECOND SECOND MINUTE HOUR DAYOFWEEK DAY DAYOFYEAR WEEK ISOWEEK MONTH QUARTER YEAR
	ISOYEAR DATE TIME DATETIME`)
