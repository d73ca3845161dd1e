//go:build unix

package staging_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// visit is a row as a program without this package would have it.
type visit struct {
	ID    int64     `json:"id"`
	At    time.Time `json:"at"`
	Name  string    `json:"name"`
	Path  string    `json:"path"`
	Took  float64   `json:"took"`
	OK    bool      `json:"ok"`
	Price string    `json:"price"`
}

func (v *visit) record() []string {
	return []string{strconv.FormatInt(v.ID, 10), v.At.Format("2006-01-02 15:04:05.999999Z"), v.Name, v.Path, strconv.FormatFloat(v.Took, 'g', -1, 64),
		strconv.FormatBool(v.OK), v.Price}
}

// BenchmarkOfLibrary holds files of text to the standard library's writers, which have the same values as structs, ready made, and the same
// gzip. Both take turns, by processor time.
func BenchmarkOfLibrary(b *testing.B) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "path", Type: table.String}, {Name: "took", Type: table.Float64}, {Name: "ok", Type: table.Bool}, {Name: "price", Type: table.Numeric},
	}}
	rows, visits, size := make([][]byte, 5000), make([]visit, 5000), 0
	for i := range rows {
		v := visit{int64(i) * 7919, time.UnixMicro(1785027723456789 + int64(i)*104729).UTC(), fmt.Sprintf("visitor %d", i*31),
			fmt.Sprintf("/articles/%d/comments?page=%d", i%97, i%13), float64(i) / 7, i%2 == 1, fmt.Sprintf("%d.%02d", i, i%100)}
		visits[i] = v
		rows[i] = rowtest.Encode(s.Fields, []row.Value{{Int: v.ID}, {Int: v.At.UnixMicro()}, rowtest.Text(v.Name), rowtest.Text(v.Path),
			rowtest.Float(v.Took), {Int: int64(i % 2)}, rowtest.Decimal(table.Numeric, v.Price)})
		size += len(rows[i])
	}
	plan := mustPlan(b, s)
	for _, c := range []struct {
		files   staging.Encoding
		library func(io.Writer) error
	}{
		{staging.JSONFiles, func(w io.Writer) error {
			e := json.NewEncoder(w)
			for i := range visits {
				if err := e.Encode(&visits[i]); err != nil {
					return err
				}
			}
			return nil
		}},
		{staging.CSVFiles, func(w io.Writer) error {
			e := csv.NewWriter(w)
			for i := range visits {
				if err := e.Write(visits[i].record()); err != nil {
					return err
				}
			}
			e.Flush()
			return e.Error()
		}},
	} {
		b.Run(c.files.Format().String(), func(b *testing.B) {
			f, err := c.files.NewFile(io.Discard, plan)
			if err != nil {
				b.Fatal(err)
			}
			z, err := gzip.NewWriterLevel(io.Discard, 3)
			if err != nil {
				b.Fatal(err)
			}
			var ours, library, packing turns
			for b.Loop() {
				begun := processor(b)
				for _, r := range rows {
					if err := f.Write(r); err != nil {
						b.Fatal(err)
					}
				}
				first := processor(b)
				if err := c.library(z); err != nil {
					b.Fatal(err)
				}
				second := processor(b)
				if err := c.library(io.Discard); err != nil {
					b.Fatal(err)
				}
				ours, library, packing = append(ours, first-begun), append(library, second-first), append(packing, processor(b)-second)
			}
			b.ReportMetric(library.of(ours), "of-library")
			b.ReportMetric(float64(ours.median().Nanoseconds())/float64(len(rows)), "cpu-ns/row")
			b.ReportMetric(float64(library.median().Nanoseconds())/float64(len(rows)), "library-cpu-ns/row")
			b.ReportMetric(float64(packing.median().Nanoseconds())/float64(len(rows)), "library-unpacked-cpu-ns/row")
			b.ReportMetric(float64(size)/ours.median().Seconds()/1e6, "MB/cpu-s")
		})
	}
}
