//go:build unix

package parquetfile_test

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// visit is a row as a program without this package would have it.
type visit struct {
	ID   int64    `parquet:"id"`
	At   *int64   `parquet:"at,optional,timestamp(microsecond)"`
	Name *string  `parquet:"name,optional"`
	Path *string  `parquet:"path,optional"`
	Took *float64 `parquet:"took,optional"`
	OK   *bool    `parquet:"ok,optional"`
}

func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOfLibrary holds files to the library's own writer of structs, which has the values ready made. Both take turns, a row group each, by
// processor time.
func BenchmarkOfLibrary(b *testing.B) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "path", Type: table.String}, {Name: "took", Type: table.Float64}, {Name: "ok", Type: table.Bool},
	}}
	plan := mustPlan(b, s)
	rows, visits := make([][]byte, 50_000), make([]visit, 50_000)
	for i := range rows {
		v := visit{ID: int64(i) * 7919, At: new(1785027723456789 + int64(i)*104729), Name: new(fmt.Sprintf("visitor %d", i*31)),
			Path: new(fmt.Sprintf("/articles/%d/comments?page=%d", i%97, i%13)), Took: new(float64(i) / 7), OK: new(i%2 == 1)}
		visits[i] = v
		rows[i] = rowtest.Encode(s.Fields, []row.Value{{Int: v.ID}, {Int: *v.At}, rowtest.Text(*v.Name), rowtest.Text(*v.Path), rowtest.Float(*v.Took), {Int: int64(i % 2)}})
	}
	var ours, library, parts []float64
	for b.Loop() {
		begun := processor(b)
		f, err := parquetfile.New(io.Discard, plan, parquetfile.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			if err := f.Write(r); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		half := processor(b)
		w := parquet.NewGenericWriter[visit](io.Discard, parquet.Compression(&parquet.Zstd))
		for some := range slices.Chunk(visits, 1000) {
			if _, err := w.Write(some); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		end := processor(b)
		ours, library = append(ours, float64(half-begun)), append(library, float64(end-half))
		parts = append(parts, float64(end-half)/float64(half-begun))
	}
	median := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
	b.ReportMetric(median(parts), "of-library")
	b.ReportMetric(median(ours)/float64(len(rows)), "cpu-ns/row")
	b.ReportMetric(median(library)/float64(len(rows)), "library-cpu-ns/row")
}
