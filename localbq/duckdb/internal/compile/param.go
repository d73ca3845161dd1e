package compile

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	civil "github.com/millrace-dev/millrace/localbq/internal/value"
)

// param compiles a parameter: its value stands in the text as a literal of its type.
func (c *compiler) param(p *googlesql.Param) (value, error) {
	found, err := c.parameter(p)
	if err != nil {
		return value{}, err
	}
	t := TypeOf(found.Type)
	v := value{pos: p.Pos, typ: t}
	if v.sql, err = paramSQL(found.Value, t); err != nil {
		return v, p.Pos.Errorf("Invalid value for parameter %s: %v", strings.TrimSpace(found.Name+" "+t.String()), err)
	}
	if t.is(schema.String) && !found.Value.Null {
		v.text = &found.Value.Scalar
	}
	return v, nil
}

func (c *compiler) parameter(p *googlesql.Param) (*query.Parameter, error) {
	if p.Name == "" {
		if p.Index >= len(c.env.Parameters) || c.env.Parameters[p.Index].Name != "" {
			return nil, p.Pos.Errorf("Query parameter number %d is not defined", p.Index+1)
		}
		return &c.env.Parameters[p.Index], nil
	}
	for i := range c.env.Parameters {
		if q := &c.env.Parameters[i]; q.Name != "" && strings.EqualFold(q.Name, p.Name) {
			return q, nil
		}
	}
	return nil, p.Pos.Errorf("Query parameter '%s' not found", p.Name)
}

// paramSQL is a parameter's value as a literal.
func paramSQL(v query.Value, t Type) (string, error) {
	switch {
	case t.Array:
		items := make([]string, len(v.List))
		for i, e := range v.List {
			var err error
			if items[i], err = paramSQL(e, t.element()); err != nil {
				return "", fmt.Errorf("element %d: %w", i, err)
			}
		}
		return cast("["+strings.Join(items, ", ")+"]", t), nil
	case v.Null:
		return cast("NULL", t), nil
	case t.Kind == schema.Struct:
		return structParam(v, t)
	}
	return scalarParam(v.Scalar, t)
}

func structParam(v query.Value, t Type) (string, error) {
	if len(v.List) != len(t.Fields) {
		return "", fmt.Errorf("the struct has %d values for %d members", len(v.List), len(t.Fields))
	}
	members := make([]string, len(v.List))
	for i, e := range v.List {
		sql, err := paramSQL(e, t.Fields[i].Type)
		if err != nil {
			return "", fmt.Errorf("member %s: %w", t.Fields[i].Name, err)
		}
		members[i] = fmt.Sprintf("_%d := %s", i, sql)
	}
	return cast("struct_pack("+strings.Join(members, ", ")+")", t), nil
}

func scalarParam(s string, t Type) (string, error) {
	switch t.Kind {
	case schema.Bool:
		b, err := strconv.ParseBool(strings.ToLower(s))
		return strings.ToUpper(strconv.FormatBool(b)), err
	case schema.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		return cast("'"+strconv.FormatInt(n, 10)+"'", t), err
	case schema.Float64:
		f, err := strconv.ParseFloat(s, 64)
		return cast("'"+strconv.FormatFloat(f, 'e', -1, 64)+"'", t), err
	case schema.Numeric, schema.BigNumeric:
		v, ok := decimalLiteral(s, t, value{})
		if !ok {
			return "", fmt.Errorf("%q is no %s", s, t)
		}
		return v.sql, nil
	case schema.String, schema.Geography:
		return quote(s), nil
	case schema.Bytes:
		b, err := base64.StdEncoding.DecodeString(s)
		return quoteBytes(string(b)), err
	case schema.JSON:
		normal, err := civil.AppendJSON(nil, []byte(s))
		return quote(string(normal)), err
	case schema.Interval:
		span, err := civil.Interval(s)
		return fmt.Sprintf("bq_interval_parts(CAST(%d AS BIGINT), CAST(%d AS BIGINT), CAST(%d AS BIGINT))", span.Months, span.Days, span.Micros), err
	}
	sql, err := civilLiteral(s, t.Kind)
	if err == nil && sql == "" {
		err = fmt.Errorf("parameters of type %s are not implemented", t)
	}
	return sql, err
}
