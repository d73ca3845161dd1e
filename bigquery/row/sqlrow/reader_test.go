package sqlrow_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/row/sqlrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func field(name string, t table.Type) table.Field { return table.Field{Name: name, Type: t} }

func repeated(f table.Field) table.Field { f.Mode = table.Repeated; return f }

// read is a value of a decimal column as it is read: of the scale the column has.
func read(text string, scale int64) row.Value {
	r, _ := new(big.Rat).SetString(text)
	n := new(big.Int).Mul(r.Num(), new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil))
	v, err := row.DecimalOf(&table.Field{Type: table.BigNumeric}).FromBig(n.Div(n, r.Denom()), 38)
	if err != nil {
		panic(err)
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: scale}
}

func TestColumnsOfASource(t *testing.T) {
	l := stored.Start(t)
	whole := kind(sqlrow.BigInt)
	keyed := repeated(table.Field{Name: "f", Type: table.Struct, Fields: []table.Field{field("key", table.String), field("value", table.Int64)}})
	pair := func(k string, n int64) row.Value { return list(text(k), row.Value{Int: n}) }
	for _, c := range []struct {
		name  string
		field table.Field
		typ   sqlrow.Type
		in    row.Value
		want  row.Value
		never row.Kind // NewReader refuses
		kind  row.Kind // Read refuses
		path  string
	}{
		{name: "SER-163 INTERVAL as a ROW", field: field("f", table.Interval), typ: rowOf(col("months", whole)), in: rowtest.Null, never: row.KindInterval, path: "f"},
		{name: "SER-163 INTERVAL YEAR TO MONTH", field: field("f", table.Interval), typ: kind(sqlrow.IntervalYearMonth), never: row.KindColType, path: "f"},
		{name: "SER-163 INTERVAL DAY TO SECOND", field: field("f", table.Interval), typ: kind(sqlrow.IntervalDayTime), never: row.KindColType, path: "f"},
		{name: "INTERVAL as text", field: field("f", table.Interval), typ: kind(sqlrow.Varchar), never: row.KindInterval, path: "f"},
		{name: "SER-164 128 into TINYINT", field: field("f", table.Int64), typ: kind(sqlrow.TinyInt), in: row.Value{Int: 128}, kind: row.KindOverflow, path: "f"},
		{name: "SER-164 3000000000 into INT", field: field("f", table.Int64), typ: kind(sqlrow.Int), in: row.Value{Int: 3_000_000_000}, kind: row.KindOverflow, path: "f"},
		{name: "-128 into TINYINT", field: field("f", table.Int64), typ: kind(sqlrow.TinyInt), in: row.Value{Int: -128}, want: row.Value{Int: -128}},
		{name: "-32769 into SMALLINT", field: field("f", table.Int64), typ: kind(sqlrow.SmallInt), in: row.Value{Int: -32769}, kind: row.KindOverflow, path: "f"},
		{name: "SER-165 123.45", field: field("f", table.Numeric), typ: decimal(3, 2), in: read("123.45", 9), kind: row.KindOverflow, path: "f"},
		{name: "SER-165 1.235", field: field("f", table.Numeric), typ: decimal(3, 2), in: read("1.235", 9), want: unscaled(124, 2)},
		{name: "SER-165 999.995", field: field("f", table.Numeric), typ: decimal(5, 2), in: read("999.995", 9), kind: row.KindOverflow, path: "f"},
		{name: "-1.235, away from zero", field: field("f", table.BigNumeric), typ: decimal(3, 2), in: read("-1.235", 38), want: unscaled(-124, 2)},
		{name: "a wider scale", field: field("f", table.Numeric), typ: decimal(38, 10), in: read("1.5", 9), want: unscaled(15_000_000_000, 10)},
		{name: "1.5 with 38 digits behind the point", field: field("f", table.Numeric), typ: decimal(38, 38), in: read("1.5", 9), kind: row.KindOverflow, path: "f"},
		{name: "SER-166 TIME(1)", field: field("f", table.Time), typ: precise(sqlrow.Time, 1), in: row.Value{Int: 3_723_456_000}, want: row.Value{Int: 3_723_400_000}},
		{name: "SER-166 TIMESTAMP(3)", field: field("f", table.DateTime), typ: precise(sqlrow.Timestamp, 3), in: row.Value{Int: 56_123_456}, want: row.Value{Int: 56_123_000}},
		{name: "TIMESTAMP(0) before 1970", field: field("f", table.DateTime), typ: precise(sqlrow.Timestamp, 0), in: row.Value{Int: -1}, want: row.Value{Int: -1_000_000}},
		{name: "TIMESTAMP_LTZ(9)", field: field("f", table.Timestamp), typ: precise(sqlrow.TimestampLTZ, 9), in: row.Value{Int: 5}, want: row.Value{Int: 5}},
		{name: "FLOAT narrows", field: field("f", table.Float64), typ: kind(sqlrow.Float), in: rowtest.Float(1.1), want: rowtest.Float(float64(float32(1.1)))},
		{name: "text, JSON and GEOGRAPHY", field: field("f", table.Geography), typ: kind(sqlrow.Char), in: text("POINT(1 2)"), want: text("POINT(1 2)")},
		{name: "RANGE", field: table.Field{Name: "f", Type: table.Range, Range: table.Date}, typ: rowOf(col("start", kind(sqlrow.Date)), col("end", kind(sqlrow.Date))),
			in: list(row.Value{Int: -1}, rowtest.Null), want: list(row.Value{Int: -1}, rowtest.Null)},
		{name: "RANGE, the wrong way round", field: table.Field{Name: "f", Type: table.Range, Range: table.Date}, typ: rowOf(col("end", kind(sqlrow.Date)), col("start", kind(sqlrow.Date))), never: row.KindResolve, path: "f"},
		{name: "RANGE of another type", field: table.Field{Name: "f", Type: table.Range, Range: table.Date}, typ: rowOf(col("start", precise(sqlrow.Timestamp, 6)), col("end", kind(sqlrow.Date))), never: row.KindResolve, path: "f.start"},
		{name: "MAP, the later entry wins", field: keyed, typ: mapOf(kind(sqlrow.Varchar), whole), in: list(pair("a", 1), pair("b", 2), pair("a", 3)), want: list(pair("a", 3), pair("b", 2))},
		{name: "MULTISET", field: keyed, typ: multisetOf(kind(sqlrow.Varchar)), in: list(pair("a", 2)), want: list(pair("a", 2))},
		{name: "MAP with NULL as a key", field: keyed, typ: mapOf(kind(sqlrow.Varchar), whole), in: list(list(rowtest.Null, row.Value{Int: 1})), kind: row.KindNull, path: "f[0].key"},
		{name: "an ARRAY of ROW of the same", field: keyed, typ: arrayOf(rowOf(col("value", whole))), in: list(pair("a", 1)), want: list(list(row.Value{Int: 1}))},
		{name: "MAP of something else", field: repeated(field("f", table.String)), typ: mapOf(whole, whole), never: row.KindResolve, path: "f"},
		{name: "a list of lists", field: keyed, typ: arrayOf(arrayOf(whole)), never: row.KindArray, path: "f"},
		{name: "a list as one value", field: repeated(field("f", table.Int64)), typ: whole, never: row.KindResolve, path: "f"},
		{name: "one value as a list", field: field("f", table.Int64), typ: arrayOf(whole), never: row.KindResolve, path: "f"},
		{name: "INT64 as text", field: field("f", table.Int64), typ: kind(sqlrow.Varchar), never: row.KindResolve, path: "f"},
		{name: "RAW", field: field("f", table.Bytes), typ: kind(sqlrow.Raw), never: row.KindColType, path: "f"},
		{name: "TIMESTAMP(10)", field: field("f", table.DateTime), typ: precise(sqlrow.Timestamp, 10), never: row.KindColType, path: "f"},
		{name: "a column that is not there", field: field("g", table.Int64), typ: whole, never: row.KindResolve, path: "f"},
		{name: "a member that is not there", field: table.Field{Name: "f", Type: table.Struct, Fields: []table.Field{field("x", table.Int64)}}, typ: rowOf(col("y", whole)), never: row.KindResolve, path: "f.y"},
		{name: "a column in another case", field: field("F", table.Int64), typ: whole, in: row.Value{Int: 1}, want: row.Value{Int: 1}},
		{name: "NULL", field: field("f", table.Int64), typ: whole, in: rowtest.Null, want: rowtest.Null},
		{name: "NULL where none is declared", field: field("f", table.Int64), typ: notNull(whole), in: rowtest.Null, kind: row.KindNull, path: "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &table.Schema{Fields: []table.Field{c.field}}
			r, err := sqlrow.NewReader(one(c.typ), s)
			if c.never != "" {
				faulty(t, err, c.never, c.path)
				if c.field.Mode == table.Nullable { // of a table, whose value is NULL
					_, err := stored.Ways(t.Context(), l, rowtest.OfValues(s), reading{one(c.typ)}, true, []row.Value{rowtest.Null})
					faulty(t, err, c.never, c.path)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Read(&row.Row{Schema: s, Values: []row.Value{c.in}})
			if c.kind != "" {
				faulty(t, err, c.kind, c.path)
			} else if d := cmp.Diff([]row.Value{c.want}, got, nothing); err != nil || d != "" {
				t.Error(err, d)
			}
			// The same of a table.
			ways, err := stored.Ways(t.Context(), l, rowtest.OfValues(s), reading{one(c.typ)}, c.kind == "", []row.Value{c.in})
			if c.kind != "" {
				faulty(t, err, c.kind, c.path)
				return
			}
			for _, w := range ways {
				if d := cmp.Diff([][]row.Value{{c.want}}, w.Records, cmpopts.EquateEmpty()); d != "" {
					t.Error(w.Name, d)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// nothing is the same as an empty list.
var nothing = cmp.Transformer("empty", func(v []row.Value) []row.Value {
	if len(v) == 0 {
		return nil
	}
	return v
})

func TestProjection(t *testing.T) {
	s := &table.Schema{Fields: []table.Field{field("id", table.Int64), field("s", table.String), field("instant", table.Timestamp)}}
	in := &row.Row{Schema: s, Values: []row.Value{{Int: 1}, text("a"), {Int: 5}}}
	for _, c := range []struct {
		name    string
		columns []sqlrow.Column
		want    []row.Value
	}{
		{"SER-168 in the order of the projection", []sqlrow.Column{col("instant", precise(sqlrow.TimestampLTZ, 6)), col("s", kind(sqlrow.Varchar))}, []row.Value{{Int: 5}, text("a")}},
		{"SER-168 no columns", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := sqlrow.NewReader(c.columns, s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Read(in)
			if d := cmp.Diff(c.want, got, nothing); d != "" || err != nil {
				t.Error(err, d)
			}
		})
	}
}

// What a sink writes a source of the same declaration reads back, whatever the type.
func TestThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := drawColumns(t, 3)
		s, err := sqlrow.New(columns, itself, sqlrow.Options{DeriveRequired: rapid.Bool().Draw(t, "required")})
		if err != nil {
			t.Fatal(err)
		}
		schema, _ := s.Schema(table.Destination{})
		r, err := sqlrow.NewReader(columns, schema)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]row.Value, len(columns))
		for i := range columns {
			values[i] = drawValue(t, &columns[i].Type)
		}
		encoded, err := s.AppendRow([]byte{}, table.Destination{}, sqlrow.Record{Values: values})
		if err != nil {
			t.Fatalf("%v: %v", columns, err)
		}
		d, err := row.NewDecoder(schema)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := d.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Read(decoded)
		if err != nil {
			t.Fatalf("%v: %v", columns, err)
		}
		if d := cmp.Diff(values, got, nothing); d != "" {
			t.Errorf("%v: %s", columns, d)
		}
	})
}

func drawColumns(t *rapid.T, depth int) []sqlrow.Column {
	columns := make([]sqlrow.Column, rapid.IntRange(1, 4).Draw(t, "columns"))
	for i := range columns {
		columns[i] = col(string(rune('a'+i)), drawType(t, depth))
	}
	return columns
}

func drawType(t *rapid.T, depth int) sqlrow.Type {
	last := sqlrow.Multiset
	if depth == 0 {
		last = sqlrow.TimestampLTZ
	}
	typ := sqlrow.Type{Kind: sqlrow.Kind(rapid.IntRange(1, int(last)).Draw(t, "kind")), NotNull: rapid.Bool().Draw(t, "not null")}
	switch typ.Kind {
	case sqlrow.Decimal:
		typ.Precision = rapid.IntRange(1, 38).Draw(t, "precision")
		typ.Scale = rapid.IntRange(0, typ.Precision).Draw(t, "scale")
	case sqlrow.Time, sqlrow.Timestamp, sqlrow.TimestampLTZ:
		typ.Precision = rapid.IntRange(0, 6).Draw(t, "precision")
	case sqlrow.Row:
		typ.Fields = drawColumns(t, depth-1)
	case sqlrow.Array:
		typ.Elem = new(notNull(single(drawType(t, depth-1))))
	case sqlrow.Map:
		typ.Key, typ.Elem = new(single(drawType(t, 0))), new(drawType(t, depth-1))
	case sqlrow.Multiset:
		typ.Elem = new(notNull(single(drawType(t, 0))))
	}
	return typ
}

// single makes a type of one value of any other.
func single(t sqlrow.Type) sqlrow.Type {
	if t.Kind == sqlrow.Array || t.Kind == sqlrow.Map || t.Kind == sqlrow.Multiset {
		return kind(sqlrow.BigInt)
	}
	return t
}

func drawValue(t *rapid.T, typ *sqlrow.Type) row.Value {
	if !typ.NotNull && typ.Kind < sqlrow.Array && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return rowtest.Null
	}
	return drawSome(t, typ)
}

func drawSome(t *rapid.T, typ *sqlrow.Type) row.Value {
	whole := func(low, high int64) row.Value { return row.Value{Int: rapid.Int64Range(low, high).Draw(t, "n")} }
	switch typ.Kind {
	case sqlrow.Boolean:
		return whole(0, 1)
	case sqlrow.TinyInt:
		return whole(-128, 127)
	case sqlrow.SmallInt:
		return whole(-1<<15, 1<<15-1)
	case sqlrow.Int:
		return whole(-1<<31, 1<<31-1)
	case sqlrow.BigInt:
		return whole(math.MinInt64, math.MaxInt64)
	case sqlrow.Float:
		return rowtest.Float(float64(rapid.Float32().Draw(t, "x")))
	case sqlrow.Double:
		return rowtest.Float(rapid.Float64().Draw(t, "x"))
	case sqlrow.Decimal:
		most := min(int64(math.Pow10(min(typ.Precision, 18)))-1, math.MaxInt64)
		return unscaled(rapid.Int64Range(-most, most).Draw(t, "n"), int64(typ.Scale))
	case sqlrow.Char, sqlrow.Varchar:
		return text(rapid.String().Draw(t, "s"))
	case sqlrow.Binary, sqlrow.Varbinary:
		return row.Value{Bytes: append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "b")...)}
	case sqlrow.Date:
		return whole(row.MinDays, row.MaxDays)
	case sqlrow.Time:
		return kept(whole(0, 86_400_000_000-1), typ)
	case sqlrow.Timestamp, sqlrow.TimestampLTZ:
		return kept(whole(row.MinMicros, row.MaxMicros), typ)
	}
	return drawParts(t, typ)
}

// kept is what a time has left at its type's precision.
func kept(v row.Value, typ *sqlrow.Type) row.Value {
	step := int64(math.Pow10(6 - typ.Precision))
	v.Int -= ((v.Int % step) + step) % step
	return v
}

func drawParts(t *rapid.T, typ *sqlrow.Type) row.Value {
	var v row.Value
	if typ.Kind == sqlrow.Row {
		for i := range typ.Fields {
			v.List = append(v.List, drawValue(t, &typ.Fields[i].Type))
		}
		return v
	}
	n := rapid.IntRange(0, 3).Draw(t, "elements")
	if n > 1 && typ.Kind != sqlrow.Array {
		n = 1 // keys that are drawn may be the same
	}
	for range n {
		switch typ.Kind {
		case sqlrow.Array:
			v.List = append(v.List, drawSome(t, typ.Elem))
		case sqlrow.Map:
			v.List = append(v.List, list(drawSome(t, typ.Key), drawValue(t, typ.Elem)))
		default:
			v.List = append(v.List, list(drawSome(t, typ.Elem), row.Value{Int: rapid.Int64Range(1, 9).Draw(t, "times")}))
		}
	}
	return v
}
