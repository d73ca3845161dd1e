package structrow

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// order has nothing that a struct tag could tell.
type order struct {
	id      int64
	note    string
	total   *big.Rat
	lines   []line
	placed  time.Time
	numbers []int64
	blob    []byte
	at      civil.DateTime
}

type line struct {
	sku   string
	price float64
}

var lineColumns = Columns[line]{
	{Name: "sku", Mode: table.Required, Value: String(func(l *line) (string, bool) { return l.sku, l.sku != "" })},
	{Name: "price", Value: Float64(func(l *line) (float64, bool) { return l.price, l.price >= 0 })},
}

func same[T any](v *T) *T { return v }

var orderColumns = Columns[order]{
	{Name: "id", Mode: table.Required, Value: Int64(func(o *order) (int64, bool) { return o.id, o.id != 0 })},
	{Name: "note", Value: String(func(o *order) (string, bool) { return o.note, o.note != "" })},
	{Name: "total", Value: Numeric(func(o *order) *big.Rat { return o.total })},
	{Name: "exact", Value: BigNumeric(func(o *order) *big.Rat { return o.total })},
	{Name: "lines", Mode: table.Repeated, Value: List(func(o *order) []line { return o.lines }, Struct(lineColumns, same[line]))},
	{Name: "first", Value: Struct(lineColumns, func(o *order) *line {
		if len(o.lines) == 0 {
			return nil
		}
		return &o.lines[0]
	})},
	{Name: "placed", Value: Timestamp(func(o *order) (time.Time, bool) { return o.placed, !o.placed.IsZero() })},
	{Name: "day", Value: Date(func(o *order) (civil.Date, bool) { return o.at.Date, o.at.Date.IsValid() })},
	{Name: "clock", Value: Time(func(o *order) (civil.Time, bool) { return o.at.Time, o.at.Date.IsValid() })},
	{Name: "at", Value: DateTime(func(o *order) (civil.DateTime, bool) { return o.at, o.at.Date.IsValid() })},
	{Name: "numbers", Mode: table.Repeated, Value: List(func(o *order) []int64 { return o.numbers }, Int64(func(n *int64) (int64, bool) { return *n, *n != 0 }))},
	{Name: "blob", Value: Bytes(func(o *order) ([]byte, bool) { return o.blob, o.blob != nil })},
	{Name: "doc", Value: JSON(func(o *order) ([]byte, bool) { return o.blob, o.blob != nil })},
	{Name: "big", Value: Bool(func(o *order) (bool, bool) { return o.id > 100, o.id > 0 })},
	{Name: "where", Value: Geography(func(o *order) (string, bool) { return o.note, o.note != "" })},
}

func fullOrder() order {
	return order{
		id: 101, note: "POINT(1 2)", total: big.NewRat(5, 4), lines: []line{{"a", 1.5}, {"b", -1}}, placed: time.UnixMicro(-1), numbers: []int64{1, 300}, blob: []byte("7"),
		at: civil.DateTime{Date: civil.Date{Year: 1970, Month: 1, Day: 2}, Time: civil.Time{Second: 1}},
	}
}

func TestColumns(t *testing.T) {
	a := rowtest.List(text("a"), rowtest.Float(1.5))
	bad := func(name string, change func(*order), kind row.Kind, path string) rowtest.Case[order] {
		return rowtest.Case[order]{Name: name, Err: &row.Error{Kind: kind, Path: path}, Record: func() order {
			o := fullOrder()
			change(&o)
			return o
		}}
	}
	rowtest.Test(t, rowtest.Format[order]{
		New: func() (row.Serializer[order], error) { return orderColumns.Serializer() },
		Cases: []rowtest.Case[order]{
			{Name: "full", Record: fullOrder, Values: []row.Value{
				whole(101), text("POINT(1 2)"), rowtest.Decimal(table.Numeric, "1.25"), rowtest.Decimal(table.BigNumeric, "1.25"), rowtest.List(a, rowtest.List(text("b"), rowtest.Null)), a,
				whole(-1), whole(1), whole(1_000_000), whole(86_401_000_000), rowtest.List(whole(1), whole(300)), text("7"), text("7"), whole(1), text("POINT(1 2)"),
			}},
			{Name: "little", Record: func() order { return order{id: -1} }, Values: []row.Value{
				whole(-1), rowtest.Null, rowtest.Null, rowtest.Null, {}, rowtest.Null, rowtest.Null, rowtest.Null, rowtest.Null, rowtest.Null, {}, rowtest.Null, rowtest.Null, rowtest.Null, rowtest.Null,
			}},
			bad("required", func(o *order) { o.id = 0 }, row.KindRequired, "id"),
			bad("required within", func(o *order) { o.lines[1].sku = "" }, row.KindRequired, "lines[1].sku"),
			bad("text", func(o *order) { o.note = "\xff" }, row.KindText, "note"),
			bad("text within", func(o *order) { o.lines[1].sku = "\xff" }, row.KindText, "lines[1].sku"),
			bad("NULL element", func(o *order) { o.numbers[1] = 0 }, row.KindNullElem, "numbers[1]"),
			bad("JSON", func(o *order) { o.blob = []byte("{") }, row.KindJSON, "doc"),
			bad("fraction", func(o *order) { o.total = big.NewRat(1, 3) }, row.KindScale, "total"),
			bad("year", func(o *order) { o.placed = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, row.KindRange, "placed"),
			bad("nanosecond", func(o *order) { o.at.Time.Nanosecond = 1 }, row.KindScale, "clock"),
		},
		Scribble: func(o order) { clear(o.lines); clear(o.numbers); clear(o.blob) },
	})
}

func TestColumnFaults(t *testing.T) {
	number := Int64(func(*int64) (int64, bool) { return 0, true })
	list := List(func(*int64) []int64 { return nil }, number)
	for _, c := range []struct {
		name    string
		columns Columns[int64]
		kind    row.Kind
		path    string
	}{
		{"none", nil, row.KindEmpty, ""},
		{"same name", Columns[int64]{{Name: "a", Value: number}, {Name: "A", Value: number}}, row.KindCase, "A"},
		{"list that is not REPEATED", Columns[int64]{{Name: "a", Value: list}}, row.KindSchema, "a"},
		{"REPEATED that is no list", Columns[int64]{{Name: "a", Mode: table.Repeated, Value: number}}, row.KindSchema, "a"},
		{"the same within", Columns[int64]{{Name: "s", Value: Struct(Columns[int64]{{Name: "a", Value: list}}, same[int64])}}, row.KindSchema, "s.a"},
		{"list of lists", Columns[int64]{{Name: "a", Mode: table.Repeated, Value: List(func(*int64) []int64 { return nil }, list)}}, row.KindArray, "a"},
		{"no value", Columns[int64]{{Name: "a"}}, row.KindColType, "a"},
		{"empty STRUCT", Columns[int64]{{Name: "s", Value: Struct(Columns[int64]{}, same[int64])}}, row.KindEmpty, "s"},
	} {
		_, err := c.columns.Serializer()
		var e *row.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Path != c.path {
			t.Errorf("%s: %v, want %s at %q", c.name, err, c.kind, c.path)
		}
	}
}

func BenchmarkColumns(b *testing.B) {
	s, err := orderColumns[:2].Serializer()
	if err != nil {
		b.Fatal(err)
	}
	rec := fullOrder()
	var buf []byte
	for b.Loop() {
		if buf, err = s.AppendRow(buf[:0], table.Destination{}, rec); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
