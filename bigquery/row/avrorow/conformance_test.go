package avrorow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// of is the schema of a record with the one field f.
func of(typ string) string {
	return `{"type":"record","name":"R","fields":[{"name":"f","type":` + typ + `}]}`
}

// logical is a type with a logical type.
func logical(typ, name string) string {
	return fmt.Sprintf(`{"type":%q,"logicalType":%q}`, typ, name)
}

// column derives the column of a field f, or the kind and the path of the error.
func column(typ string, o Options) (*table.Field, string) {
	s, err := Schema(of(typ), o)
	if err != nil {
		return nil, kinds(err)
	}
	return &s.Fields[0], ""
}

// kinds are the kinds and paths of an error's parts.
func kinds(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, kinds(e))
		}
		return strings.Join(all, ", ")
	}
	if e, ok := errors.AsType[*row.Error](err); ok {
		return strings.TrimSpace(string(e.Kind) + " " + e.Path)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// spell is a column as GoogleSQL has it.
func spell(f *table.Field) string {
	text := f.Type.String()
	if f.Precision > 0 {
		text += fmt.Sprintf("(%d,%d)", f.Precision, f.Scale)
	}
	if f.Type == table.Struct {
		var members []string
		for i := range f.Fields {
			members = append(members, f.Fields[i].Name+" "+spell(&f.Fields[i]))
		}
		text = "STRUCT<" + strings.Join(members, ", ") + ">"
	}
	switch f.Mode {
	case table.Repeated:
		return "ARRAY<" + text + ">"
	case table.Required:
		return text + " NOT NULL"
	}
	return text
}

func spelled(typ string, o Options) string {
	f, fault := column(typ, o)
	if fault != "" {
		return fault
	}
	return spell(f)
}

// fromGo is the value of f that a Go value becomes, or the kind and path of the error.
func fromGo(t *testing.T, typ string, o Options, v any) (row.Value, string) {
	t.Helper()
	s, err := NewRecords(of(typ), func(m map[string]any) map[string]any { return m }, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.AppendRow(nil, table.Destination{}, map[string]any{"f": v})
	if err != nil {
		return row.Value{}, kinds(err)
	}
	out := decoded(t, s.schema, b)
	keeps(t, s, out, map[string]any{"f": v})
	return out, ""
}

// fromBytes is the value of f that the bytes of a datum become, or the kind and path of the error.
func fromBytes(t *testing.T, typ string, o Options, datum []byte) (row.Value, string) {
	t.Helper()
	s, err := New(of(typ), func(b []byte) []byte { return b }, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.AppendRow(nil, table.Destination{}, datum)
	if err != nil {
		return row.Value{}, kinds(err)
	}
	out := decoded(t, s.schema, b)
	keeps(t, s, out, datum)
	return out, ""
}

// keeps checks that a BigQuery stores the value whichever way it goes there, but for an empty text in a JSON column, which it refuses.
func keeps[T any](t *testing.T, rows row.Serializer[T], want row.Value, rec T) {
	t.Helper()
	s, err := rows.Schema(table.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stored.Check(t.Context(), stored.Start(t), rows, [][]row.Value{{want}}, rec)
	if refused := s.Fields[0].Type == table.JSON && want.List == nil && len(want.Bytes) == 0; refused != (err != nil) {
		t.Errorf("%v, want a refusal: %v", err, refused)
	}
}

func decoded(t *testing.T, s *table.Schema, b []byte) row.Value {
	t.Helper()
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Decode(b)
	if err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return r.Values[0]
}

// both checks a raw Go value and the same value in the binary encoding.
func both(t *testing.T, typ string, v any, want row.Value) {
	t.Helper()
	got, fault := fromGo(t, typ, Options{}, v)
	if fault != "" || !cmp.Equal(got, want) {
		t.Errorf("%s: Go value %v gives %v %s, want %v", typ, v, got, fault, want)
	}
	s, err := avro.Parse(of(typ))
	if err != nil {
		t.Fatal(err)
	}
	got, fault = fromBytes(t, typ, Options{}, encode(nil, s, map[string]any{"f": v}))
	if fault != "" || !cmp.Equal(got, want) {
		t.Errorf("%s: the datum of %v gives %v %s, want %v", typ, v, got, fault, want)
	}
}

// refused checks that a raw Go value and the same value in the binary encoding are refused.
func refused(t *testing.T, typ string, v any, want string) {
	t.Helper()
	if got, fault := fromGo(t, typ, Options{}, v); fault != want {
		t.Errorf("%s: Go value %v gives %v %q, want %q", typ, v, got, fault, want)
	}
	s, err := avro.Parse(of(typ))
	if err != nil {
		t.Fatal(err)
	}
	if got, fault := fromBytes(t, typ, Options{}, encode(nil, s, map[string]any{"f": v})); fault != want {
		t.Errorf("%s: the datum of %v gives %v %q, want %q", typ, v, got, fault, want)
	}
}

// becomes checks a converted Go value.
func becomes(t *testing.T, typ string, v any, want row.Value) {
	t.Helper()
	if got, fault := fromGo(t, typ, Options{}, v); fault != "" || !cmp.Equal(got, want) {
		t.Errorf("%s: %v gives %v %s, want %v", typ, v, got, fault, want)
	}
}

func refusedGo(t *testing.T, typ string, v any, want string) {
	t.Helper()
	if got, fault := fromGo(t, typ, Options{}, v); fault != want {
		t.Errorf("%s: %v gives %v %q, want %q", typ, v, got, fault, want)
	}
}

func integer(n int64) row.Value { return row.Value{Int: n} }

var dr = Options{DeriveRequired: true}

type label string

func must(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTypes(t *testing.T) {
	t.Run("SER-69 plain types", func(t *testing.T) {
		both(t, `"string"`, "é", rowtest.Text("é"))
		both(t, logical("string", "uuid"), "not checked", rowtest.Text("not checked"))
		both(t, `{"type":"enum","name":"E","symbols":["A","B"]}`, "B", rowtest.Text("B"))
		both(t, `"bytes"`, []byte{0, 255}, rowtest.Text("\x00\xff"))
		both(t, `{"type":"fixed","name":"F","size":16}`, []byte("0123456789abcdef"), rowtest.Text("0123456789abcdef"))
		both(t, `"int"`, int32(-7), integer(-7))
		both(t, `"long"`, int64(-1<<63), integer(-1<<63))
		both(t, `"float"`, float32(1.1), rowtest.Float(float64(float32(1.1))))
		both(t, `"double"`, 1.1, rowtest.Float(1.1))
		both(t, `"boolean"`, true, integer(1))
		becomes(t, `"string"`, label("x"), rowtest.Text("x"))
		becomes(t, logical("string", "uuid"), [16]byte{0x12, 15: 0xef}, rowtest.Text("12000000-0000-0000-0000-0000000000ef"))
		becomes(t, `{"type":"fixed","name":"F","size":2}`, [2]byte{1, 2}, rowtest.Text("\x01\x02"))
		becomes(t, `"long"`, 5, integer(5))
	})
	t.Run("SER-70 DATE", func(t *testing.T) {
		both(t, logical("int", "date"), int32(19000), integer(19000))
		becomes(t, logical("int", "date"), civil.Date{Year: 2022, Month: 1, Day: 8}, integer(19000))
		becomes(t, logical("int", "date"), time.Date(2022, 1, 8, 23, 59, 0, 0, time.FixedZone("", -12*3600)), integer(19000))
	})
	t.Run("SER-71 TIME", func(t *testing.T) {
		const want = 45296_789_000
		both(t, logical("int", "time-millis"), int32(45296789), integer(want))
		both(t, logical("long", "time-micros"), int64(45296789000), integer(want))
		becomes(t, logical("int", "time-millis"), 12*time.Hour+34*time.Minute+56*time.Second+789*time.Millisecond, integer(want))
		becomes(t, logical("long", "time-micros"), civil.Time{Hour: 12, Minute: 34, Second: 56, Nanosecond: 789_000_000}, integer(want))
		if row.PackTime(want) != 53880818184 {
			t.Errorf("packed as %d", row.PackTime(want))
		}
	})
	t.Run("SER-72 TIME outside of a day", func(t *testing.T) {
		refused(t, logical("int", "time-millis"), int32(90000000), "R-RANGE f")
		refused(t, logical("long", "time-micros"), int64(-1), "R-RANGE f")
		refusedGo(t, logical("long", "time-micros"), 24*time.Hour, "R-RANGE f")
	})
	t.Run("SER-73 TIMESTAMP", func(t *testing.T) {
		both(t, logical("long", "timestamp-millis"), int64(1785027723456), integer(1785027723456000))
		becomes(t, logical("long", "timestamp-micros"), time.Date(2026, 7, 26, 1, 2, 3, 456789999, time.UTC), integer(1785027723456789))
		refused(t, logical("long", "timestamp-millis"), int64(1<<62), "R-RANGE f")
		refused(t, logical("long", "timestamp-micros"), int64(row.MaxMicros+1), "R-RANGE f")
		refusedGo(t, logical("long", "timestamp-micros"), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "R-RANGE f")
	})
	t.Run("SER-74 DATETIME", func(t *testing.T) {
		both(t, logical("long", "local-timestamp-micros"), int64(1785027723456789), integer(1785027723456789))
		both(t, logical("long", "local-timestamp-millis"), int64(1785027723456), integer(1785027723456000))
		if got := row.PackDateTime(1785027723456789); got != 142601439875102805 {
			t.Errorf("packed as %d", got)
		}
		wall := time.Date(2026, 7, 26, 1, 2, 3, 456789000, time.FixedZone("", 3600))
		becomes(t, logical("long", "local-timestamp-micros"), wall, integer(1785027723456789))
		becomes(t, logical("long", "local-timestamp-micros"), civil.DateTimeOf(wall), integer(1785027723456789))
	})
}

func decimalType(p, s int) string {
	return fmt.Sprintf(`{"type":"bytes","logicalType":"decimal","precision":%d,"scale":%d}`, p, s)
}

func TestDecimals(t *testing.T) {
	wire := func(t *testing.T, typ string, v any, want string) {
		t.Helper()
		s, err := NewRecords(of(typ), func(m map[string]any) map[string]any { return m }, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.AppendRow(nil, table.Destination{}, map[string]any{"f": v})
		if err != nil || len(b) < 2 || hex.EncodeToString(b[2:]) != want {
			t.Errorf("%v gives %x, %v, want %s behind the tag", v, b, err, want)
		}
	}
	t.Run("SER-75 bytes of a decimal", func(t *testing.T) {
		wire(t, decimalType(20, 4), []byte{0, 0xbc, 0x61, 0x4e}, "c0a4f9711f01")
		wire(t, decimalType(20, 4), []byte{0xff}, "6079fe")
		both(t, decimalType(20, 4), []byte{0, 0xbc, 0x61, 0x4e}, rowtest.Decimal(table.Numeric, "1234.5678"))
		both(t, `{"type":"fixed","name":"F","size":9,"logicalType":"decimal","precision":20,"scale":4}`,
			[]byte{255, 255, 255, 255, 255, 255, 255, 255, 255}, rowtest.Decimal(table.Numeric, "-0.0001"))
	})
	t.Run("SER-76 digits behind the point", func(t *testing.T) {
		wire(t, decimalType(10, 2), big.NewRat(12, 10), "008c8647")
		refusedGo(t, decimalType(10, 2), big.NewRat(123456, 100000), "R-SCALE f")
		becomes(t, decimalType(10, 2), big.NewRat(12000, 10000), rowtest.Decimal(table.Numeric, "1.2"))
		becomes(t, decimalType(10, 2), coefficientOf{120, -2}, rowtest.Decimal(table.Numeric, "1.2"))
		refusedGo(t, decimalType(10, 2), big.NewRat(100_000_000, 1), "R-RANGE f")
		refused(t, decimalType(4, 2), []byte{0x27, 0x10}, "R-RANGE f") // 10000 has five digits
		both(t, decimalType(4, 2), []byte{0x27, 0x0f}, rowtest.Decimal(table.Numeric, "99.99"))
		refused(t, decimalType(76, 38), append([]byte{1}, make([]byte, 40)...), "R-RANGE f")
	})
	t.Run("SER-77 NUMERIC, BIGNUMERIC, neither", func(t *testing.T) {
		for _, c := range []struct {
			p, s int
			want string
		}{
			{38, 9, "NUMERIC(38,9)"}, {29, 0, "NUMERIC(29,0)"}, {30, 0, "BIGNUMERIC(30,0)"}, {35, 2, "BIGNUMERIC(35,2)"},
			{39, 9, "BIGNUMERIC(39,9)"}, {20, 10, "BIGNUMERIC(20,10)"}, {76, 38, "BIGNUMERIC(76,38)"}, {9, 9, "NUMERIC(9,9)"},
			{77, 38, "C-DECIMAL f"}, {39, 0, "C-DECIMAL f"}, {60, 39, "C-DECIMAL f"},
		} {
			must(t, spelled(decimalType(c.p, c.s), Options{}), c.want)
		}
	})
	t.Run("SER-78 precision and scale of the column", func(t *testing.T) {
		f, fault := column(decimalType(12, 4), Options{})
		if fault != "" || f.Precision != 12 || f.Scale != 4 {
			t.Errorf("%+v %s", f, fault)
		}
	})
}

// coefficientOf is a decimal type as other packages have them.
type coefficientOf struct {
	unscaled int64
	exponent int32
}

func (c coefficientOf) Coefficient() *big.Int { return big.NewInt(c.unscaled) }
func (c coefficientOf) Exponent() int32       { return c.exponent }

func TestAnnotations(t *testing.T) {
	t.Run("SER-79 those that do not hold are ignored", func(t *testing.T) {
		for typ, want := range map[string]string{
			logical("long", "date"): "INT64",
			`{"type":"fixed","name":"F","size":4,"logicalType":"uuid"}`:                  "BYTES",
			logical("bytes", "uuid"):                                                     "BYTES",
			logical("string", "decimal"):                                                 "STRING",
			logical("string", "made-up"):                                                 "STRING",
			`{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}`:           "BYTES",
			`{"type":"bytes","logicalType":"decimal"}`:                                   "BYTES",
			`{"type":"bytes","logicalType":"decimal","precision":"4"}`:                   "BYTES",
			`{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":5}`: "BYTES",
			`{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4}`: "NUMERIC(4,0)",
			`{"type":"fixed","name":"F","size":11,"logicalType":"duration"}`:             "BYTES",
			`{"type":"int","logicalType":7}`:                                             "INT64",
		} {
			must(t, spelled(typ, Options{}), want)
		}
	})
	t.Run("SER-80 those that no column keeps are refused", func(t *testing.T) {
		for _, typ := range []string{logical("long", "timestamp-nanos"), logical("long", "local-timestamp-nanos"),
			`{"type":"fixed","name":"F","size":12,"logicalType":"duration"}`, logical("bytes", "big-decimal"),
			`{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}`} {
			must(t, spelled(typ, Options{}), "C-LOGICAL f")
		}
	})
}

func TestModes(t *testing.T) {
	t.Run("SER-81 NULLABLE unless asked", func(t *testing.T) {
		for typ, required := range map[string]string{`"string"`: "STRING NOT NULL", `["null","string"]`: "STRING", `["string"]`: "STRING NOT NULL",
			`["string","null"]`: "STRING"} {
			must(t, spelled(typ, Options{}), "STRING")
			must(t, spelled(typ, dr), required)
		}
		both(t, `["string"]`, "x", rowtest.Text("x"))
		both(t, `["string","null"]`, "x", rowtest.Text("x"))
		both(t, `["string","null"]`, nil, rowtest.Null)
	})
	t.Run("SER-82 arrays, also those that may be null", func(t *testing.T) {
		for _, typ := range []string{`{"type":"array","items":"string"}`, `["null",{"type":"array","items":"string"}]`} {
			for _, o := range []Options{{}, dr} {
				must(t, spelled(typ, o), "ARRAY<STRING>")
			}
		}
		typ := `["null",{"type":"array","items":"string"}]`
		both(t, typ, nil, row.Value{})
		both(t, typ, []any{}, row.Value{})
		both(t, typ, []any{"a", "b"}, rowtest.List(rowtest.Text("a"), rowtest.Text("b")))
		becomes(t, typ, []string{"a"}, rowtest.List(rowtest.Text("a")))
		becomes(t, `{"type":"array","items":"long"}`, [2]int{1, 300}, rowtest.List(integer(1), integer(300)))
		both(t, `{"type":"array","items":["long"]}`, []any{int64(1)}, rowtest.List(integer(1)))
	})
	t.Run("SER-83 arrays that BigQuery lacks", func(t *testing.T) {
		for _, items := range []string{`["null","string"]`, `{"type":"array","items":"long"}`, `{"type":"map","values":"long"}`} {
			must(t, spelled(`{"type":"array","items":`+items+`}`, Options{}), "C-ARRAY f")
		}
	})
	t.Run("SER-84 unions", func(t *testing.T) {
		for _, typ := range []string{`["null","string","long"]`, `{"type":"array","items":["string","long"]}`, `["null"]`} {
			must(t, spelled(typ, Options{}), "C-UNION f")
		}
		must(t, spelled(`"null"`, Options{}), "C-TYPE f")
	})
	t.Run("SER-85 maps", func(t *testing.T) {
		const typ = `{"type":"map","values":"long"}`
		must(t, spelled(typ, Options{}), "ARRAY<STRUCT<key STRING, value INT64>>")
		must(t, spelled(typ, dr), "ARRAY<STRUCT<key STRING NOT NULL, value INT64 NOT NULL>>")
		must(t, spelled(`{"type":"map","values":["null","long"]}`, dr), "ARRAY<STRUCT<key STRING NOT NULL, value INT64>>")
		both(t, typ, map[string]any{"b": int64(2), "a": int64(1), "c": int64(3)}, rowtest.List(
			rowtest.List(rowtest.Text("a"), integer(1)), rowtest.List(rowtest.Text("b"), integer(2)), rowtest.List(rowtest.Text("c"), integer(3))))
		becomes(t, typ, map[label]int32{"a": 1}, rowtest.List(rowtest.List(rowtest.Text("a"), integer(1))))
		both(t, `{"type":"map","values":["null","long"]}`, map[string]any{"a": nil}, rowtest.List(rowtest.List(rowtest.Text("a"), rowtest.Null)))
		// The last of two equal keys is the one that readers keep.
		got, fault := fromBytes(t, typ, Options{}, []byte{4, 2, 'k', 2, 2, 'k', 4, 0})
		if want := rowtest.List(rowtest.List(rowtest.Text("k"), integer(2))); fault != "" || !cmp.Equal(got, want) {
			t.Errorf("a key that is there twice gives %v %s, want %v", got, fault, want)
		}
	})
	t.Run("SER-86 maps of lists and of maps", func(t *testing.T) {
		const lists = `{"type":"map","values":{"type":"array","items":"long"}}`
		must(t, spelled(lists, Options{}), "ARRAY<STRUCT<key STRING, value ARRAY<INT64>>>")
		both(t, lists, map[string]any{"b": []any{}, "a": []any{int64(1), int64(2)}}, rowtest.List(
			rowtest.List(rowtest.Text("a"), rowtest.List(integer(1), integer(2))), rowtest.List(rowtest.Text("b"), row.Value{})))
		const maps = `{"type":"map","values":{"type":"map","values":"long"}}`
		must(t, spelled(maps, Options{}), "ARRAY<STRUCT<key STRING, value ARRAY<STRUCT<key STRING, value INT64>>>>")
		inner := rowtest.List(rowtest.List(rowtest.Text("x"), integer(1)), rowtest.List(rowtest.Text("y"), integer(2)))
		both(t, maps, map[string]any{"b": map[string]any{"y": int64(2), "x": int64(1)}, "a": map[string]any{}}, rowtest.List(
			rowtest.List(rowtest.Text("a"), row.Value{}), rowtest.List(rowtest.Text("b"), inner)))
	})
}

func TestRejections(t *testing.T) {
	t.Run("SER-87 records within themselves", func(t *testing.T) {
		for _, typ := range []string{`["null","R"]`, `{"type":"array","items":"R"}`, `{"type":"map","values":"R"}`, `"R"`} {
			if got := spelled(typ, Options{}); !strings.HasPrefix(got, "C-RECURSIVE f") {
				t.Errorf("%s: %s, want C-RECURSIVE", typ, got)
			}
		}
		_, err := Schema(`{"type":"record","name":"R","fields":[
			{"name":"a","type":{"type":"record","name":"P","namespace":"x.y","fields":[{"name":"v","type":"int"}]}},
			{"name":"b","type":["null","x.y.P"]}]}`, Options{})
		must(t, kinds(err), "")
	})
	t.Run("SER-88 roots, empty records, names", func(t *testing.T) {
		for text, want := range map[string]string{
			`"string"`: "C-ROOT", `{`: "C-ROOT", `{"type":"array","items":"string"}`: "C-ROOT", "": "C-ROOT", "\xff": "C-ROOT",
			of(`"nowhere"`): "C-ROOT f",
			of(`{"type":"record","name":"E","fields":[]}`):                                                    "C-EMPTY f",
			`{"type":"record","name":"R","fields":[]}`:                                                        "C-EMPTY",
			of(`{"type":"record","name":"E","fields":[{"name":"a","type":"int"},{"name":"A","type":"int"}]}`): "C-CASE f.A",
			`{"type":"record","name":"R","fields":[{"name":"id","type":"int"},{"name":"ID","type":"int"}]}`:   "C-CASE ID",
			`{"type":"record","name":"R","fields":[{"name":"_PARTITIONTIME","type":"int"}]}`:                  "C-NAME _PARTITIONTIME",
		} {
			_, err := Schema(text, Options{})
			must(t, kinds(err), want)
		}
	})
	t.Run("more than 15 STRUCTs", func(t *testing.T) {
		nested := func(n int) string {
			typ := `"int"`
			for i := range n {
				typ = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"f","type":%s}]}`, i, typ)
			}
			return typ
		}
		_, err := Schema(nested(16), Options{})
		must(t, kinds(err), "")
		_, err = Schema(nested(17), Options{})
		must(t, kinds(err), "C-DEPTH "+strings.Repeat("f.", 15)+"f")
	})
	t.Run("records that name each other twice at every level", func(t *testing.T) {
		typ := `"int"`
		for i := range 40 {
			typ = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s},{"name":"b","type":%q}]}`, i, typ, fmt.Sprintf("R%d", i-1))
			if i == 0 {
				typ = `{"type":"record","name":"R0","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}`
			}
		}
		_, err := Schema(typ, Options{})
		if !strings.Contains(kinds(err), "C-SCHEMA") {
			t.Errorf("%v, want C-SCHEMA", err)
		}
	})
}

func TestMarks(t *testing.T) {
	json := func(paths ...string) Options { return Options{JSONPaths: paths} }
	t.Run("SER-89 where marks go", func(t *testing.T) {
		must(t, spelled(`"string"`, json("f")), "JSON")
		must(t, spelled(`["null","string"]`, json("f")), "JSON")
		must(t, spelled(`{"type":"array","items":"string"}`, json("f")), "ARRAY<JSON>")
		must(t, spelled(`{"type":"map","values":"string"}`, json("f.value")), "ARRAY<STRUCT<key STRING, value JSON>>")
		must(t, spelled(`"string"`, Options{GeographyPaths: []string{"f"}}), "GEOGRAPHY")
		must(t, spelled(`"long"`, json("f")), "C-MARK f")
		must(t, spelled(`{"type":"enum","name":"E","symbols":["A"]}`, json("f")), "C-MARK f")
		must(t, spelled(`{"type":"map","values":"string"}`, json("f")), "C-MARK f")
		must(t, spelled(`{"type":"map","values":"string"}`, json("f.key")), "C-MARK f.key")
		must(t, spelled(`{"type":"record","name":"S","fields":[{"name":"s","type":"string"}]}`, json("f")), "C-MARK f")
		must(t, spelled(`{"type":"record","name":"S","fields":[{"name":"s","type":"string"}]}`, json("f.s")), "STRUCT<s JSON>")
		must(t, spelled(`"string"`, json("nope")), "C-PATH nope")
		must(t, spelled(`"string"`, Options{JSONPaths: []string{"f"}, GeographyPaths: []string{"f"}}), "C-BOTH f")
		o := json("f")
		o.DeriveRequired = true
		must(t, spelled(`"string"`, o), "JSON")
	})
	t.Run("SER-89 marked text is written as it is", func(t *testing.T) {
		for typ, v := range map[string]any{`"string"`: `{"a":[1]}`, `["null","string"]`: "7"} {
			got, fault := fromGo(t, typ, json("f"), v)
			if fault != "" || string(got.Bytes) != v {
				t.Errorf("%s: %q %s, want %s", typ, got.Bytes, fault, v)
			}
		}
		got, fault := fromGo(t, `{"type":"array","items":"string"}`, json("f"), []any{"1", "{}"})
		if want := rowtest.List(rowtest.Text("1"), rowtest.Text("{}")); fault != "" || !cmp.Equal(got, want) {
			t.Errorf("%v %s, want %v", got, fault, want)
		}
		got, fault = fromGo(t, `{"type":"map","values":"string"}`, json("f.value"), map[string]any{"k": "[2]"})
		if want := rowtest.List(rowtest.List(rowtest.Text("k"), rowtest.Text("[2]"))); fault != "" || !cmp.Equal(got, want) {
			t.Errorf("%v %s, want %v", got, fault, want)
		}
		got, fault = fromGo(t, `"string"`, Options{GeographyPaths: []string{"f"}}, "POINT(1 2)")
		if want := rowtest.Text("POINT(1 2)"); fault != "" || !cmp.Equal(got, want) {
			t.Errorf("%v %s, want %v", got, fault, want)
		}
	})
	t.Run("SER-90 empty text is written", func(t *testing.T) {
		got, fault := fromGo(t, `"string"`, json("f"), "")
		if want := rowtest.Text(""); fault != "" || got.Null || !cmp.Equal(string(got.Bytes), string(want.Bytes)) {
			t.Errorf("%v %s, want %v", got, fault, want)
		}
	})
	t.Run("annotations of read sessions", func(t *testing.T) {
		o := Options{RecognizeSQLTypes: true}
		for typ, want := range map[string]string{`{"type":"string","sqlType":"JSON"}`: "JSON", `{"type":"string","sqlType":"GEOGRAPHY"}`: "GEOGRAPHY",
			logical("string", "datetime"): "DATETIME"} {
			must(t, spelled(typ, o), want)
			must(t, spelled(typ, Options{}), "STRING")
		}
		must(t, spelled(decimalType(38, 9), o), "NUMERIC")
		must(t, spelled(decimalType(77, 38), o), "BIGNUMERIC")
		got, fault := fromGo(t, logical("string", "datetime"), o, "2026-07-26T01:02:03.456789")
		if fault != "" || got.Int != 1785027723456789 {
			t.Errorf("%v %s", got, fault)
		}
		got, fault = fromBytes(t, logical("string", "datetime"), o, append([]byte{38}, "2026-07-26 01:02:03"...))
		if fault != "" || got.Int != 1785027723000000 {
			t.Errorf("%v %s", got, fault)
		}
		_, fault = fromBytes(t, logical("string", "datetime"), o, append([]byte{38}, "2026-02-30 01:02:03"...))
		must(t, fault, "R-RANGE f")
	})
}

func TestRowFailures(t *testing.T) {
	t.Run("SER-91 no value", func(t *testing.T) {
		_, fault := fromGo(t, `"string"`, dr, nil)
		must(t, fault, "R-REQUIRED f")
		becomes(t, `"string"`, nil, rowtest.Null)
		s, err := NewRecords(of(`"string"`), func(m map[string]any) map[string]any { return m }, dr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.AppendRow(nil, table.Destination{}, map[string]any{})
		must(t, kinds(err), "R-REQUIRED f")
		_, err = s.AppendRow(nil, table.Destination{}, nil)
		must(t, kinds(err), "R-TYPE")
		_, err = s.AppendRow(nil, table.Destination{}, map[string]any{"f": "x", "z": 1, "g": 2})
		must(t, kinds(err), "R-UNKNOWN g")
	})
	t.Run("SER-92 null within lists and keys", func(t *testing.T) {
		refusedGo(t, `{"type":"array","items":"long"}`, []any{1, nil}, "R-NULLELEM f[1]")
		refusedGo(t, `{"type":"map","values":"long"}`, map[any]any{nil: 1}, "R-NULLKEY f.key")
		refusedGo(t, `{"type":"map","values":"long"}`, map[*string]any{nil: 1}, "R-NULLKEY f.key")
	})
	t.Run("SER-93 another type", func(t *testing.T) {
		for _, typ := range []string{`"long"`, `{"type":"array","items":"long"}`, `{"type":"map","values":"long"}`,
			`{"type":"record","name":"S","fields":[{"name":"a","type":"int"}]}`, `"boolean"`, `"double"`, decimalType(4, 2),
			logical("int", "date"), logical("long", "time-micros"), logical("long", "timestamp-micros"), logical("long", "local-timestamp-micros")} {
			refusedGo(t, typ, "x", "R-TYPE f")
		}
		refusedGo(t, `"string"`, 7, "R-TYPE f")
		refusedGo(t, `"bytes"`, 7, "R-TYPE f")
		refusedGo(t, `"long"`, time.Second, "R-TYPE f")
		refusedGo(t, `"long"`, 1.5, "R-TYPE f")
		refusedGo(t, `"long"`, uint64(1<<63), "R-RANGE f")
		refusedGo(t, `"int"`, int64(1<<31), "R-RANGE f")
		refusedGo(t, `{"type":"enum","name":"E","symbols":["AB"]}`, "B", "R-TYPE f")
		refusedGo(t, `{"type":"fixed","name":"F","size":2}`, []byte{1}, "R-TYPE f")
		refusedGo(t, `{"type":"map","values":"long"}`, map[int]any{1: 1}, "R-TYPE f.key")
		refused(t, `"string"`, "\xff", "R-TEXT f")
		refused(t, `{"type":"map","values":"long"}`, map[string]any{"\xff": int64(1)}, "R-TEXT f.key")
	})
	t.Run("SER-94 finer than a microsecond", func(t *testing.T) {
		fine := time.Date(2026, 7, 26, 1, 2, 3, 456789001, time.UTC)
		refusedGo(t, logical("long", "time-micros"), civil.TimeOf(fine), "R-SCALE f")
		refusedGo(t, logical("long", "time-micros"), fine, "R-SCALE f")
		refusedGo(t, logical("long", "time-micros"), time.Nanosecond, "R-SCALE f")
		refusedGo(t, logical("long", "local-timestamp-micros"), fine, "R-SCALE f")
		refusedGo(t, logical("long", "local-timestamp-micros"), civil.DateTimeOf(fine), "R-SCALE f")
		becomes(t, logical("long", "timestamp-micros"), fine, integer(1785027723456789))
	})
	t.Run("SER-95 dates out of the calendar", func(t *testing.T) {
		refused(t, logical("int", "date"), int32(2932897), "R-RANGE f")
		both(t, logical("int", "date"), int32(-719162), integer(-719162))
		refused(t, logical("long", "local-timestamp-micros"), int64(row.MinMicros-1), "R-RANGE f")
	})
}
