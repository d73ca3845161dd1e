package sqlrow_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/row/sqlrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func kind(k sqlrow.Kind) sqlrow.Type { return sqlrow.Type{Kind: k} }

func notNull(t sqlrow.Type) sqlrow.Type { t.NotNull = true; return t }

func precise(k sqlrow.Kind, p int) sqlrow.Type { return sqlrow.Type{Kind: k, Precision: p} }

func decimal(p, s int) sqlrow.Type {
	return sqlrow.Type{Kind: sqlrow.Decimal, Precision: p, Scale: s}
}

func arrayOf(t sqlrow.Type) sqlrow.Type { return sqlrow.Type{Kind: sqlrow.Array, Elem: &t} }

func multisetOf(t sqlrow.Type) sqlrow.Type { return sqlrow.Type{Kind: sqlrow.Multiset, Elem: &t} }

func mapOf(k, v sqlrow.Type) sqlrow.Type { return sqlrow.Type{Kind: sqlrow.Map, Key: &k, Elem: &v} }

func rowOf(members ...sqlrow.Column) sqlrow.Type {
	return sqlrow.Type{Kind: sqlrow.Row, Fields: members}
}

func col(name string, t sqlrow.Type) sqlrow.Column { return sqlrow.Column{Name: name, Type: t} }

func one(t sqlrow.Type) []sqlrow.Column { return []sqlrow.Column{col("f", t)} }

// unscaled is a DECIMAL: n times 10 to the power of -scale.
func unscaled(n int64, scale int64) row.Value {
	v := row.Scaled{uint64(n)}
	if n < 0 {
		v[1], v[2], v[3] = math.MaxUint64, math.MaxUint64, math.MaxUint64
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: scale}
}

func itself(r sqlrow.Record) sqlrow.Record { return r }

// faulty compares the kind and the path of an error.
func faulty(t *testing.T, err error, want row.Kind, path string) {
	t.Helper()
	e, ok := errors.AsType[*row.Error](err)
	if !ok || e.Kind != want || e.Path != path {
		t.Errorf("error %v, want %s at %q", err, want, path)
	}
}

func TestColumnsOfASink(t *testing.T) {
	text, whole := kind(sqlrow.Varchar), kind(sqlrow.Int)
	for _, c := range []struct {
		name    string
		columns []sqlrow.Column
		options sqlrow.Options
		want    table.Field
		kind    row.Kind
		path    string
	}{
		{name: "SER-163 INTERVAL YEAR TO MONTH", columns: one(kind(sqlrow.IntervalYearMonth)), kind: row.KindColType, path: "f"},
		{name: "SER-163 INTERVAL DAY TO SECOND", columns: one(kind(sqlrow.IntervalDayTime)), kind: row.KindColType, path: "f"},
		{name: "TIMESTAMP WITH TIME ZONE", columns: one(kind(sqlrow.TimestampTZ)), kind: row.KindColType, path: "f"},
		{name: "RAW", columns: one(kind(sqlrow.Raw)), kind: row.KindColType, path: "f"},
		{name: "NULL", columns: one(kind(sqlrow.Null)), kind: row.KindColType, path: "f"},
		{name: "structured", columns: one(kind(sqlrow.Structured)), kind: row.KindColType, path: "f"},
		{name: "distinct", columns: one(kind(sqlrow.Distinct)), kind: row.KindColType, path: "f"},
		{name: "no type", columns: one(sqlrow.Type{}), kind: row.KindColType, path: "f"},
		{name: "SER-169 TIMESTAMP(6)", columns: one(precise(sqlrow.Timestamp, 6)), want: table.Field{Type: table.DateTime}},
		{name: "SER-169 TIMESTAMP_LTZ(6)", columns: one(precise(sqlrow.TimestampLTZ, 6)), want: table.Field{Type: table.Timestamp}},
		{name: "SER-169 TIMESTAMP(9)", columns: one(precise(sqlrow.Timestamp, 9)), kind: row.KindColType, path: "f"},
		{name: "SER-169 TIMESTAMP_LTZ(9)", columns: one(precise(sqlrow.TimestampLTZ, 9)), kind: row.KindColType, path: "f"},
		{name: "SER-169 TIME(6)", columns: one(precise(sqlrow.Time, 6)), want: table.Field{Type: table.Time}},
		{name: "TIME(7)", columns: one(precise(sqlrow.Time, 7)), kind: row.KindColType, path: "f"},
		{name: "SER-170 DECIMAL(38,9)", columns: one(decimal(38, 9)), want: table.Field{Type: table.Numeric, Precision: 38, Scale: 9}},
		{name: "SER-170 DECIMAL(38,8)", columns: one(decimal(38, 8)), want: table.Field{Type: table.BigNumeric, Precision: 38, Scale: 8}},
		{name: "SER-170 DECIMAL(20,10)", columns: one(decimal(20, 10)), want: table.Field{Type: table.BigNumeric, Precision: 20, Scale: 10}},
		{name: "SER-170 DECIMAL(38,38)", columns: one(decimal(38, 38)), want: table.Field{Type: table.BigNumeric, Precision: 38, Scale: 38}},
		{name: "DECIMAL(39,0)", columns: one(decimal(39, 0)), kind: row.KindColType, path: "f"},
		{name: "DECIMAL(3,4)", columns: one(decimal(3, 4)), kind: row.KindColType, path: "f"},
		{name: "SER-171 elements that may be NULL", columns: one(arrayOf(text)), kind: row.KindArray, path: "f"},
		{name: "SER-171 elements NOT NULL", columns: one(arrayOf(notNull(text))), want: table.Field{Type: table.String, Mode: table.Repeated}},
		{name: "lists of lists", columns: one(arrayOf(notNull(arrayOf(notNull(text))))), kind: row.KindArray, path: "f"},
		{name: "SER-172", columns: one(multisetOf(notNull(text))), want: table.Field{Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
			{Name: "key", Type: table.String}, {Name: "value", Type: table.Int64}}}},
		{name: "MAP of lists", columns: one(mapOf(text, arrayOf(notNull(whole)))), want: table.Field{Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
			{Name: "key", Type: table.String}, {Name: "value", Type: table.Int64, Mode: table.Repeated}}}},
		{name: "MAP, keys are REQUIRED when derived", columns: one(mapOf(text, whole)), options: sqlrow.Options{DeriveRequired: true},
			want: table.Field{Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
				{Name: "key", Type: table.String, Mode: table.Required}, {Name: "value", Type: table.Int64}}}},
		{name: "MAP with lists as keys", columns: one(mapOf(arrayOf(notNull(text)), whole)), kind: row.KindColType, path: "f.key"},
		{name: "SER-173 NOT NULL", columns: one(notNull(whole)), want: table.Field{Type: table.Int64}},
		{name: "SER-173 derived", columns: one(notNull(whole)), options: sqlrow.Options{DeriveRequired: true}, want: table.Field{Type: table.Int64, Mode: table.Required}},
		{name: "SER-173 derived and marked", columns: one(notNull(text)), options: sqlrow.Options{DeriveRequired: true, JSONPaths: []string{"f"}}, want: table.Field{Type: table.JSON}},
		{name: "SER-175 MULTISET in JSON", columns: one(rowOf(col("a", rowOf(col("m", multisetOf(text)))))), options: sqlrow.Options{JSONPaths: []string{"f"}}, kind: row.KindColType, path: "f.a.m"},
		{name: "SER-175 MAP with numbers as keys in JSON", columns: one(rowOf(col("m", mapOf(whole, text)))), options: sqlrow.Options{JSONPaths: []string{"f"}}, kind: row.KindColType, path: "f.m"},
		{name: "INTERVAL in JSON", columns: one(rowOf(col("i", kind(sqlrow.IntervalDayTime)))), options: sqlrow.Options{JSONPaths: []string{"f"}}, kind: row.KindColType, path: "f.i"},
		{name: "SER-176 GEOGRAPHY on a ROW", columns: one(rowOf(col("a", text))), options: sqlrow.Options{GeographyPaths: []string{"f"}}, kind: row.KindMark, path: "f"},
		{name: "SER-176 nowhere", columns: one(text), options: sqlrow.Options{JSONPaths: []string{"nowhere"}}, kind: row.KindPath, path: "nowhere"},
		{name: "SER-176 no columns", kind: row.KindEmpty},
		{name: "a ROW without members", columns: one(rowOf()), kind: row.KindEmpty, path: "f"},
		{name: "JSON on a MAP", columns: one(mapOf(text, text)), options: sqlrow.Options{JSONPaths: []string{"f"}}, kind: row.KindMark, path: "f"},
		{name: "JSON on a key", columns: one(mapOf(text, text)), options: sqlrow.Options{JSONPaths: []string{"f.key"}}, kind: row.KindMark, path: "f.key"},
		{name: "JSON on a value", columns: one(mapOf(text, text)), options: sqlrow.Options{JSONPaths: []string{"f.value"}}, want: table.Field{Type: table.Struct, Mode: table.Repeated,
			Fields: []table.Field{{Name: "key", Type: table.String}, {Name: "value", Type: table.JSON}}}},
		{name: "JSON on an ARRAY of ROW", columns: one(arrayOf(notNull(rowOf(col("a", text))))), options: sqlrow.Options{JSONPaths: []string{"f"}}, want: table.Field{Type: table.JSON, Mode: table.Repeated}},
		{name: "JSON and GEOGRAPHY", columns: one(text), options: sqlrow.Options{JSONPaths: []string{"f"}, GeographyPaths: []string{"f"}}, kind: row.KindBoth, path: "f"},
		{name: "the same name twice", columns: []sqlrow.Column{col("a", text), col("A", text)}, kind: row.KindCase, path: "A"},
		{name: "a name that BigQuery refuses", columns: []sqlrow.Column{col("a`; DROP TABLE t; --", text)}, kind: row.KindName, path: "a`; DROP TABLE t; --"},
		{name: "16 ROWs", columns: one(nested(16)), kind: row.KindDepth, path: "f.f.f.f.f.f.f.f.f.f.f.f.f.f.f.f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sqlrow.Schema(c.columns, c.options)
			if c.kind != "" {
				faulty(t, err, c.kind, c.path)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.Name = "f"
			if d := cmp.Diff([]table.Field{c.want}, s.Fields); d != "" {
				t.Error(d)
			}
		})
	}
}

// nested is n ROWs inside one another.
func nested(n int) sqlrow.Type {
	t := kind(sqlrow.Int)
	for range n {
		t = rowOf(col("f", t))
	}
	return t
}

// caseOf is a row of one column f and what becomes of it.
type caseOf struct {
	name    string
	typ     sqlrow.Type
	options sqlrow.Options
	in      row.Value
	want    row.Value
	kind    row.Kind
	path    string
}

func text(s string) row.Value { return rowtest.Text(s) }

func list(v ...row.Value) row.Value { return rowtest.List(v...) }

func TestRowsOfASink(t *testing.T) {
	l := stored.Start(t)
	words, whole, number := kind(sqlrow.Varchar), kind(sqlrow.Int), kind(sqlrow.Double)
	json := sqlrow.Options{JSONPaths: []string{"f"}}
	members := rowOf(col("a", whole), col("b", words))
	noon := row.Value{Int: 1_786_017_600_000_000} // 2026-08-06 12:00
	for _, c := range []caseOf{
		{name: "SER-174", typ: members, options: json, in: list(row.Value{Int: 1}, text("x")), want: text(`{"a":1,"b":"x"}`)},
		{name: "SER-174 NULL member", typ: members, options: json, in: list(rowtest.Null, text("x")), want: text(`{"a":null,"b":"x"}`)},
		{name: "SER-174 BYTES", typ: rowOf(col("b", kind(sqlrow.Varbinary))), options: json, in: list(text("\x01\x02\x03")), want: text(`{"b":"AQID"}`)},
		{name: "SER-174 DECIMAL", typ: rowOf(col("d", decimal(10, 2))), options: json, in: list(unscaled(150, 2)), want: text(`{"d":1.50}`)},
		{name: "DECIMAL of another scale", typ: rowOf(col("d", decimal(10, 2))), options: json, in: list(unscaled(-15, 1)), want: text(`{"d":-1.50}`)},
		{name: "DECIMAL 0", typ: rowOf(col("d", decimal(10, 2))), options: json, in: list(unscaled(0, 2)), want: text(`{"d":0.00}`)},
		{name: "DECIMAL without a scale", typ: rowOf(col("d", decimal(10, 0))), options: json, in: list(unscaled(100, 0)), want: text(`{"d":100}`)},
		{name: "DECIMAL too fine in JSON", typ: rowOf(col("d", decimal(10, 2))), options: json, in: list(unscaled(1501, 3)), kind: row.KindScale, path: "f.d"},
		{name: "SER-174 TIMESTAMP", typ: rowOf(col("t", precise(sqlrow.Timestamp, 6))), options: json, in: list(noon), want: text(`{"t":"2026-08-06T12:00:00"}`)},
		{name: "TIMESTAMP_LTZ", typ: rowOf(col("t", precise(sqlrow.TimestampLTZ, 6))), options: json, in: list(row.Value{Int: noon.Int + 500_000}), want: text(`{"t":"2026-08-06T12:00:00.500Z"}`)},
		{name: "DATE and TIME", typ: rowOf(col("d", kind(sqlrow.Date)), col("t", kind(sqlrow.Time))), options: json,
			in: list(row.Value{Int: 20671}, row.Value{Int: 45_296_000_001}), want: text(`{"d":"2026-08-06","t":"12:34:56.000001"}`)},
		{name: "numbers", typ: rowOf(col("a", number), col("b", number), col("c", kind(sqlrow.Float)), col("d", kind(sqlrow.Boolean))), options: json,
			in: list(rowtest.Float(1e21), rowtest.Float(1e-7), rowtest.Float(float64(float32(1.1))), row.Value{Int: 1}), want: text(`{"a":1e+21,"b":1e-7,"c":1.1,"d":true}`)},
		{name: "text that JSON escapes", typ: rowOf(col("q\"", words)), options: json, in: list(text("\"\\\n\x00`é")), want: text("{\"q\\\"\":\"\\\"\\\\\\n\\u0000`é\"}")},
		{name: "MAP and ARRAY", typ: rowOf(col("m", mapOf(words, whole)), col("l", arrayOf(whole))), options: json,
			in: list(list(list(text("k"), row.Value{Int: 1}), list(text("l"), rowtest.Null)), list(row.Value{Int: 1}, rowtest.Null)), want: text(`{"m":{"k":1,"l":null},"l":[1,null]}`)},
		{name: "SER-175 NaN in JSON", typ: rowOf(col("x", number)), options: json, in: list(rowtest.Float(math.NaN())), kind: row.KindPrint, path: "f.x"},
		{name: "infinity in JSON", typ: rowOf(col("x", arrayOf(number))), options: json, in: list(list(rowtest.Float(math.Inf(-1)))), kind: row.KindPrint, path: "f.x[0]"},
		{name: "invalid text in JSON", typ: rowOf(col("x", words)), options: json, in: list(text("\xff")), kind: row.KindText, path: "f.x"},
		{name: "NULL as a key in JSON", typ: rowOf(col("m", mapOf(words, whole))), options: json, in: list(list(list(rowtest.Null, rowtest.Null))), kind: row.KindNullKey, path: "f.m.key"},
		{name: "a marked ROW that is NULL", typ: members, options: json, in: rowtest.Null, want: rowtest.Null},
		{name: "marked text", typ: words, options: json, in: text("no JSON at all"), want: text("no JSON at all")},

		{name: "STRUCT", typ: members, in: list(row.Value{Int: -1}, rowtest.Null), want: list(row.Value{Int: -1}, rowtest.Null)},
		{name: "MULTISET", typ: multisetOf(words), in: list(list(text("a"), row.Value{Int: 2})), want: list(list(text("a"), row.Value{Int: 2}))},
		{name: "MAP, NULL value", typ: mapOf(words, whole), in: list(list(text("a"), rowtest.Null)), want: list(list(text("a"), rowtest.Null))},
		{name: "MAP that is NULL", typ: mapOf(words, whole), in: rowtest.Null, want: list()},
		{name: "ARRAY that is NULL", typ: arrayOf(notNull(whole)), in: rowtest.Null, want: list()},
		{name: "ARRAY", typ: arrayOf(notNull(whole)), in: list(row.Value{Int: 1}, row.Value{Int: 300}), want: list(row.Value{Int: 1}, row.Value{Int: 300})},
		{name: "DECIMAL into NUMERIC", typ: decimal(10, 2), in: unscaled(150, 2), want: rowtest.Decimal(table.Numeric, "1.5")},
		{name: "DECIMAL of a finer scale", typ: decimal(10, 2), in: unscaled(1500, 3), want: rowtest.Decimal(table.Numeric, "1.5")},
		{name: "NULL", typ: whole, in: rowtest.Null, want: rowtest.Null},

		{name: "NULL for a REQUIRED column", typ: notNull(whole), options: sqlrow.Options{DeriveRequired: true}, in: rowtest.Null, kind: row.KindRequired, path: "f"},
		{name: "NULL in an ARRAY", typ: arrayOf(notNull(whole)), in: list(row.Value{Int: 1}, rowtest.Null), kind: row.KindNullElem, path: "f[1]"},
		{name: "NULL as a key", typ: mapOf(words, whole), in: list(list(rowtest.Null, row.Value{Int: 1})), kind: row.KindNullKey, path: "f.key"},
		{name: "invalid text", typ: words, in: text("\xff"), kind: row.KindText, path: "f"},
		{name: "DATE beyond the calendar", typ: kind(sqlrow.Date), in: row.Value{Int: row.MaxDays + 1}, kind: row.KindRange, path: "f"},
		{name: "TIME beyond the day", typ: kind(sqlrow.Time), in: row.Value{Int: 86_400_000_000}, kind: row.KindRange, path: "f"},
		{name: "TIMESTAMP beyond the calendar", typ: kind(sqlrow.Timestamp), in: row.Value{Int: row.MaxMicros + 1}, kind: row.KindRange, path: "f"},
		{name: "DECIMAL with more digits", typ: decimal(3, 2), in: unscaled(12345, 2), kind: row.KindRange, path: "f"},
		{name: "DECIMAL too fine", typ: decimal(3, 2), in: unscaled(1235, 3), kind: row.KindScale, path: "f"},
		{name: "too few members", typ: members, in: list(row.Value{Int: 1}), kind: row.KindType, path: "f"},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, l) })
	}
}

// run checks the row, and that a BigQuery stores its values whichever way it goes there.
func (c caseOf) run(t *testing.T, l *stored.Local) {
	k := rowtest.Case[sqlrow.Record]{Name: "f", Record: func() sqlrow.Record { return sqlrow.Record{Values: []row.Value{c.in}} }, Values: []row.Value{c.want}}
	if c.kind != "" {
		k.Values, k.Err = nil, &row.Error{Kind: c.kind, Path: c.path}
	}
	rowtest.Test(t, rowtest.Format[sqlrow.Record]{
		New:         func() (row.Serializer[sqlrow.Record], error) { return sqlrow.New(one(c.typ), itself, c.options) },
		Destination: table.Destination{Project: "p", Dataset: "d", Table: "t"},
		Cases:       []rowtest.Case[sqlrow.Record]{k},
	})
	if c.kind != "" {
		return
	}
	s, err := sqlrow.New(one(c.typ), itself, c.options)
	if err != nil {
		t.Fatal(err)
	}
	kept, ok := keptAs[string(c.want.Bytes)]
	want := [][]row.Value{{c.want}}
	if ok {
		want = [][]row.Value{{text(kept)}}
	}
	_, err = stored.CheckKept(t.Context(), l, s, [][]row.Value{{c.want}}, want, k.Record())
	if noJSON := ok && kept == ""; noJSON != (err != nil) {
		t.Errorf("%v, want an error of the service: %v", err, noJSON)
	}
}

// keptAs is what BigQuery makes of JSON: "" is an error, because it is none.
var keptAs = map[string]string{`{"d":1.50}`: `{"d":1.5}`, `{"d":-1.50}`: `{"d":-1.5}`, `{"d":0.00}`: `{"d":0.0}`, "no JSON at all": "",
	`{"a":1e+21,"b":1e-7,"c":1.1,"d":true}`: `{"a":1e+21,"b":1e-07,"c":1.1,"d":true}`, `{"m":{"k":1,"l":null},"l":[1,null]}`: `{"l":[1,null],"m":{"k":1,"l":null}}`}

func TestChanges(t *testing.T) {
	columns := []sqlrow.Column{col("id", notNull(kind(sqlrow.BigInt))), col("name", notNull(kind(sqlrow.Varchar)))}
	s, err := sqlrow.New(columns, itself, sqlrow.Options{DeriveRequired: true, PrimaryKey: []string{"ID"}})
	if err != nil {
		t.Fatal(err)
	}
	appendRow := func(c sqlrow.Change, v ...row.Value) ([]byte, error) {
		return s.AppendRow([]byte{}, table.Destination{}, sqlrow.Record{Change: c, Values: v})
	}
	seven := row.Value{Int: 7}
	t.Run("SER-177 delete", func(t *testing.T) {
		for _, name := range []row.Value{rowtest.Null, text("gone")} {
			if got, err := appendRow(sqlrow.Delete, seven, name); err != nil || string(got) != "\x08\x07" {
				t.Errorf("% x, %v", got, err)
			}
		}
	})
	t.Run("SER-177 update-before", func(t *testing.T) {
		_, err := appendRow(sqlrow.UpdateBefore, seven, text("a"))
		faulty(t, err, row.KindType, "")
	})
	t.Run("update-after", func(t *testing.T) {
		if got, err := appendRow(sqlrow.UpdateAfter, seven, text("a")); err != nil || string(got) != "\x08\x07\x12\x01a" {
			t.Errorf("% x, %v", got, err)
		}
	})
	t.Run("delete without the key's value", func(t *testing.T) {
		_, err := appendRow(sqlrow.Delete, rowtest.Null, text("a"))
		faulty(t, err, row.KindRequired, "id")
	})
	t.Run("no such change", func(t *testing.T) {
		_, err := appendRow(9, seven, text("a"))
		faulty(t, err, row.KindType, "")
	})
	t.Run("delete without a key", func(t *testing.T) {
		keyless, err := sqlrow.New(columns, itself, sqlrow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = keyless.AppendRow(nil, table.Destination{}, sqlrow.Record{Change: sqlrow.Delete, Values: []row.Value{seven, text("a")}})
		faulty(t, err, row.KindType, "")
	})
	t.Run("a key that is no column", func(t *testing.T) {
		_, err := sqlrow.New(columns, itself, sqlrow.Options{PrimaryKey: []string{"nowhere"}})
		faulty(t, err, row.KindSchema, "nowhere")
	})
	t.Run("too few values", func(t *testing.T) {
		_, err := appendRow(sqlrow.Insert, seven)
		faulty(t, err, row.KindType, "")
	})
}
