package compile

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// aggregate functions, by name: what wraps the calls, #1, #2, …, and the calls themselves, which take DISTINCT, ORDER BY, FILTER
// and OVER. Written as signatures whose template is wrapper|call|call….
var aggregates = parseSignatures(aggregateTable)

const aggregateTable = `
COUNT(ANY) INT64 = #1|count($1)
COUNTIF(BOOL) INT64 = #1|count(CASE WHEN $1 THEN 1 END)
SUM(INT64) INT64 = bq_sum(#1)|sum($1)
SUM(FLOAT64) FLOAT64 = #1|sum($1)
SUM(NUMERIC) NUMERIC = #1|sum($1)
SUM(BIGNUMERIC) BIGNUMERIC = unsupported
AVG(INT64) FLOAT64 = #1|avg($1)
AVG(FLOAT64) FLOAT64 = #1|avg($1)
AVG(NUMERIC) NUMERIC = bq_average(#1, #2)|sum($1)|count($1)
AVG(BIGNUMERIC) BIGNUMERIC = unsupported
MIN(T) T = #1|min($1)
MAX(T) T = #1|max($1)
ANY_VALUE(T) T = #1|any_value($1)
MAX_BY(T, ANY) T = #1|arg_max($1, $2)
MIN_BY(T, ANY) T = #1|arg_min($1, $2)
LOGICAL_AND(BOOL) BOOL = #1|bool_and($1)
LOGICAL_OR(BOOL) BOOL = #1|bool_or($1)
BIT_AND(INT64) INT64 = #1|bit_and($1)
BIT_OR(INT64) INT64 = #1|bit_or($1)
BIT_XOR(INT64) INT64 = #1|bit_xor($1)
APPROX_COUNT_DISTINCT(T) INT64 = #1|approx_count_distinct($1)
STDDEV(FLOAT64) FLOAT64 = #1|stddev_samp($1)
STDDEV_SAMP(FLOAT64) FLOAT64 = #1|stddev_samp($1)
STDDEV_POP(FLOAT64) FLOAT64 = #1|stddev_pop($1)
VARIANCE(FLOAT64) FLOAT64 = #1|var_samp($1)
VAR_SAMP(FLOAT64) FLOAT64 = #1|var_samp($1)
VAR_POP(FLOAT64) FLOAT64 = #1|var_pop($1)
CORR(FLOAT64, FLOAT64) FLOAT64 = #1|corr($1, $2)
COVAR_SAMP(FLOAT64, FLOAT64) FLOAT64 = #1|covar_samp($1, $2)
COVAR_POP(FLOAT64, FLOAT64) FLOAT64 = #1|covar_pop($1, $2)
STRING_AGG(STRING) STRING = #1|string_agg($1, ',')
STRING_AGG(STRING, STRING) STRING = #1|string_agg($1, $2)
GROUPING(ANY) INT64 = CAST(#1 AS BIGINT)|grouping($1)
`

// specialAggregate finds those whose calls depend on their modifiers, nil for all others.
func specialAggregate(name string) func(*compiler, *googlesql.Call, *scope, string) (value, error) {
	switch name {
	case "ARRAY_AGG":
		return (*compiler).arrayAgg
	case "ARRAY_CONCAT_AGG":
		return (*compiler).arrayConcatAgg
	case "APPROX_QUANTILES":
		return (*compiler).quantiles
	}
	return nil
}

// aggregate compiles an aggregate over the rows of a group.
func (c *compiler) aggregate(e *googlesql.Call, s *scope) (value, error) {
	if c.clause != "" {
		return value{}, e.Pos.Errorf("Aggregate function %s not allowed in %s", e.Name, c.clause)
	}
	v, err := c.aggregateOver(e, s, "")
	if err != nil {
		return value{}, err
	}
	v.aggregate, v.ungrouped = true, nil
	return v, nil
}

// aggregateOver compiles an aggregate whose calls end in over, an OVER clause or nothing.
func (c *compiler) aggregateOver(e *googlesql.Call, s *scope, over string) (value, error) {
	if e.Safe {
		return value{}, e.Pos.Unsupported("SAFE.%s", e.Name)
	}
	if e.Named != nil {
		return value{}, e.Named[0].Name.Pos.Unsupported("named arguments: %s of %s", e.Named[0].Name.Text, e.Name)
	}
	if compile := specialAggregate(e.Name); compile != nil {
		return compile(c, e, s, over)
	}
	if e.Star {
		if e.Name != "COUNT" || e.Distinct {
			return value{}, e.Pos.Errorf("Argument * can only be used in COUNT(*)")
		}
		return value{sql: "count(*)" + over, typ: int64Type, pos: e.Pos}, nil
	}
	s = inside(s, over)
	args, err := c.aggregateArguments(e, s, over)
	if err != nil {
		return value{}, err
	}
	name := e.Name
	if e.Having != nil {
		if args, err = c.havingModifier(e, args, s); err != nil {
			return value{}, err
		}
		name = map[bool]string{true: "MAX_BY", false: "MIN_BY"}[e.Having.Max]
	}
	if err := comparable(e, args); err != nil {
		return value{}, err
	}
	mods, err := c.modifiers(e, args, s)
	if err != nil {
		return value{}, err
	}
	return c.fillAggregate(name, e, args, mods, over)
}

// inside is the scope of an aggregate's arguments: the rows before GROUP BY, or those after it for one with OVER.
func inside(s *scope, over string) *scope {
	if over != "" {
		return s
	}
	inner := *s
	inner.aggregating, inner.grouped, inner.aliases = false, nil, nil
	return &inner
}

// aggregateArguments compiles arguments. No aggregate may stand within another.
func (c *compiler) aggregateArguments(e *googlesql.Call, s *scope, over string) ([]value, error) {
	args, err := c.exprs(e.Args, s)
	for _, a := range args {
		if a.aggregate && over == "" {
			return nil, e.Pos.Errorf("Aggregations of aggregations are not allowed")
		}
		if a.analytic {
			return nil, e.Pos.Errorf("Analytic function not allowed in an argument of aggregate function %s", e.Name)
		}
	}
	return args, err
}

// comparable refuses types that an aggregate cannot compare.
func comparable(e *googlesql.Call, args []value) error {
	ordered := e.Name == "MIN" || e.Name == "MAX"
	for _, a := range args {
		if (ordered || e.Distinct) && (a.typ.holds(schema.JSON) || a.typ.holds(schema.Geography)) ||
			ordered && (a.typ.Array || a.typ.is(schema.Struct)) {
			if e.Distinct {
				return e.Pos.Errorf("Aggregate functions with DISTINCT cannot be used with arguments of type %s", a.typ)
			}
			return e.Pos.Errorf("%s is not defined for arguments of type %s", e.Name, a.typ)
		}
	}
	return nil
}

// modifiers are what stands inside and behind the parentheses of an aggregate's calls.
type modifiers struct {
	distinct string // "DISTINCT "
	order    string // " ORDER BY …"
	filter   string // " FILTER (WHERE …)"
	limit    string // number of rows, "" for all
}

func (c *compiler) modifiers(e *googlesql.Call, args []value, s *scope) (modifiers, error) {
	var m modifiers
	if e.Distinct {
		m.distinct = "DISTINCT "
	}
	if e.OrderBy != nil {
		keys, err := c.orderKeys(e.OrderBy, s, nil)
		if err != nil {
			return m, err
		}
		m.order = " ORDER BY " + keys
	}
	if e.Nulls == "IGNORE" && len(args) > 0 {
		m.filter = fmt.Sprintf(" FILTER (WHERE %s IS NOT NULL)", args[0].sql)
	}
	if e.Limit != nil {
		limit, err := c.count(e.Limit, "LIMIT")
		if err != nil {
			return m, err
		}
		m.limit = limit
	}
	return m, nil
}

// havingModifier makes MAX_BY or MIN_BY of ANY_VALUE(x HAVING MAX y).
func (c *compiler) havingModifier(e *googlesql.Call, args []value, s *scope) ([]value, error) {
	if e.Name != "ANY_VALUE" || len(args) != 1 {
		return nil, e.Pos.Unsupported("%s with HAVING", e.Name)
	}
	by, err := c.expr(e.Having.X, s)
	return append(args, by), err
}

func (c *compiler) fillAggregate(name string, e *googlesql.Call, args []value, m modifiers, over string) (value, error) {
	if m.limit != "" {
		if name != "STRING_AGG" {
			return value{}, e.Pos.Errorf("LIMIT in %s is not supported", name)
		}
		return c.limitedStrings(e, args, m, over)
	}
	sig, places, t, err := choose(aggregates[name], valueArguments(args), e.Pos)
	switch {
	case err != nil:
		return value{}, err
	case sig == nil:
		return value{}, noSignature("aggregate function "+e.Name, args, e.Pos)
	}
	parts := strings.Split(sig.template, "|")
	sql := parts[0]
	for i, call := range parts[1:] {
		sql = strings.Replace(sql, fmt.Sprintf("#%d", i+1), m.around(fill(call, places, false))+over, 1)
	}
	return expr(e.Pos, settled(t), args, "%s", sql), nil
}

// around puts modifiers into and behind the parentheses of a call.
func (m modifiers) around(call string) string {
	open := strings.IndexByte(call, '(')
	return call[:open+1] + m.distinct + call[open+1:len(call)-1] + m.order + ")" + m.filter
}

// arrayAgg compiles ARRAY_AGG. Over no rows it is NULL.
func (c *compiler) arrayAgg(e *googlesql.Call, s *scope, over string) (value, error) {
	args, m, err := c.listArguments(e, s, over)
	if err != nil {
		return value{}, err
	}
	if args[0].typ.Array {
		return value{}, e.Pos.Errorf("The argument to ARRAY_AGG must not be an array type but was %s", args[0].typ)
	}
	sql := m.around("list("+args[0].sql+")") + over
	if m.limit != "" {
		sql = fmt.Sprintf("list_slice(%s, 1, %s)", sql, m.limit)
	}
	return expr(e.Pos, arrayOf(settled(args[0].typ)), args, "%s", sql), nil
}

func (c *compiler) arrayConcatAgg(e *googlesql.Call, s *scope, over string) (value, error) {
	args, m, err := c.listArguments(e, s, over)
	if err != nil {
		return value{}, err
	}
	if !args[0].typ.Array {
		return value{}, noSignature("aggregate function "+e.Name, args, e.Pos)
	}
	sql := m.around("list("+args[0].sql+")") + over
	if m.limit != "" {
		sql = fmt.Sprintf("list_slice(%s, 1, %s)", sql, m.limit)
	}
	return expr(e.Pos, args[0].typ, args, "flatten(%s)", sql), nil
}

func (c *compiler) listArguments(e *googlesql.Call, s *scope, over string) ([]value, modifiers, error) {
	s = inside(s, over)
	args, err := c.aggregateArguments(e, s, over)
	if err != nil {
		return nil, modifiers{}, err
	}
	if len(args) != 1 || e.Star || e.Having != nil {
		return nil, modifiers{}, noSignature("aggregate function "+e.Name, args, e.Pos)
	}
	if err := comparable(e, args); err != nil {
		return nil, modifiers{}, err
	}
	m, err := c.modifiers(e, args, s)
	return args, m, err
}

// limitedStrings compiles STRING_AGG(x, separator ORDER BY … LIMIT n).
func (c *compiler) limitedStrings(e *googlesql.Call, args []value, m modifiers, over string) (value, error) {
	separator := "','"
	if len(args) == 2 {
		separator = args[1].sql
	}
	if len(args) == 0 || !args[0].typ.is(schema.String) {
		return value{}, noSignature("aggregate function "+e.Name, args, e.Pos)
	}
	m.filter = fmt.Sprintf(" FILTER (WHERE %s IS NOT NULL)", args[0].sql)
	sql := m.around("list("+args[0].sql+")") + over
	return expr(e.Pos, stringType, args, "array_to_string(list_slice(%s, 1, %s), %s)", sql, m.limit, separator), nil
}

// quantiles compiles APPROX_QUANTILES(x, n): n+1 values, exact here.
func (c *compiler) quantiles(e *googlesql.Call, s *scope, over string) (value, error) {
	s = inside(s, over)
	args, err := c.aggregateArguments(e, s, over)
	if err != nil {
		return value{}, err
	}
	n := 0
	if len(args) == 2 && args[1].literal != nil {
		fmt.Sscan(args[1].literal.Text, &n)
	}
	if n < 1 || n > 10_000 {
		return value{}, e.Pos.Errorf("The second argument to APPROX_QUANTILES must be a literal from 1 to 10000")
	}
	m, err := c.modifiers(e, args, s)
	if err != nil {
		return value{}, err
	}
	points := make([]string, n+1)
	for i := range points {
		points[i] = fmt.Sprintf("%d::DOUBLE / %d", i, n)
	}
	call := m.around(fmt.Sprintf("quantile_disc(%s, [%s])", args[0].sql, strings.Join(points, ", ")))
	return expr(e.Pos, arrayOf(settled(args[0].typ)), args, "%s%s", call, over), nil
}
