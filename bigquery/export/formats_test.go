package export_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/internal/avro/ocf"
)

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

func TestFormats(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	want := docs(500)
	l.write(t, orders, want...)
	want = sorted(want)
	ids := idsOf(t, want)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	small := export.Options{Lanes: 3}.Small(20)

	for _, name := range []string{"a.ndjson", "a.jsonl.gz", "a.ndjson.zst"} {
		r := l.mustExport(t, path(name), small)
		if d := cmp.Diff(want, sorted(strings.Split(strings.TrimSuffix(string(unpacked(t, path(name))), "\n"), "\n"))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if info, err := os.Stat(path(name)); err != nil || r.Rows != 500 || r.Files != 1 || r.Bytes != info.Size() || r.Before != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}

	l.mustExport(t, path("a.csv"), small)
	records, err := csv.NewReader(bytes.NewReader(contents(t, path("a.csv")))).ReadAll()
	if err != nil || len(records) != 501 || strings.Join(records[0], " ") != "id name at score price day more tags place" {
		t.Errorf("%d records, %v, %v", len(records), records[0], err)
	}
	text := contents(t, path("a.csv"))
	for _, line := range []string{
		`3,"",2026-07-26T01:02:03.500Z,3.25,3.5,2026-01-04,"{""k"":[3]}","[""a"",""b0""]","{""x"":3,""y"":""AQI=""}"`,
		`5,,2026-07-26T01:02:05.500Z,5.25,5.5,2026-01-06,"{""k"":[5]}","[""a"",""b2""]","{""x"":5,""y"":""AQI=""}"`,
		`6,"row, ""6""",2026-07-26T01:02:06.500Z,6.25,6.5,2026-01-07,"{""k"":[6]}","[""a"",""b0""]","{""x"":6,""y"":""AQI=""}"`,
	} {
		if !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("there is no line %s", line)
		}
	}

	l.mustExport(t, path("a.avro"), small)
	in, err := ocf.NewReader(bytes.NewReader(contents(t, path("a.avro"))), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for {
		b, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows += b.Count
		if err := in.Skip(b); err != nil {
			t.Fatal(err)
		}
	}
	if rows != 500 {
		t.Errorf("%d rows of Avro", rows)
	}

	l.mustExport(t, path("a.arrow"), small)
	if d := cmp.Diff(ids, arrowIDs(t, contents(t, path("a.arrow")))); d != "" {
		t.Error(d)
	}
	r := l.mustExport(t, path("a.parquet"), small)
	got, groups := parquetIDs(t, contents(t, path("a.parquet")))
	if d := cmp.Diff(ids, got); d != "" || r.Rows != 500 || groups < 5 {
		t.Errorf("%+v, %d row groups, %s", r, groups, d)
	}
	if names := files(t, dir); len(names) != 7 {
		t.Errorf("there are %v", names)
	}
}

func idsOf(t *testing.T, docs []string) (ids []int64) {
	t.Helper()
	for _, d := range docs {
		var one struct{ ID int64 }
		if err := json.Unmarshal([]byte(d), &one); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, one.ID)
	}
	slices.Sort(ids)
	return ids
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	data := contents(t, path)
	var in io.Reader = bytes.NewReader(data)
	var err error
	switch filepath.Ext(path) {
	case ".gz":
		in, err = gzip.NewReader(in)
	case ".zst":
		in, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err = io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func arrowIDs(t *testing.T, data []byte) (ids []int64) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r, err := ipc.NewReader(bytes.NewReader(data), ipc.WithAllocator(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		ids = append(ids, r.RecordBatch().Column(0).(*array.Int64).Int64Values()...)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	slices.Sort(ids)
	return ids
}

func parquetIDs(t *testing.T, data []byte) (ids []int64, groups int) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := r.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Release()
	for _, c := range whole.Column(0).Data().Chunks() {
		ids = append(ids, c.(*array.Int64).Int64Values()...)
	}
	if f.NumRows() != int64(len(ids)) || whole.Column(1).DataType() != arrow.BinaryTypes.String {
		t.Errorf("the footer says %d rows, the second column is %s", f.NumRows(), whole.Column(1).DataType())
	}
	slices.Sort(ids)
	return ids, f.NumRowGroups()
}

// TestEmptyTables: there is a file, as the format has one without rows.
func TestEmptyTables(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	if err := l.CreateTable("d.t", &bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "id", Type: "INTEGER"}, {Name: "name", Type: "STRING"}}}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range export.Formats() {
		name := filepath.Join(dir, "empty."+string(f))
		if r, err := l.export(t.Context(), name, export.Options{}); err != nil || r.Rows != 0 || r.Files != 1 {
			t.Errorf("%s: %+v, %v", f, r, err)
		}
		data := contents(t, name)
		switch f {
		case export.NDJSON:
			if len(data) > 0 {
				t.Errorf("%q", data)
			}
		case export.CSV:
			if string(data) != "id,name\n" {
				t.Errorf("%q", data)
			}
		case export.Arrow:
			if ids := arrowIDs(t, data); len(ids) > 0 {
				t.Error(ids)
			}
		case export.Parquet:
			if ids, groups := parquetIDs(t, data); len(ids) > 0 || groups > 0 {
				t.Error(ids, groups)
			}
		}
	}
}

// TestManyFiles: each is a file by itself, and all together hold the rows.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	want := docs(500)
	l.write(t, orders, want...)
	for _, f := range export.Formats() {
		for _, name := range []string{"/out/", "/out/deep/part-*." + string(f)} {
			dir := t.TempDir()
			o := export.Options{Format: f, FileBytes: 6000, Lanes: 2}.Small(20)
			r := l.mustExport(t, dir+name, o)
			folder := filepath.Dir(dir + name + "x")
			names := files(t, folder)
			if len(names) != r.Files || r.Files < 4 || names[1] != "part-000001."+string(f) || r.Rows != 500 {
				t.Errorf("%s: %+v, %v", f, r, names)
			}
			var ids []int64
			var size int64
			for _, n := range names {
				data := contents(t, filepath.Join(folder, n))
				size += int64(len(data))
				switch f {
				case export.NDJSON:
					ids = append(ids, idsOf(t, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"))...)
				case export.Arrow:
					ids = append(ids, arrowIDs(t, data)...)
				case export.Parquet:
					some, _ := parquetIDs(t, data)
					ids = append(ids, some...)
				}
			}
			slices.Sort(ids)
			if d := cmp.Diff(idsOf(t, want), ids); d != "" && f != export.Avro && f != export.CSV {
				t.Errorf("%s: %s", f, d)
			}
			if size != r.Bytes {
				t.Errorf("%s: %d bytes, the result says %d", f, size, r.Bytes)
			}
			if _, err := l.export(t.Context(), filepath.Join(folder, "part-*."+string(f)), o); err == nil || !strings.Contains(err.Error(), "there are files of another read: "+fmt.Sprint(filepath.Join(folder, names[0]))) {
				t.Errorf("files that are there: %v", err)
			}
		}
	}
}

// Batches that come packed make the same Parquet file, and a smaller file of Arrow.
func TestPackedBatches(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 0)
	l.write(t, orders, docs(500)...)
	write := func(format export.Format, c bigquery.ArrowCompression) []byte {
		t.Helper()
		name := filepath.Join(t.TempDir(), "out")
		r, err := l.export(t.Context(), name, export.Options{Format: format, Source: bigquery.SourceOptions{ArrowCompression: c}})
		if err != nil || r.Rows != 500 {
			t.Fatalf("%+v: %v", r, err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, c := range []bigquery.ArrowCompression{bigquery.ArrowLZ4, bigquery.ArrowZSTD} {
		if !bytes.Equal(write(export.Parquet, c), write(export.Parquet, bigquery.ArrowUncompressed)) {
			t.Errorf("packing %d makes another Parquet file", c)
		}
		if plain, packed := len(write(export.Arrow, bigquery.ArrowUncompressed)), len(write(export.Arrow, c)); packed >= plain {
			t.Errorf("packing %d makes %d bytes of Arrow of %d", c, packed, plain)
		}
	}
	_, err := export.Open(t.Context(), bigquery.FromTable(dst), filepath.Join(t.TempDir(), "x"), l.options(export.Options{Format: export.NDJSON, Source: bigquery.SourceOptions{ArrowCompression: bigquery.ArrowLZ4}}))
	if err == nil || !strings.Contains(err.Error(), "ArrowCompression applies to batches of Arrow only") {
		t.Errorf("rows: %v", err)
	}
}
