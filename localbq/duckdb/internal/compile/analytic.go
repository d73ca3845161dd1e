package compile

import (
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
)

// analytics are the functions that exist with OVER only; frame tells those that take a frame.
var analytics = parseSignatures(`
ROW_NUMBER() INT64 = row_number()
RANK() INT64 = rank()
DENSE_RANK() INT64 = dense_rank()
PERCENT_RANK() FLOAT64 = percent_rank()
CUME_DIST() FLOAT64 = cume_dist()
NTILE(INT64) INT64 = ntile($1)
LAG(T) T = lag($1)
LAG(T, INT64) T = lag($1, $2)
LAG(T, INT64, T) T = lag($1, $2, $3)
LEAD(T) T = lead($1)
LEAD(T, INT64) T = lead($1, $2)
LEAD(T, INT64, T) T = lead($1, $2, $3)
FIRST_VALUE(T) T = first_value($1)
LAST_VALUE(T) T = last_value($1)
NTH_VALUE(T, INT64) T = nth_value($1, $2)
PERCENTILE_CONT(FLOAT64, FLOAT64) FLOAT64 = quantile_cont($1, $2)
PERCENTILE_DISC(T, FLOAT64) T = quantile_disc($1, $2)
`)

// ordered must have an ORDER BY in their window, framed may have a frame (GoogleSQL reference, "Window function calls").
var (
	mustOrder = words("RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE LAG LEAD")
	noFrame   = words("ROW_NUMBER RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE LAG LEAD PERCENTILE_CONT PERCENTILE_DISC")
	takeNulls = words("FIRST_VALUE LAST_VALUE NTH_VALUE PERCENTILE_CONT PERCENTILE_DISC LAG LEAD")
)

// analytic compiles a call with OVER.
func (c *compiler) analytic(e *googlesql.Call, s *scope) (value, error) {
	if c.clause != "" {
		return value{}, e.Pos.Errorf("Analytic function not allowed in %s", c.clause)
	}
	window, err := c.windowOf(e.Over, 0)
	if err != nil {
		return value{}, err
	}
	over, operands, err := c.over(window, s)
	if err != nil {
		return value{}, err
	}
	var v value
	switch {
	case analytics[e.Name] != nil:
		v, err = c.analyticCall(e, window, over, s)
	case aggregates[e.Name] != nil || specialAggregate(e.Name) != nil:
		if e.OrderBy != nil || e.Limit != nil {
			return value{}, e.Pos.Errorf("ORDER BY and LIMIT are not supported inside of analytic function %s", e.Name)
		}
		v, err = c.aggregateAnalytic(e, over, s)
	case signatures[e.Name] != nil || special(e.Name) != nil:
		return value{}, e.Pos.Errorf("Function %s does not support an OVER clause", e.Name)
	default:
		return value{}, unknownFunction(e)
	}
	if err != nil {
		return value{}, err
	}
	v = v.from(operands...)
	v.analytic = true
	return v, nil
}

// aggregateAnalytic compiles an aggregate with OVER: its arguments are those of the rows after GROUP BY.
func (c *compiler) aggregateAnalytic(e *googlesql.Call, over string, s *scope) (value, error) {
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	v := value{}.from(args...)
	out, err := c.aggregateOver(e, s, over)
	if err != nil {
		return value{}, err
	}
	out.aggregate, out.ungrouped = v.aggregate, v.ungrouped
	return out, nil
}

func (c *compiler) analyticCall(e *googlesql.Call, w *googlesql.Window, over string, s *scope) (value, error) {
	switch {
	case e.Distinct || e.OrderBy != nil || e.Limit != nil || e.Star:
		return value{}, e.Pos.Errorf("Analytic function %s does not take DISTINCT, ORDER BY or LIMIT", e.Name)
	case w.OrderBy == nil && mustOrder[e.Name]:
		return value{}, e.Pos.Errorf("Window ORDER BY is required for analytic function %s", lower(e.Name))
	case w.Frame != nil && noFrame[e.Name]:
		return value{}, e.Pos.Errorf("Window framing clause is not allowed for analytic function %s", lower(e.Name))
	case e.Nulls != "" && !takeNulls[e.Name]:
		return value{}, e.Pos.Errorf("IGNORE NULLS and RESPECT NULLS are not allowed for analytic function %s", lower(e.Name))
	}
	args, err := c.exprs(e.Args, s)
	if err != nil {
		return value{}, err
	}
	sig, places, t, err := choose(analytics[e.Name], valueArguments(args), e.Pos)
	switch {
	case err != nil:
		return value{}, err
	case sig == nil:
		return value{}, noSignature("analytic function "+e.Name, args, e.Pos)
	}
	call := fill(sig.template, places, false)
	if e.Nulls != "" && !strings.HasPrefix(e.Name, "PERCENTILE") {
		call = strings.TrimSuffix(call, ")") + " " + e.Nulls + " NULLS)"
	}
	return expr(e.Pos, settled(t), args, "%s%s", call, over), nil
}

func lower(name string) string { return strings.ToLower(name) }

// windowOf resolves a window that builds on a named one.
func (c *compiler) windowOf(w *googlesql.Window, depth int) (*googlesql.Window, error) {
	if w.Base == nil {
		return w, nil
	}
	for i := len(c.windows) - 1; i >= 0; i-- {
		named := c.windows[i]
		if !strings.EqualFold(named.Name.Text, w.Base.Text) || depth > len(c.windows) {
			continue
		}
		base, err := c.windowOf(named.Window, depth+1)
		if err != nil {
			return nil, err
		}
		return override(base, w)
	}
	return nil, w.Base.Pos.Errorf("Unrecognized window alias %s", w.Base.Text)
}

// override adds to a named window what it leaves open.
func override(base, w *googlesql.Window) (*googlesql.Window, error) {
	out := *base
	switch {
	case w.Partition != nil:
		return nil, w.Pos.Errorf("If a window has a window reference, it must not have a PARTITION BY of its own")
	case w.OrderBy != nil && base.OrderBy != nil:
		return nil, w.Pos.Errorf("If a window has a window reference with ORDER BY, it must not have one of its own")
	case w.Frame != nil && base.Frame != nil:
		return nil, w.Pos.Errorf("If a window has a window reference with a framing clause, it must not have one of its own")
	}
	if w.OrderBy != nil {
		out.OrderBy = w.OrderBy
	}
	if w.Frame != nil {
		out.Frame = w.Frame
	}
	return &out, nil
}

// over writes an OVER clause; it also answers the values in it.
func (c *compiler) over(w *googlesql.Window, s *scope) (string, []value, error) {
	var parts []string
	partition, err := c.exprs(w.Partition, s)
	if err != nil {
		return "", nil, err
	}
	for i, p := range partition {
		if err := groupable(p); err != nil {
			return "", nil, p.pos.Errorf("Partitioning by expressions of type %s is not allowed", p.typ)
		}
		word := ", "
		if i == 0 {
			word = "PARTITION BY "
		}
		parts = append(parts, word+p.sql)
	}
	operands := partition
	text := strings.Join(parts, "")
	if w.OrderBy != nil {
		keys, err := c.orderKeys(w.OrderBy, s, nil)
		if err != nil {
			return "", nil, err
		}
		text += " ORDER BY " + keys
	}
	if w.Frame != nil {
		frame, err := c.frame(w.Frame, s)
		if err != nil {
			return "", nil, err
		}
		text += frame
	}
	return " OVER (" + text + ")", operands, nil
}

func (c *compiler) frame(f *googlesql.Frame, s *scope) (string, error) {
	start, err := c.bound(f.Start, s)
	if err != nil {
		return "", err
	}
	if f.End == nil {
		return " " + f.Unit + " " + start, nil
	}
	end, err := c.bound(f.End, s)
	return " " + f.Unit + " BETWEEN " + start + " AND " + end, err
}

func (c *compiler) bound(b *googlesql.Bound, s *scope) (string, error) {
	if b.Offset == nil {
		return b.Kind, nil
	}
	v, err := c.expr(b.Offset, s)
	if err != nil {
		return "", err
	}
	if _, ok := coerce(v, float64T); !ok {
		return "", v.pos.Errorf("Window framing expression has type %s: expected a number", v.typ)
	}
	return v.sql + " " + b.Kind, nil
}
