package parquetfile_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestParquetHoldsWhatTheRowHolds has a second library read random rows of random schemas (SER-154 among others).
func TestParquetHoldsWhatTheRowHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rowtest.Schemas(stageable, 4).Draw(r, "schema")
		var rows [][]row.Value
		for range rapid.IntRange(0, 4).Draw(r, "rows") {
			rows = append(rows, rowtest.Rows(s).Draw(r, "row"))
		}
		o := parquetfile.Options{RowGroupBytes: rapid.SampledFrom([]int{0, 1}).Draw(r, "group"), Uncompressed: rapid.Bool().Draw(r, "plain")}
		got := read(t, write(t, s, o, rows...), mustPlan(t, s))
		if len(got) != len(rows) {
			r.Fatalf("%d rows, want %d", len(got), len(rows))
		}
		for i := range rows {
			if diff := rowtest.Diff(s, rows[i], got[i]); diff != "" {
				r.Fatalf("row %d: %s", i, diff)
			}
		}
	})
}

var plain = &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "text", Type: table.String},
	{Name: "n", Type: table.Numeric}, {Name: "list", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "t", Type: table.String}}}}}

func plainRow(id int64, text string) []row.Value {
	return []row.Value{{Int: id}, rowtest.Text(text), rowtest.Decimal(table.Numeric, "-1.5"), rowtest.List(rowtest.List(rowtest.Text(text)))}
}

// TestBadRowsLeaveNothing: a row that fails half way is not in the file.
func TestBadRowsLeaveNothing(t *testing.T) {
	var out bytes.Buffer
	f, err := parquetfile.New(&out, mustPlan(t, plain), parquetfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if err := f.Write(rowtest.Encode(plain.Fields, plainRow(i, "good"))); err != nil {
			t.Fatal(err)
		}
		before := f.Buffered()
		bad := rowtest.Encode(plain.Fields, plainRow(i, "good"))
		bad = append(bad, rowtest.Encode(plain.Fields, []row.Value{{Int: 9}, rowtest.Null, rowtest.Null, rowtest.List(rowtest.List(rowtest.Text("\xff")))})...)
		var e *row.Error
		if err := f.Write(bad); !errors.As(err, &e) || e.Kind != row.KindText || e.Path != "list[1].t" {
			t.Errorf("a bad row: %v, want %s at list[1].t", err, row.KindText)
		}
		if err := f.Write(nil); !errors.As(err, &e) || e.Kind != row.KindRequired || e.Path != "id" {
			t.Errorf("an empty row: %v, want %s at id", err, row.KindRequired)
		}
		if f.Buffered() != before {
			t.Errorf("%d bytes are buffered after bad rows, %d before", f.Buffered(), before)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, out.Bytes(), mustPlan(t, plain))
	if len(got) != 3 {
		t.Fatalf("%d rows, want 3", len(got))
	}
	for i, r := range got {
		if diff := rowtest.Diff(plain, plainRow(int64(i), "good"), r); diff != "" {
			t.Errorf("row %d: %s", i, diff)
		}
	}
}

// TestRowGroupsAreBounded: a row group is written once its values have so many bytes, which then count as the file's.
func TestRowGroupsAreBounded(t *testing.T) {
	const group = 1 << 20
	var out bytes.Buffer
	f, err := parquetfile.New(&out, mustPlan(t, plain), parquetfile.Options{RowGroupBytes: group})
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range int64(5000) {
		if err := f.Write(rowtest.Encode(plain.Fields, plainRow(i, strings.Repeat(fmt.Sprint(i), 100)))); err != nil {
			t.Fatal(err)
		}
		most = max(most, f.Buffered())
	}
	if most > group+256<<10 {
		t.Errorf("%d bytes lay in memory at once, with row groups of %d", most, group)
	}
	if f.Size() == 0 {
		t.Error("nothing is written before Close")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := parquet.OpenFile(open(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.RowGroups()); n < 3 || r.NumRows() != 5000 {
		t.Errorf("%d row groups with %d rows, want some of 5000", n, r.NumRows())
	}
	for _, g := range r.Metadata().RowGroups {
		if codec := g.Columns[0].MetaData.Codec.String(); codec != "ZSTD" {
			t.Errorf("packed with %s", codec)
		}
	}
}

// TestNoBoundsOfDecimals: bounds that were found by comparing bytes as text would make readers skip rows.
func TestNoBoundsOfDecimals(t *testing.T) {
	data := write(t, plain, parquetfile.Options{}, plainRow(1, "a"), plainRow(2, "b"))
	r, err := parquet.OpenFile(open(data))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Metadata().RowGroups[0].Columns {
		s := c.MetaData.Statistics
		if i == 2 && (len(s.MinValue) > 0 || len(s.MaxValue) > 0 || len(s.Min) > 0 || len(s.Max) > 0) {
			t.Errorf("the decimal column has the bounds %x %x", s.MinValue, s.MaxValue)
		}
	}
}

// TestLongValuesAreWrittenOnce: bounds of pages and row groups would hold them again, several times.
func TestLongValuesAreWrittenOnce(t *testing.T) {
	s := &table.Schema{Fields: []table.Field{{Name: "y", Type: table.Bytes}, {Name: "s", Type: table.String}}}
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	data := write(t, s, parquetfile.Options{}, []row.Value{{Bytes: noise}, rowtest.Text(hex.EncodeToString(noise[:1<<19]))})
	if len(data) > 17<<17 {
		t.Errorf("%d bytes are written of 2 MiB, half of which can be packed", len(data))
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	f, err := parquetfile.New(&full{100_000}, mustPlan(t, plain), parquetfile.Options{RowGroupBytes: 1, Uncompressed: true})
	if err != nil {
		t.Fatal(err)
	}
	data := rowtest.Encode(plain.Fields, plainRow(1, strings.Repeat("x", 200_000)))
	for err == nil {
		err = f.Write(data)
	}
	var e *row.Error
	if !errors.Is(err, errFull) || errors.As(err, &e) {
		t.Errorf("without room: %v", err)
	}
	if err := f.Write(data); !errors.Is(err, errFull) {
		t.Errorf("the next row: %v", err)
	}
	if err := f.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
	if _, err := parquetfile.New(&full{}, mustPlan(t, plain), parquetfile.Options{RowGroupBytes: -1}); err == nil || !strings.Contains(err.Error(), "RowGroupBytes is -1") {
		t.Errorf("a negative row group: %v", err)
	}
}
