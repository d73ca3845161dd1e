package arrowrow

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var dst = table.Destination{Project: "my-project", Dataset: "d", Table: "t"}

func newBatch(t testing.TB, r arrow.RecordBatch) *Batch {
	t.Helper()
	b, err := NewBatch(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fromJSON makes a batch in the way of Arrow's own tests.
func fromJSON(t testing.TB, doc string, fields ...arrow.Field) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func optional(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func needed(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }

// TestAnyBatch holds rows of any batch, of any layout, to the slow encoding of the values that it was built of.
func TestAnyBatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rowtest.Schemas(rowtest.Types(), 3).Draw(rt, "schema")
		plain(s.Fields)
		rows := make([][]row.Value, rapid.IntRange(0, 4).Draw(rt, "rows"))
		for i := range rows {
			rows[i] = rowtest.Rows(s).Draw(rt, "row")
			tame(s.Fields, rows[i])
		}
		a := arrowSchema(drawn(rt), s)
		record := build(t, a, s, rows)
		if from := rapid.IntRange(0, len(rows)).Draw(rt, "slice"); from > 0 {
			record, rows = record.NewSlice(int64(from), int64(len(rows))), rows[from:]
		}
		for _, derive := range []bool{false, true} {
			o := Options{Schema: s}
			if derive {
				o = Options{DeriveRequired: true}
			}
			ser, err := New(a, o)
			if err != nil {
				rt.Fatalf("%v\n%v", err, a)
			}
			derived, _ := ser.Schema(dst)
			if diff := derived.Diff(s); len(diff) > 0 {
				rt.Fatalf("derived schema: %v", diff)
			}
			b := newBatch(t, record)
			reader, err := NewReader(a)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range rows {
				got, err := ser.AppendRow(nil, dst, Row{b, i})
				want := rowtest.Encode(s.Fields, rows[i])
				if err != nil || !bytes.Equal(got, want) {
					rt.Fatalf("row %d of\n%v\nis %x, %v, want %x", i, record, got, err, want)
				}
				back, err := reader.Read(Row{b, i})
				if err != nil {
					rt.Fatal(err)
				}
				// Decimals come with the scale that they have in Arrow.
				if again := rowtest.Encode(s.Fields, wired(s.Fields, back.Values)); !bytes.Equal(again, want) {
					rt.Fatalf("row %d is read as %+v, which is %x, want %x", i, back.Values, again, want)
				}
			}
		}
	})
}

func TestSuite(t *testing.T) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "b", Type: table.Bool}, {Name: "i", Type: table.Int64, Mode: table.Required}, {Name: "f", Type: table.Float64},
		{Name: "s", Type: table.String}, {Name: "l", Type: table.Int64, Mode: table.Repeated},
		{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bytes}, {Name: "n", Type: table.String, Mode: table.Repeated}}},
		{Name: "ts", Type: table.Timestamp},
	}}
	a := arrow.NewSchema([]arrow.Field{
		optional("b", arrow.FixedWidthTypes.Boolean), optional("i", arrow.PrimitiveTypes.Uint64), optional("f", arrow.PrimitiveTypes.Float32),
		optional("s", arrow.BinaryTypes.String), optional("l", arrow.ListOf(arrow.PrimitiveTypes.Int16)),
		optional("st", arrow.StructOf(optional("x", arrow.BinaryTypes.Binary), optional("n", arrow.ListOf(arrow.BinaryTypes.String)))),
		optional("ts", &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}),
	}, nil)
	const doc = `[{"b": true, "i": 7, "f": 1.5, "s": "hé", "l": [1, -2], "st": {"x": "/w==", "n": ["a", ""]}, "ts": -1},
		{"i": 0},
		{"i": null},
		{"i": 18446744073709551615},
		{"i": 1, "l": [3, null]},
		{"i": 1, "st": {"n": ["a", null]}}]`
	record := func(i int) func() Row {
		return func() Row { return Row{newBatch(t, fromJSON(t, doc, a.Fields()...)), i} }
	}
	null := rowtest.Null
	rowtest.Test(t, rowtest.Format[Row]{
		New:         func() (row.Serializer[Row], error) { return New(a, Options{Schema: s}) },
		Destination: dst,
		Cases: []rowtest.Case[Row]{
			{Name: "every kind", Record: record(0), Values: []row.Value{{Int: 1}, {Int: 7}, rowtest.Float(1.5), rowtest.Text("hé"),
				rowtest.List(row.Value{Int: 1}, row.Value{Int: -2}), rowtest.List(rowtest.Text("\xff"), rowtest.List(rowtest.Text("a"), rowtest.Text(""))), {Int: -1}}},
			{Name: "nulls", Record: record(1), Values: []row.Value{null, {Int: 0}, null, null, {}, null, null}},
			{Name: "null for REQUIRED", Record: record(2), Err: &row.Error{Kind: row.KindRequired, Path: "i"}},
			{Name: "unsigned", Record: record(3), Err: &row.Error{Kind: row.KindRange, Path: "i"}},
			{Name: "null in a list", Record: record(4), Err: &row.Error{Kind: row.KindNullElem, Path: "l[1]"}},
			{Name: "null in an inner list", Record: record(5), Err: &row.Error{Kind: row.KindNullElem, Path: "st.n[1]"}},
		},
		Scribble: func(r Row) {
			for _, v := range r.Batch.columns {
				clear(v.bytes)
				clear(v.data)
			}
		},
	})
}

// one is the column of a one-column batch as a value.
func one(t *testing.T, f arrow.Field, doc string, o Options) (*table.Field, row.Value, error) {
	t.Helper()
	r := fromJSON(t, `[{"`+f.Name+`": `+doc+`}]`, f)
	s, err := New(r.Schema(), o)
	if err != nil {
		return nil, row.Value{}, err
	}
	schema, _ := s.Schema(dst)
	b, err := s.AppendRow(nil, dst, Row{newBatch(t, r), 0})
	if err != nil {
		return &schema.Fields[0], row.Value{}, err
	}
	d, err := row.NewDecoder(schema)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.Fields[0], decoded.Values[0], nil
}

func TestTypes(t *testing.T) {
	ts := func(u arrow.TimeUnit, zone string) arrow.DataType {
		return &arrow.TimestampType{Unit: u, TimeZone: zone}
	}
	dec := func(bits int, p, s int32) arrow.DataType {
		switch bits {
		case 32:
			return &arrow.Decimal32Type{Precision: p, Scale: s}
		case 64:
			return &arrow.Decimal64Type{Precision: p, Scale: s}
		case 128:
			return &arrow.Decimal128Type{Precision: p, Scale: s}
		}
		return &arrow.Decimal256Type{Precision: p, Scale: s}
	}
	number := func(n int64) row.Value { return row.Value{Int: n} }
	for name, c := range map[string]struct {
		typ    arrow.DataType
		doc    string
		column table.Field
		want   row.Value
		kind   row.Kind
		target *table.Field // nil: derived
	}{
		"uint32":              {typ: arrow.PrimitiveTypes.Uint32, doc: "4294967295", column: table.Field{Type: table.Int64}, want: number(4294967295)},
		"int8":                {typ: arrow.PrimitiveTypes.Int8, doc: "-128", column: table.Field{Type: table.Int64}, want: number(-128)},
		"uint16":              {typ: arrow.PrimitiveTypes.Uint16, doc: "65535", column: table.Field{Type: table.Int64}, want: number(65535)},
		"uint8":               {typ: arrow.PrimitiveTypes.Uint8, doc: "255", column: table.Field{Type: table.Int64}, want: number(255)},
		"float16":             {typ: arrow.FixedWidthTypes.Float16, doc: "1.5", column: table.Field{Type: table.Float64}, want: rowtest.Float(1.5)},
		"date64":              {typ: arrow.FixedWidthTypes.Date64, doc: "-86400000", column: table.Field{Type: table.Date}, want: number(-1)},
		"date64, no day":      {typ: arrow.FixedWidthTypes.Date64, doc: "1", column: table.Field{Type: table.Date}, kind: row.KindScale},
		"year 0":              {typ: arrow.FixedWidthTypes.Date32, doc: "-719163", column: table.Field{Type: table.Date}, kind: row.KindRange},
		"time32 s":            {typ: arrow.FixedWidthTypes.Time32s, doc: `"01:02:03"`, column: table.Field{Type: table.Time}, want: number(3723000000)},
		"time32 ms":           {typ: arrow.FixedWidthTypes.Time32ms, doc: `"01:02:03.004"`, column: table.Field{Type: table.Time}, want: number(3723004000)},
		"time64 ns":           {typ: arrow.FixedWidthTypes.Time64ns, doc: `"00:00:00.000001"`, column: table.Field{Type: table.Time}, want: number(1)},
		"SER-94 time64 ns":    {typ: arrow.FixedWidthTypes.Time64ns, doc: `"00:00:00.000000001"`, column: table.Field{Type: table.Time}, kind: row.KindScale},
		"time of tomorrow":    {typ: arrow.FixedWidthTypes.Time32s, doc: "86400", column: table.Field{Type: table.Time}, kind: row.KindRange},
		"timestamp s":         {typ: ts(arrow.Second, "UTC"), doc: "-1", column: table.Field{Type: table.Timestamp}, want: number(-1000000)},
		"timestamp ms":        {typ: ts(arrow.Millisecond, "+02:00"), doc: "1", column: table.Field{Type: table.Timestamp}, want: number(1000)},
		"SER-94 timestamp ns": {typ: ts(arrow.Nanosecond, "UTC"), doc: "-1001", column: table.Field{Type: table.Timestamp}, want: number(-2)},
		"timestamp overflow":  {typ: ts(arrow.Second, "UTC"), doc: "9223372036854775807", column: table.Field{Type: table.Timestamp}, kind: row.KindRange},
		"datetime":            {typ: ts(arrow.Millisecond, ""), doc: "-1", column: table.Field{Type: table.DateTime}, want: number(-1000)},
		"SER-94 datetime ns":  {typ: ts(arrow.Nanosecond, ""), doc: "1", column: table.Field{Type: table.DateTime}, kind: row.KindScale},
		"duration":            {typ: arrow.FixedWidthTypes.Duration_ns, doc: "-1500", column: table.Field{Type: table.Int64}, want: number(-1)},
		"duration s":          {typ: arrow.FixedWidthTypes.Duration_s, doc: "2", column: table.Field{Type: table.Int64}, want: number(2000000)},
		"decimal32":           {typ: dec(32, 9, 2), doc: `"-1.25"`, column: table.Field{Type: table.Numeric, Precision: 9, Scale: 2}, want: rowtest.Decimal(table.Numeric, "-1.25")},
		"decimal64":           {typ: dec(64, 18, 9), doc: `"1.25"`, column: table.Field{Type: table.Numeric, Precision: 18, Scale: 9}, want: rowtest.Decimal(table.Numeric, "1.25")},
		"SER-77 (38,9)":       {typ: dec(128, 38, 9), doc: `"1.25"`, column: table.Field{Type: table.Numeric}, want: rowtest.Decimal(table.Numeric, "1.25")},
		"SER-77 (30,0)":       {typ: dec(128, 30, 0), doc: `"1"`, column: table.Field{Type: table.BigNumeric, Precision: 30}, want: rowtest.Decimal(table.BigNumeric, "1")},
		"SER-77 (20,10)":      {typ: dec(128, 20, 10), doc: `"1"`, column: table.Field{Type: table.BigNumeric, Precision: 20, Scale: 10}, want: rowtest.Decimal(table.BigNumeric, "1")},
		"SER-77 (76,38)":      {typ: dec(256, 76, 38), doc: `"1"`, column: table.Field{Type: table.BigNumeric}, want: rowtest.Decimal(table.BigNumeric, "1")},
		"SER-77 (39,0)":       {typ: dec(256, 39, 0), doc: `"1"`, kind: row.KindDecimal},
		"SER-77 (60,39)":      {typ: dec(256, 60, 39), doc: `"1"`, kind: row.KindDecimal},
		"SER-78 (12,4)":       {typ: dec(128, 12, 4), doc: `"1"`, column: table.Field{Type: table.Numeric, Precision: 12, Scale: 4}, want: rowtest.Decimal(table.Numeric, "1")},
		"scale below zero":    {typ: dec(128, 3, -2), doc: `"1200"`, column: table.Field{Type: table.Numeric, Precision: 5}, want: rowtest.Decimal(table.Numeric, "1200")},
		"fixed bytes":         {typ: &arrow.FixedSizeBinaryType{ByteWidth: 2}, doc: `"aGk="`, column: table.Field{Type: table.Bytes}, want: rowtest.Text("hi")},
		"months":              {typ: arrow.FixedWidthTypes.MonthInterval, doc: `{"months": -13}`, column: table.Field{Type: table.Interval}, want: rowtest.List(number(-13), number(0), number(0))},
		"too many months":     {typ: arrow.FixedWidthTypes.MonthInterval, doc: `{"months": 120001}`, column: table.Field{Type: table.Interval}, kind: row.KindRange},
		"day and time":        {typ: arrow.FixedWidthTypes.DayTimeInterval, doc: `{"days": 2, "milliseconds": -3}`, column: table.Field{Type: table.Interval}, want: rowtest.List(number(0), number(2), number(-3000))},
		"fixed list": {typ: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), doc: "[1, 2]", column: table.Field{Type: table.Int64, Mode: table.Repeated},
			want: rowtest.List(number(1), number(2))},
		"null list": {typ: arrow.ListOf(arrow.PrimitiveTypes.Int32), doc: "null", column: table.Field{Type: table.Int64, Mode: table.Repeated}},
		"SER-85 map": {typ: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), doc: `[{"key": "a", "value": 1}]`,
			column: table.Field{Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "key", Type: table.String}, {Name: "value", Type: table.Int64}}},
			want:   rowtest.List(rowtest.List(rowtest.Text("a"), number(1)))},
		"no column":            {typ: arrow.Null, doc: "null", kind: row.KindColType},
		"SER-83 list of lists": {typ: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), doc: "null", kind: row.KindArray},
		"SER-83 list of maps":  {typ: arrow.ListOf(arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)), doc: "null", kind: row.KindArray},
		"SER-88 empty struct":  {typ: arrow.StructOf(), doc: "null", kind: row.KindEmpty},
		"SER-88 names":         {typ: arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64), optional("A", arrow.PrimitiveTypes.Int64)), doc: "null", kind: row.KindCase},

		"int to FLOAT64":       {typ: arrow.PrimitiveTypes.Int64, doc: "9007199254740992", target: &table.Field{Type: table.Float64}, want: rowtest.Float(1 << 53)},
		"inexact to FLOAT64":   {typ: arrow.PrimitiveTypes.Int64, doc: "9007199254740993", target: &table.Field{Type: table.Float64}, kind: row.KindRange},
		"uint64 to NUMERIC":    {typ: arrow.PrimitiveTypes.Uint64, doc: "18446744073709551615", target: &table.Field{Type: table.Numeric}, want: rowtest.Decimal(table.Numeric, "18446744073709551615")},
		"int8 to BIGNUMERIC":   {typ: arrow.PrimitiveTypes.Int8, doc: "-1", target: &table.Field{Type: table.BigNumeric}, want: rowtest.Decimal(table.BigNumeric, "-1")},
		"SER-76 (10,2)":        {typ: dec(128, 20, 4), doc: `"1.2000"`, target: &table.Field{Type: table.Numeric, Precision: 10, Scale: 2}, want: rowtest.Decimal(table.Numeric, "1.2")},
		"SER-76 R-SCALE":       {typ: dec(128, 20, 4), doc: `"1.2340"`, target: &table.Field{Type: table.Numeric, Precision: 10, Scale: 2}, kind: row.KindScale},
		"too many digits":      {typ: dec(256, 70, 0), doc: `"100000000000000000000000000000000000000000000000000"`, target: &table.Field{Type: table.BigNumeric}, kind: row.KindRange},
		"256 bits to NUMERIC":  {typ: dec(256, 38, 9), doc: `"-1.5"`, target: &table.Field{Type: table.Numeric}, want: rowtest.Decimal(table.Numeric, "-1.5")},
		"JSON":                 {typ: arrow.BinaryTypes.LargeString, doc: `"{}"`, target: &table.Field{Type: table.JSON}, want: rowtest.Text("{}")},
		"float to INT64":       {typ: arrow.PrimitiveTypes.Float64, doc: "1", target: &table.Field{Type: table.Int64}, kind: row.KindColType},
		"text to INT64":        {typ: arrow.BinaryTypes.String, doc: `"1"`, target: &table.Field{Type: table.Int64}, kind: row.KindColType},
		"DATETIME from zone":   {typ: ts(arrow.Microsecond, "UTC"), doc: "1", target: &table.Field{Type: table.DateTime}, kind: row.KindColType},
		"list for a scalar":    {typ: arrow.ListOf(arrow.PrimitiveTypes.Int64), doc: "[1]", target: &table.Field{Type: table.Int64}, kind: row.KindColType},
		"a scalar for a list":  {typ: arrow.PrimitiveTypes.Int64, doc: "1", target: &table.Field{Type: table.Int64, Mode: table.Repeated}, kind: row.KindColType},
		"duration to FLOAT64":  {typ: arrow.FixedWidthTypes.Duration_ns, doc: "1", target: &table.Field{Type: table.Float64}, kind: row.KindColType},
		"struct to text":       {typ: arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64)), doc: "null", target: &table.Field{Type: table.String}, kind: row.KindColType},
		"text that is no UTF8": {typ: arrow.BinaryTypes.Binary, doc: `"/w=="`, target: &table.Field{Type: table.String}, kind: row.KindColType},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			if c.target != nil {
				c.target.Name = "c"
				o.Schema = &table.Schema{Fields: []table.Field{*c.target}}
			}
			f, v, err := one(t, optional("c", c.typ), c.doc, o)
			if c.kind != "" {
				var e *row.Error
				if !errors.As(err, &e) || e.Kind != c.kind || !strings.HasPrefix(e.Path, "c") {
					t.Fatalf("%v, want %s at c", err, c.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.target == nil {
				c.column.Name = "c"
				if want := (&table.Schema{Fields: []table.Field{c.column}}); !want.Equal(&table.Schema{Fields: []table.Field{*f}}) {
					t.Errorf("column %+v, want %+v", *f, c.column)
				}
			}
			if diff := rowtest.Diff(&table.Schema{Fields: []table.Field{*f}}, []row.Value{c.want}, []row.Value{v}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		optional("doc", arrow.BinaryTypes.String), optional("place", arrow.BinaryTypes.LargeString),
		optional("m", arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)), optional("l", arrow.ListOf(arrow.BinaryTypes.String)),
		optional("n", arrow.PrimitiveTypes.Int64),
	}, nil)
	got, err := SchemaOf(s, Options{JSON: []string{"doc", "m.value", "l"}, Geography: []string{"place"}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Fields[0].Type != table.JSON || got.Fields[1].Type != table.Geography || got.Fields[2].Fields[1].Type != table.JSON || got.Fields[3].Type != table.JSON {
		t.Errorf("%+v", got)
	}
	for name, c := range map[string]struct {
		o    Options
		kind row.Kind
		path string
	}{
		"no such path":    {Options{JSON: []string{"nope"}}, row.KindPath, "nope"},
		"a number":        {Options{JSON: []string{"n"}}, row.KindMark, "n"},
		"both":            {Options{JSON: []string{"doc"}, Geography: []string{"doc"}}, row.KindBoth, "doc"},
		"schema is given": {Options{Schema: got, JSON: []string{"doc"}}, row.KindSchema, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(s, c.o)
			var e *row.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Path != c.path {
				t.Errorf("%v, want %s at %q", err, c.kind, c.path)
			}
		})
	}
}

func TestTablesThatDiffer(t *testing.T) {
	a := arrow.NewSchema([]arrow.Field{optional("USER", arrow.BinaryTypes.String), optional("more", arrow.PrimitiveTypes.Int64)}, nil)
	user := table.Field{Name: "user", Type: table.String}
	extra := table.Field{Name: "extra", Type: table.Int64}
	_, err := New(a, Options{Schema: &table.Schema{Fields: []table.Field{user, extra}}})
	var e *row.Error
	if !errors.As(err, &e) || e.Kind != row.KindSchema || e.Path != "more" {
		t.Errorf("%v, want C-SCHEMA at more", err)
	}
	s, err := New(a, Options{Schema: &table.Schema{Fields: []table.Field{user, extra}}, IgnoreUnknownFields: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBatch(t, fromJSON(t, `[{"USER": "x", "more": 1}]`, a.Fields()...))
	if got, err := s.AppendRow(nil, dst, Row{b, 0}); err != nil || string(got) != "\x0a\x01x" {
		t.Errorf("%x, %v", got, err)
	}
	extra.Mode = table.Required
	_, err = New(a, Options{Schema: &table.Schema{Fields: []table.Field{user, extra}}, IgnoreUnknownFields: true})
	if !errors.As(err, &e) || e.Kind != row.KindSchema || e.Path != "extra" {
		t.Errorf("%v, want C-SCHEMA at extra", err)
	}
}

// TestBatchesOfOtherSchemas: a reader may answer batches whose schema changes on the way.
func TestBatchesOfOtherSchemas(t *testing.T) {
	s, err := New(arrow.NewSchema([]arrow.Field{optional("a", arrow.PrimitiveTypes.Int64), optional("b", arrow.BinaryTypes.String)}, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := newBatch(t, fromJSON(t, `[{"b": "x", "a": 1}]`, optional("b", arrow.BinaryTypes.LargeString), optional("a", arrow.PrimitiveTypes.Int8)))
	for range 2 {
		if got, err := s.AppendRow(nil, dst, Row{other, 0}); err != nil || string(got) != "\x08\x01\x12\x01x" {
			t.Errorf("%x, %v", got, err)
		}
	}
	wrong := newBatch(t, fromJSON(t, `[{"a": "x"}]`, optional("a", arrow.BinaryTypes.String)))
	var e *row.Error
	if _, err := s.AppendRow(nil, dst, Row{wrong, 0}); !errors.As(err, &e) || e.Kind != row.KindColType || e.Path != "a" {
		t.Errorf("%v, want C-TYPE at a", err)
	}
	for name, r := range map[string]Row{"no batch": {}, "row -1": {other, -1}, "row 1": {other, 1}} {
		if _, err := s.AppendRow(nil, dst, r); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestBatchKeepsItsMemory(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	b, _, err := array.RecordFromJSON(mem, arrow.NewSchema([]arrow.Field{optional("a", arrow.ListOf(arrow.BinaryTypes.String))}, nil), strings.NewReader(`[{"a": ["x"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	batch := newBatch(t, b)
	b.Release()
	s, err := New(batch.Schema(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.AppendRow(nil, dst, Row{batch, 0}); err != nil || string(got) != "\x0a\x01x" || batch.Len() != 1 || batch.Record() != b {
		t.Errorf("%x, %v", got, err)
	}
	batch.Release()
}

// damagedData is an array of any parts.
func damagedData(t arrow.DataType, n, offset int, buffers [][]byte, children ...arrow.ArrayData) arrow.ArrayData {
	all := make([]*memory.Buffer, len(buffers))
	for i, b := range buffers {
		if b != nil {
			all[i] = memory.NewBufferBytes(b)
		}
	}
	return array.NewData(t, n, all, children, array.UnknownNullCount, offset)
}

// TestDamagedArraysAreRefused: what does not fit together is found before a row is read.
func TestDamagedArraysAreRefused(t *testing.T) {
	words := func(v ...int64) (out []byte) {
		for _, w := range v {
			out = append(out, le64(w)...)
		}
		return out
	}
	str, large, list := arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeString, arrow.LargeListOf(arrow.PrimitiveTypes.Int64)
	ints := damagedData(arrow.PrimitiveTypes.Int64, 2, 0, [][]byte{nil, words(1, 2)})
	view := func(n, buffer, at uint32) []byte {
		return slices.Concat([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 0, 0, 0, 0},
			[]byte{byte(buffer), 0, 0, 0}, []byte{byte(at), byte(at >> 8), byte(at >> 16), byte(at >> 24)})
	}
	for name, d := range map[string]arrow.ArrayData{
		"values cut":               damagedData(arrow.PrimitiveTypes.Int64, 2, 0, [][]byte{nil, words(1)}),
		"no values":                damagedData(arrow.PrimitiveTypes.Int64, 2, 0, [][]byte{nil, nil}),
		"values far behind":        damagedData(arrow.PrimitiveTypes.Int64, 2, 1<<62, [][]byte{nil, words(1)}),
		"validity cut":             damagedData(arrow.PrimitiveTypes.Int64, 9, 0, [][]byte{{1}, make([]byte, 72)}),
		"no buffers":               damagedData(arrow.PrimitiveTypes.Int64, 2, 0, nil),
		"a text behind the end":    damagedData(str, 2, 0, [][]byte{nil, words(0, 1, 9), []byte("abc")}),
		"offsets that fall":        damagedData(str, 2, 0, [][]byte{nil, words(2, 1, 3), []byte("abc")}),
		"offsets below zero":       damagedData(large, 2, 0, [][]byte{nil, words(-1, 1, 3), []byte("abc")}),
		"offsets cut":              damagedData(large, 2, 0, [][]byte{nil, words(0, 1), []byte("abc")}),
		"a 1 EiB text":             damagedData(large, 1, 0, [][]byte{nil, words(0, 1<<60), []byte("abc")}),
		"a list behind its child":  damagedData(list, 1, 0, [][]byte{nil, words(0, 3)}, ints),
		"a list without a child":   damagedData(list, 1, 0, [][]byte{nil, words(0, 1)}),
		"a long fixed list":        damagedData(arrow.FixedSizeListOf(1<<30, arrow.PrimitiveTypes.Int64), 2, 0, [][]byte{nil}, ints),
		"a view behind its buffer": damagedData(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(13, 0, 1), make([]byte, 13)}),
		"a view of no buffer":      damagedData(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(13, 7, 0), make([]byte, 13)}),
		"a view of no length":      damagedData(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(1<<31, 0, 0), make([]byte, 13)}),
		"a list view":              damagedData(arrow.LargeListViewOf(arrow.PrimitiveTypes.Int64), 1, 0, [][]byte{nil, words(1), words(2)}, ints),
		"a list view of 1<<62":     damagedData(arrow.LargeListViewOf(arrow.PrimitiveTypes.Int64), 1, 0, [][]byte{nil, words(1 << 62), words(1 << 62)}, ints),
		"a struct without members": damagedData(arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64)), 1, 0, [][]byte{nil}),
		"a struct of short ones":   damagedData(arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64)), 3, 0, [][]byte{nil}, ints),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := take(d, d.Len()); !errors.Is(err, ErrDamaged) {
				t.Errorf("%v, want %v", err, ErrDamaged)
			}
		})
	}
	if _, err := take(ints, 3); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v for more values than there are", err)
	}
	dict := array.NewDataWithDictionary(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, 2,
		[]*memory.Buffer{nil, memory.NewBufferBytes([]byte{0, 1})}, 0, 0,
		damagedData(arrow.BinaryTypes.String, 1, 0, [][]byte{nil, make([]byte, 8), nil}).(*array.Data))
	if _, err := take(dict, 2); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v for an index beyond the dictionary", err)
	}
	if _, err := NewBatch(nil); err == nil {
		t.Error("no batch: want an error")
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no schema: want an error")
	}
	for name, fields := range map[string][]arrow.Field{
		"no columns": nil, "hostile": {optional("a`b", arrow.PrimitiveTypes.Int64)}, "NUL": {optional("a\x00", arrow.PrimitiveTypes.Int64)},
		"no UTF-8": {optional("\xff", arrow.PrimitiveTypes.Int64)}, "empty": {optional("", arrow.PrimitiveTypes.Int64)},
		"twice": {optional("a", arrow.PrimitiveTypes.Int64), optional("a", arrow.PrimitiveTypes.Int64)},
	} {
		if _, err := New(arrow.NewSchema(fields, nil), Options{}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestAppendRowAllocatesNothing(t *testing.T) {
	b, s := githubLike(t, 100)
	buf := make([]byte, 0, 64<<10)
	var err error
	i := 0
	if n := testing.AllocsPerRun(100, func() {
		_, err = s.AppendRow(buf, dst, Row{b, i % 100})
		i++
	}); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

// githubLike is a batch of eight columns.
func githubLike(t testing.TB, n int) (*Batch, *Serializer) {
	t.Helper()
	schema := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64}, {Name: "user", Type: table.String}, {Name: "at", Type: table.Timestamp}, {Name: "score", Type: table.Float64},
		{Name: "flag", Type: table.Bool}, {Name: "price", Type: table.Numeric}, {Name: "day", Type: table.Date}, {Name: "tags", Type: table.String, Mode: table.Repeated},
	}}
	rows := make([][]row.Value, n)
	for i := range rows {
		k := int64(i)
		rows[i] = []row.Value{{Int: 1_000_000 + k}, rowtest.Text("user-name-of-some-length"), {Int: 1785027723456789 + k}, rowtest.Float(float64(k) / 3),
			{Int: k & 1}, rowtest.Decimal(table.Numeric, "12.5"), {Int: 20660}, rowtest.List(rowtest.Text("red"), rowtest.Text("blue"))}
	}
	a := arrowSchema(first, schema)
	s, err := New(a, Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return newBatch(t, build(t, a, schema, rows)), s
}

func BenchmarkAppendRow(b *testing.B) {
	batch, s := githubLike(b, 1000)
	buf := make([]byte, 0, 64<<10)
	b.ReportAllocs()
	rows, size := 0, 0
	for b.Loop() {
		out, err := s.AppendRow(buf, dst, Row{batch, rows % 1000})
		if err != nil {
			b.Fatal(err)
		}
		rows++
		size += len(out)
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(size)/b.Elapsed().Seconds()/1e6, "MB/s")
}

func BenchmarkNewBatch(b *testing.B) {
	batch, _ := githubLike(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		x, err := NewBatch(batch.Record())
		if err != nil {
			b.Fatal(err)
		}
		x.Release()
	}
}

func TestAppendField(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	b := newBatch(t, fromJSON(t, `[{"s": "push", "n": -7, "b": true, "st": {"x": "deep"}, "d": "coded", "f": 1.5, "none": null}]`,
		optional("s", arrow.BinaryTypes.LargeString), optional("n", arrow.PrimitiveTypes.Int16), optional("b", arrow.FixedWidthTypes.Boolean),
		optional("st", arrow.StructOf(optional("x", arrow.BinaryTypes.StringView))), optional("d", dict), optional("f", arrow.PrimitiveTypes.Float64),
		optional("none", arrow.BinaryTypes.String)))
	for path, want := range map[string]string{"s": "push", "n": "-7", "b": "true", "st.x": "deep", "d": "coded", "f": "R-TYPE", "none": "R-REQUIRED",
		"S": "R-REQUIRED", "": "R-REQUIRED", "st": "R-TYPE", "st.y": "R-REQUIRED", "s.x": "R-TYPE", "none.x": "R-REQUIRED"} {
		got, err := AppendField([]byte("x."), Row{b, 0}, path)
		var e *row.Error
		if errors.As(err, &e) {
			got = []byte("x." + string(e.Kind))
		}
		if string(got) != "x."+want {
			t.Errorf("%q: %s, %v, want %s", path, got, err, want)
		}
	}
	if _, err := AppendField(nil, Row{b, 1}, "s"); err == nil {
		t.Error("row 1 of 1: want an error")
	}
}

// wired are values with their decimals in the scale of the wire.
func wired(fields []table.Field, values []row.Value) []row.Value {
	out := slices.Clone(values)
	for i := range fields {
		f := &fields[i]
		fix := func(v row.Value) row.Value {
			switch {
			case v.Null:
			case row.Members(f) != nil:
				v.List = wired(row.Members(f), v.List)
			case f.Type == table.Numeric || f.Type == table.BigNumeric:
				d := row.DecimalOf(f)
				s, err := row.ScaledFromBigEndian(v.Bytes)
				if err == nil {
					s, err = d.Rescale(s, int(v.Int))
				}
				if err != nil {
					panic(err)
				}
				v.Bytes = s.AppendBigEndian(nil)
			}
			return v
		}
		if f.Mode != table.Repeated {
			out[i] = fix(out[i])
			continue
		}
		out[i].List = slices.Clone(out[i].List)
		for k := range out[i].List {
			out[i].List[k] = fix(out[i].List[k])
		}
	}
	return out
}

func TestReader(t *testing.T) {
	a := arrow.NewSchema([]arrow.Field{needed("i", arrow.PrimitiveTypes.Int64), optional("l", arrow.ListOf(arrow.BinaryTypes.String)),
		optional("d", &arrow.Decimal128Type{Precision: 3, Scale: -2}), optional("t", arrow.FixedWidthTypes.Time32s)}, nil)
	r, err := NewReader(a)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Schema().Fields[0].Mode; m != table.Required {
		t.Errorf("mode %v", m)
	}
	b := newBatch(t, fromJSON(t, `[{"i": 1, "l": ["a"], "d": "1200", "t": 1}, {"i": 2}, {"i": null}, {"i": 1, "l": [null]}, {"i": 1, "t": 86400}]`, a.Fields()...))
	got, err := r.Read(Row{b, 0})
	if err != nil || got.Values[0].Int != 1 || string(got.Values[1].List[0].Bytes) != "a" || got.Values[3].Int != 1_000_000 ||
		rowtest.Diff(r.Schema(), got.Values, []row.Value{{Int: 1}, rowtest.List(rowtest.Text("a")), rowtest.Decimal(table.Numeric, "1200"), {Int: 1_000_000}}) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := r.Read(Row{b, 1}); err != nil || !got.Values[2].Null || len(got.Values[1].List) != 0 || got.Values[1].Null {
		t.Errorf("%+v, %v", got, err)
	}
	for i, want := range map[int]row.Error{2: {Kind: row.KindNull, Path: "i"}, 3: {Kind: row.KindNull, Path: "l[0]"}, 4: {Kind: row.KindDecode, Path: "t"}} {
		_, err := r.Read(Row{b, i})
		var e *row.Error
		if !errors.As(err, &e) || e.Kind != want.Kind || e.Path != want.Path {
			t.Errorf("row %d: %v, want %s at %s", i, err, want.Kind, want.Path)
		}
	}
	if _, err := r.Read(Row{b, 5}); err == nil {
		t.Error("row 5 of 5: want an error")
	}
	other := newBatch(t, fromJSON(t, `[{"i": 1}]`, optional("i", arrow.PrimitiveTypes.Int8)))
	if _, err := r.Read(Row{other, 0}); err == nil {
		t.Error("another schema: want an error")
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	b, _ := githubLike(t, 100)
	r, err := NewReader(b.Schema())
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	if n := testing.AllocsPerRun(200, func() {
		_, err = r.Read(Row{b, i % 100})
		i++
	}); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func BenchmarkRead(b *testing.B) {
	batch, _ := githubLike(b, 1000)
	r, err := NewReader(batch.Schema())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		if _, err := r.Read(Row{batch, rows % 1000}); err != nil {
			b.Fatal(err)
		}
		rows++
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
