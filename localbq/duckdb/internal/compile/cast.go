package compile

import (
	"fmt"
	"strconv"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// typeOf reads a type as written in a statement. Parameters of types (STRING(10), NUMERIC(5,2)) are allowed in CAST only,
// where they would check the value: they are refused.
func typeOf(t *googlesql.Type) (Type, error) {
	if t.Params != nil {
		return Type{}, t.Pos.Unsupported("parameterized types: %s(…)", t.Name)
	}
	switch t.Name {
	case "ARRAY":
		e, err := typeOf(t.Element)
		if err == nil && e.Array {
			err = t.Pos.Errorf("Arrays of arrays are not supported")
		}
		return arrayOf(e), err
	case "RANGE":
		e, err := typeOf(t.Element)
		if err == nil && !e.is(schema.Date) && !e.is(schema.DateTime) && !e.is(schema.Timestamp) {
			err = t.Pos.Errorf("Unsupported type: RANGE<%s> is not supported", e)
		}
		return Type{Kind: schema.Range, Range: e.Kind}, err
	case "STRUCT":
		out := Type{Kind: schema.Struct}
		for _, f := range t.Fields {
			m, err := typeOf(f.Type)
			if err != nil {
				return out, err
			}
			name := ""
			if f.Name != nil {
				name = f.Name.Text
			}
			out.Fields = append(out.Fields, Field{name, m})
		}
		return out, nil
	}
	k, ok := schema.ParseType(t.Name)
	if !ok || t.Name == "RECORD" || t.Name == "FLOAT" || t.Name == "DOUBLE" {
		return Type{}, t.Pos.Errorf("Type not found: %s", t.Name)
	}
	return Type{Kind: k}, nil
}

// casts are the conversions between scalar types, but for those of a type to itself. $1 is the value. What DuckDB converts
// otherwise than GoogleSQL is converted by functions of this package's engine.
var casts = castPairs()

// castPairs is a table of (source, target), written as a table of targets.
func castPairs() map[[2]schema.Type]string {
	all := map[[2]schema.Type]string{}
	for target, sources := range map[schema.Type]map[schema.Type]string{
		schema.Int64: {
			schema.Bool: "CAST($1 AS BIGINT)", schema.Float64: "bq_int64($1)", schema.Numeric: "bq_int64($1)",
			schema.BigNumeric: "bq_bignumeric_int64($1)", schema.String: "bq_int64($1)",
		},
		schema.Float64: {
			schema.Int64: "CAST($1 AS DOUBLE)", schema.Numeric: "CAST($1 AS DOUBLE)", schema.BigNumeric: "bq_bignumeric_float64($1)",
			schema.String: "bq_float64($1)",
		},
		schema.Numeric: {
			schema.Int64: "CAST($1 AS DECIMAL(38,9))", schema.Float64: "bq_numeric($1)", schema.BigNumeric: "bq_bignumeric_numeric($1)",
			schema.String: "bq_numeric($1)",
		},
		schema.BigNumeric: {
			schema.Int64: "bq_bignumeric($1)", schema.Float64: "bq_bignumeric($1)", schema.Numeric: "bq_bignumeric($1)",
			schema.String: "bq_bignumeric($1)",
		},
		schema.Bool: {schema.Int64: "($1 <> 0)", schema.String: "bq_bool($1)"},
		schema.String: {
			schema.Int64: "CAST($1 AS VARCHAR)", schema.Float64: "bq_string($1)", schema.Bool: "CAST($1 AS VARCHAR)",
			schema.Numeric: "bq_string($1)", schema.BigNumeric: "bq_bignumeric_string($1)", schema.Bytes: "bq_utf8($1)",
			schema.Date: "CAST($1 AS VARCHAR)", schema.Time: "bq_time_string($1)", schema.DateTime: "bq_datetime_string($1)",
			schema.Timestamp: "bq_timestamp_string($1, 'UTC')", schema.Interval: "bq_string($1)",
		},
		schema.Bytes: {schema.String: "encode($1)"},
		schema.Date: {
			schema.String: "bq_date($1)", schema.DateTime: "CAST($1 AS DATE)", schema.Timestamp: "CAST($1 AS DATE)",
		},
		schema.Time: {schema.String: "bq_time($1)", schema.DateTime: "CAST($1 AS TIME)", schema.Timestamp: "CAST($1 AS TIME)"},
		schema.DateTime: {
			schema.String: "bq_datetime($1)", schema.Date: "CAST($1 AS TIMESTAMP)", schema.Timestamp: "$1",
		},
		schema.Timestamp: {
			schema.String: "bq_timestamp($1, 'UTC')", schema.Date: "CAST($1 AS TIMESTAMP)", schema.DateTime: "$1",
		},
		schema.Interval: {schema.String: "bq_interval_text($1, '')"},
	} {
		for source, template := range sources {
			all[[2]schema.Type{source, target}] = template
		}
	}
	return all
}

func (c *compiler) cast(e *googlesql.Cast, s *scope) (value, error) {
	v, err := c.expr(e.X, s)
	if err != nil {
		return value{}, err
	}
	if e.Format != nil {
		return value{}, e.Format.At().Unsupported("CAST with FORMAT")
	}
	t, err := typeOf(e.Type)
	if err != nil {
		return value{}, err
	}
	sql, err := castSQL(v, t, e.Safe, e.Pos)
	if err != nil {
		return value{}, err
	}
	return expr(e.Pos, t, []value{v}, "%s", sql), nil
}

// castSQL is CAST(v AS t), or SAFE_CAST.
func castSQL(v value, t Type, safe bool, pos googlesql.Pos) (string, error) {
	switch {
	case v.typ.untyped() || emptyArray(v) && t.Array:
		return cast(v.sql, t), nil
	case v.typ.same(t):
		return v.sql, nil
	case v.typ.Array && t.Array:
		x := value{sql: "x", typ: v.typ.element(), pos: pos}
		sql, err := castSQL(x, t.element(), safe, pos)
		return fmt.Sprintf("list_transform(%s, lambda x: %s)", v.sql, sql), err
	case v.typ.Array || t.Array:
	case v.typ.Kind == schema.Struct && t.Kind == schema.Struct && len(v.typ.Fields) == len(t.Fields):
		return castStruct(v, t, safe, pos)
	default:
		if template, ok := casts[[2]schema.Type{v.typ.Kind, t.Kind}]; ok {
			return fill(template, []string{v.sql}, safe), nil
		}
	}
	return "", pos.Errorf("Invalid cast from %s to %s", v.typ, t)
}

func castStruct(v value, t Type, safe bool, pos googlesql.Pos) (string, error) {
	members := ""
	for i, f := range v.typ.Fields {
		x := value{sql: "struct_extract(" + v.sql + ", '_" + strconv.Itoa(i) + "')", typ: f.Type, pos: pos}
		sql, err := castSQL(x, t.Fields[i].Type, safe, pos)
		if err != nil {
			return "", err
		}
		if i > 0 {
			members += ", "
		}
		members += fmt.Sprintf("_%d := %s", i, sql)
	}
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END", v.sql, members), nil
}
