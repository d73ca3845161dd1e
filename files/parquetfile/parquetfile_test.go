package parquetfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/files/parquetfile"
	"github.com/millrace-dev/millrace/stream"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
}, nil)

// written is a Parquet file of n rows, in groups.
func written(t testing.TB, n, group int) []byte {
	t.Helper()
	var docs []string
	for i := range n {
		docs = append(docs, fmt.Sprintf(`{"id": %d, "tags": ["a", "b%d"], "at": %d}`, i, i, i))
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(docs, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(int64(group))), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func source(t testing.TB, data ...[]byte) *files.Source {
	t.Helper()
	folder := t.TempDir()
	for i, d := range data {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.parquet", i)), d, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := files.NewSource([]string{filepath.Join(folder, "*")}, files.Options{Format: files.Parquet, Container: parquetfile.Open, FetchRecords: 300})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// rows reads a split from a position: the rows as the serializer makes them, and where reading goes on behind each.
func rows(t testing.TB, src *files.Source, s stream.Split) (all []string, nexts []int64) {
	t.Helper()
	rowsOf, err := arrowrow.New(schema, arrowrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.NewReader(t.Context(), stream.ReaderContext{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[files.Record]
	for {
		err := r.Fetch(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			return all, nexts
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			recs, at, next := b.At(i)
			out, err := rowsOf.AppendRow(nil, table.Destination{}, arrowrow.Row{Batch: recs[0].Value.Batch.(*arrowrow.Batch), Index: recs[0].Value.Index})
			if err != nil || at != int64(s.Position)+int64(len(all)) {
				t.Fatalf("row %d: %v", at, err)
			}
			all, nexts = append(all, string(out)), append(nexts, next)
		}
	}
}

func onlySplit(t testing.TB, src *files.Source) stream.Split {
	t.Helper()
	e, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Next(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(0); !errors.Is(err, io.EOF) {
		t.Fatalf("%v, want one split", err)
	}
	return s
}

// TestGoesOnAtAnyRow: rows have their numbers for positions, across row groups.
func TestGoesOnAtAnyRow(t *testing.T) {
	const n = 1000
	src := source(t, written(t, n, 170))
	s := onlySplit(t, src)
	all, nexts := rows(t, src, s)
	if len(all) != n || nexts[n-1] != n {
		t.Fatalf("%d rows", len(all))
	}
	for _, from := range []int64{1, 169, 170, 171, 340, 999, 1000} {
		s.Position = from
		got, _ := rows(t, src, s)
		if strings.Join(got, "|") != strings.Join(all[from:], "|") {
			t.Errorf("from row %d: %d rows, want %d", from, len(got), n-from)
		}
	}
	s.Position = n + 1
	r, err := src.NewReader(t.Context(), stream.ReaderContext{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(t.Context(), s); err == nil {
		t.Error("a row behind the end: want an error")
	}
}

func TestPlaces(t *testing.T) {
	src := source(t, written(t, 3, 2))
	var lines []string
	for rec, err := range src.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		l := rec.At.Location()
		lines = append(lines, fmt.Sprintf("%s:%d", filepath.Base(l.Name), l.Line))
	}
	if got := strings.Join(lines, " "); got != "0.parquet:1 0.parquet:2 0.parquet:3" {
		t.Error(got)
	}
}

func TestFilesWithoutRows(t *testing.T) {
	src := source(t, written(t, 0, 1), written(t, 1, 1))
	n := 0
	for _, err := range src.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, written(t, 1, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := parquetfile.Schema(path)
	if err != nil || got.NumFields() != 3 || got.Field(0).Name != "id" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "PAR1", "PAR1PAR1", "no parquet file at all", "PAR1\xff\xff\xff\x7fPAR1"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parquetfile.Schema(path); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
	if _, err := parquetfile.Schema(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file: want an error")
	}
}

func TestRefusals(t *testing.T) {
	src, err := files.NewSource([]string{files.Stdin}, files.Options{Format: files.Parquet, Container: parquetfile.Open})
	if err != nil {
		t.Fatal(err)
	}
	src.WithStdin(strings.NewReader("x"))
	if _, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{}); err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("%v", err)
	}
	if _, err := source(t, []byte("\x1f\x8bpacked")).NewEnumerator(t.Context(), stream.EnumeratorContext{}); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("%v", err)
	}
}

// TestDamage: a damaged file is an error, or rows, and no panic.
func TestDamage(t *testing.T) {
	good := written(t, 200, 50)
	random := rand.New(rand.NewPCG(1, 2))
	s, err := arrowrow.New(schema, arrowrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		bad := bytes.Clone(good)
		for range 1 + random.IntN(4) {
			bad[random.IntN(len(bad))] = byte(random.Uint32())
		}
		for rec, err := range source(t, bad).Records(t.Context()) {
			if err != nil {
				break
			}
			_, _ = s.AppendRow(nil, table.Destination{}, arrowrow.Row{Batch: rec.Value.Batch.(*arrowrow.Batch), Index: rec.Value.Index})
		}
	}
}
