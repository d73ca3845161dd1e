package fileload

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// nowhere is a depot that keeps nothing, nothing an object of it.
type nowhere struct{}

func (nowhere) create(context.Context, string) (object, error) { return nothing{}, nil }
func (nowhere) Close() error                                   { return nil }

type nothing struct{}

func (nothing) Write(_ context.Context, b []byte) (int, error) { return len(b), nil }
func (nothing) Close(context.Context) error                    { return nil }
func (nothing) Abort() error                                   { return nil }

// BenchmarkWriter writes rows to files that go nowhere: what a writer takes beside the files themselves, which "file alone" shows.
func BenchmarkWriter(b *testing.B) {
	s := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "at", Type: table.Timestamp},
		{Name: "name", Type: table.String}, {Name: "path", Type: table.String}, {Name: "took", Type: table.Float64}}}
	rows := make([][]byte, 1000)
	size := 0
	for i := range rows {
		rows[i] = rowtest.Encode(s.Fields, []row.Value{{Int: int64(i) * 7919}, {Int: 1785027723456789 + int64(i)*104729},
			rowtest.Text(fmt.Sprintf("visitor %d", i*31)), rowtest.Text(fmt.Sprintf("/articles/%d/comments?page=%d", i%97, i%13)), rowtest.Float(float64(i) / 7)})
		size += len(rows[i])
	}
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
	}
	b.Run("file alone", func(b *testing.B) {
		d, err := row.Descriptor(s)
		if err != nil {
			b.Fatal(err)
		}
		p, err := staging.Compile(s, d)
		if err != nil {
			b.Fatal(err)
		}
		f, err := staging.NewAvroFile(io.Discard, p)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			for _, r := range rows {
				if err := f.Write(r); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	for _, tables := range []int{1, 16, 1000} {
		b.Run(fmt.Sprintf("%d tables", tables), func(b *testing.B) {
			begun := time.Now()
			w, err := newWriter(b.Context(), Config{
				Options: Options{StagingPath: "gs://b", Format: loadplan.Avro, MaxFileBytes: 16 << 20, MaxOpenDestinations: 16, MaxPendingFiles: 1 << 30,
					MaxRowBytes: 15_000_000, IdleTimeout: time.Minute, Finalizations: 1},
				Rows: &rowsOf{schema: s, asked: map[string]int{}}, Failures: stream.FailJob(), Ledger: &outcome.Ledger{}, Run: testRun, Attempt: 1,
				Streaming: true, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler),
			}, nowhere{}, func() time.Duration { return time.Since(begun) })
			if err != nil {
				b.Fatal(err)
			}
			targets := make([]*Target, tables)
			for i := range targets {
				if targets[i], err = w.Target(at(fmt.Sprintf("t%d", i))); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for i, r := range rows {
					if err := w.Row(b.Context(), targets[i%tables], r); err != nil {
						b.Fatal(err)
					}
				}
			}
			report(b)
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
