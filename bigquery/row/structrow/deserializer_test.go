package structrow

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func schemaOf[T any](tb testing.TB) *table.Schema {
	tb.Helper()
	s, err := New[T](Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s.schema
}

func readOne[T any](tb testing.TB, r *row.Row) (out T, err error) {
	tb.Helper()
	d, err := NewDeserializer[T]()
	if err != nil {
		tb.Fatal(err)
	}
	emitted := 0
	err = d.Deserialize(r, func(rec T) error { out = rec; emitted++; return nil })
	if err == nil && emitted != 1 {
		tb.Fatalf("%d records, want one", emitted)
	}
	return out, err
}

// asRead is full as it comes back: instants in UTC to the microsecond, and no nil within lists.
func asRead() all {
	want := full()
	at := time.UnixMicro(atMicros).UTC()
	want.T, *want.PT, want.LT, want.NT.Timestamp = at, at, []time.Time{time.Unix(0, 0).UTC(), at}, at
	want.LB[1] = []byte{}
	want.Hidden, want.secret = "", ""
	return want
}

var sameRats = cmp.Comparer(func(a, b *big.Rat) bool { return (a == nil) == (b == nil) && (a == nil || a.Cmp(b) == 0) })

func TestDeserialize(t *testing.T) {
	schema := schemaOf[all](t)
	opts := cmp.Options{sameRats, cmpopts.IgnoreUnexported(all{}), cmpopts.EquateEmpty()}
	got, err := readOne[all](t, &row.Row{Schema: schema, Values: fullValues()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asRead(), got, opts); diff != "" {
		t.Errorf("full (-want +got):\n%s", diff)
	}
	pointer, err := readOne[*all](t, &row.Row{Schema: schema, Values: fullValues()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asRead(), *pointer, opts); diff != "" {
		t.Errorf("by pointer (-want +got):\n%s", diff)
	}
	got, err = readOne[all](t, &row.Row{Schema: schema, Values: emptyValues()})
	if err != nil {
		t.Fatal(err)
	}
	want := empty()
	want.T = time.Time{}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Errorf("empty (-want +got):\n%s", diff)
	}
	if got.LentByPointer != nil {
		t.Error("an embedded struct of nothing but NULL was made")
	}
}

func TestRecordsOwnTheirMemory(t *testing.T) {
	values := fullValues()
	got, err := readOne[all](t, &row.Row{Schema: schemaOf[all](t), Values: values})
	if err != nil {
		t.Fatal(err)
	}
	var scribble func([]row.Value)
	scribble = func(list []row.Value) {
		for i := range list {
			clear(list[i].Bytes)
			scribble(list[i].List)
		}
		clear(list)
	}
	scribble(values)
	if diff := cmp.Diff(asRead(), got, sameRats, cmpopts.IgnoreUnexported(all{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the record changes with the row (-want +got):\n%s", diff)
	}
}

func TestColumnsMatchByName(t *testing.T) {
	schema := &table.Schema{Fields: []table.Field{
		{Name: "more", Type: table.Int64}, {Name: "names", Type: table.String, Mode: table.Repeated}, {Name: "x", Type: table.Int64},
	}}
	got, err := readOne[inner](t, &row.Row{Schema: schema, Values: []row.Value{whole(1), rowtest.List(text("a")), whole(5)}})
	if diff := cmp.Diff(inner{X: 5, Names: []string{"a"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	d, err := NewDeserializer[inner]()
	if err != nil {
		t.Fatal(err)
	}
	// The plan follows the schema when that changes.
	for _, s := range []*table.Schema{schema, {Fields: schema.Fields[2:]}, schema} {
		values := []row.Value{whole(1), {}, whole(5)}[3-len(s.Fields):]
		if err := d.Deserialize(&row.Row{Schema: s, Values: values}, func(r inner) error {
			if r.X != 5 {
				t.Errorf("X is %d, want 5", r.X)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestReadingOtherTypes(t *testing.T) {
	type rec struct {
		Geo    string
		Doc    string
		Big    *big.Rat
		During struct{ Start, End *time.Time }
	}
	schema := &table.Schema{Fields: []table.Field{
		{Name: "geo", Type: table.Geography}, {Name: "doc", Type: table.JSON}, {Name: "big", Type: table.BigNumeric}, {Name: "during", Type: table.Range, Range: table.Timestamp},
	}}
	got, err := readOne[rec](t, &row.Row{Schema: schema, Values: []row.Value{text("POINT(1 2)"), text("[]"), rowtest.Decimal(table.BigNumeric, "1e-38"), rowtest.List(whole(0), rowtest.Null)}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Geo != "POINT(1 2)" || got.Doc != "[]" || got.Big.Denom().String() != "1"+strings.Repeat("0", 38) ||
		!got.During.Start.Equal(time.Unix(0, 0)) || got.During.End != nil {
		t.Errorf("%+v", got)
	}
}

func TestDeserializeRefuses(t *testing.T) {
	one := func(f table.Field, v row.Value) *row.Row {
		f.Name = "A"
		return &row.Row{Schema: &table.Schema{Fields: []table.Field{f}}, Values: []row.Value{v}}
	}
	int64s := table.Field{Type: table.Int64}
	list := table.Field{Type: table.Int64, Mode: table.Repeated}
	err1 := func(_ any, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		kind row.Kind
		path string
	}{
		{"NULL for a number", err1(readOne[struct{ A int64 }](t, one(int64s, rowtest.Null))), row.KindNull, "A"},
		{"NULL for a string", err1(readOne[struct{ A string }](t, one(table.Field{Type: table.String}, rowtest.Null))), row.KindNull, "A"},
		{"NULL for a struct", err1(readOne[struct{ A inner }](t, one(table.Field{Type: table.Struct, Fields: schemaOf[inner](t).Fields}, rowtest.Null))), row.KindNull, "A"},
		{"NULL in a list", err1(readOne[struct{ A []int64 }](t, one(list, rowtest.List(whole(1), rowtest.Null)))), row.KindNull, "A[1]"},
		{"SER-164 int8", err1(readOne[struct{ A int8 }](t, one(int64s, whole(128)))), row.KindOverflow, "A"},
		{"SER-164 int32", err1(readOne[struct{ A int32 }](t, one(int64s, whole(3000000000)))), row.KindOverflow, "A"},
		{"int16", err1(readOne[struct{ A int16 }](t, one(int64s, whole(math.MinInt16-1)))), row.KindOverflow, "A"},
		{"uint8", err1(readOne[struct{ A []uint16 }](t, one(list, rowtest.List(whole(1), whole(-1))))), row.KindOverflow, "A[1]"},
		{"uint64", err1(readOne[struct{ A uint64 }](t, one(int64s, whole(-1)))), row.KindOverflow, "A"},
		{"float32", err1(readOne[struct{ A float32 }](t, one(table.Field{Type: table.Float64}, rowtest.Float(1e39)))), row.KindOverflow, "A"},
		{"float32 below", err1(readOne[struct{ A []float32 }](t, one(table.Field{Type: table.Float64, Mode: table.Repeated}, rowtest.List(rowtest.Float(math.Inf(-1)), rowtest.Float(-math.MaxFloat64))))), row.KindOverflow, "A[1]"},
		{"array", err1(readOne[struct{ A [1]int64 }](t, one(list, rowtest.List(whole(1), whole(2))))), row.KindOverflow, "A"},
		{"type", err1(readOne[struct{ A string }](t, one(int64s, whole(1)))), row.KindDecode, "A"},
		{"mode", err1(readOne[struct{ A int64 }](t, one(list, rowtest.List()))), row.KindDecode, "A"},
		{"mode of a slice", err1(readOne[struct{ A []int64 }](t, one(int64s, whole(1)))), row.KindDecode, "A"},
		{"type within", err1(readOne[struct{ A inner }](t, one(table.Field{Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bool}}}, rowtest.Null))), row.KindDecode, "A.x"},
		{"date", err1(readOne[struct{ A NullDate }](t, one(table.Field{Type: table.Date}, whole(row.MaxDays+1)))), row.KindDecode, "A"},
		{"timestamp", err1(readOne[struct{ A time.Time }](t, one(table.Field{Type: table.Timestamp}, whole(row.MaxMicros+1)))), row.KindDecode, "A"},
		{"decimal", err1(readOne[struct{ A *big.Rat }](t, one(table.Field{Type: table.Numeric}, row.Value{Bytes: []byte{1}, Int: 99}))), row.KindDecode, "A"},
		{"long decimal", err1(readOne[struct{ A *big.Rat }](t, one(table.Field{Type: table.Numeric}, row.Value{Bytes: append([]byte{1}, make([]byte, 40)...), Int: 9}))), row.KindDecode, "A"},
		{"values missing", err1(readOne[struct{ A int64 }](t, &row.Row{Schema: &table.Schema{Fields: []table.Field{{Name: "A", Type: table.Int64}}}})), row.KindDecode, ""},
	} {
		var e *row.Error
		if !errors.As(c.err, &e) || e.Kind != c.kind || e.Path != c.path {
			t.Errorf("%s: %v, want %s at %q", c.name, c.err, c.kind, c.path)
		}
	}
	d, err := NewDeserializer[inner]()
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := d.Deserialize(&row.Row{Schema: &table.Schema{}}, func(inner) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want the error of emit", err)
	}
}

func TestNullOverwrites(t *testing.T) {
	type rec struct {
		B []byte
		J json.RawMessage
		P *int64
		N NullInt64
		R *big.Rat
	}
	values := make([]row.Value, 5)
	for i := range values {
		values[i].Null = true
	}
	got, err := readOne[rec](t, &row.Row{Schema: schemaOf[rec](t), Values: values})
	if err != nil || got.B != nil || got.J != nil || got.P != nil || got.N.Valid || got.R != nil {
		t.Errorf("%+v, %v, want nothing", got, err)
	}
}

func BenchmarkDeserialize(b *testing.B) {
	s, err := New[benchRow](Options{})
	if err != nil {
		b.Fatal(err)
	}
	data, err := s.AppendRow(nil, table.Destination{}, benchRecord())
	if err != nil {
		b.Fatal(err)
	}
	decoder, err := row.NewDecoder(s.schema)
	if err != nil {
		b.Fatal(err)
	}
	r, err := decoder.Decode(data)
	if err != nil {
		b.Fatal(err)
	}
	d, err := NewDeserializer[benchRow]()
	if err != nil {
		b.Fatal(err)
	}
	emit := func(benchRow) error { return nil }
	for b.Loop() {
		if err := d.Deserialize(r, emit); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
