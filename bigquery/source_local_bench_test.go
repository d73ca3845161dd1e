package bigquery

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	official "cloud.google.com/go/bigquery"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// BenchmarkSourceLocal reads a table of five columns from the local service: through the source, and through the official
// client's iterator with its Storage Read client. The service runs in the same process and is part of both.
func BenchmarkSourceLocal(b *testing.B) {
	const rows = 200_000
	l := startLocal(b, localbq.Config{})
	docs := make([]string, rows)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d,"at":"2026-07-26T01:02:03.456789Z","name":"a name of some length, %d","score":1.5,"ok":true}`, i, i)
	}
	l.write(b, &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "score", Type: table.Float64}, {Name: "ok", Type: table.Bool},
	}}, docs...)
	measure := func(name string, read func(b *testing.B) int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := read(b); n != rows {
					b.Fatalf("read %d rows", n)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	src, err := NewSource(readTable, deserialize[benchRecord](func(r *row.Row, emit func(benchRecord) error) error {
		v := r.Values
		return emit(benchRecord{v[0].Int, v[1].Int, string(v[2].Bytes), math.Float64frombits(uint64(v[3].Int)), v[4].Int == 1})
	}), SourceOptions{Connection: l.connection})
	if err != nil {
		b.Fatal(err)
	}
	measure("source to structs", func(b *testing.B) (n int) {
		for _, err := range src.Rows(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		return n
	})
	c, err := official.NewClient(b.Context(), "p", l.ClientOptions()...)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.EnableStorageReadClient(b.Context(), l.GRPCClientOptions()...); err != nil {
		b.Fatal(err)
	}
	measure("official client to structs", func(b *testing.B) (n int) {
		it := c.Dataset("d").Table("t").Read(b.Context())
		for ; ; n++ {
			var rec struct {
				ID    int64
				At    time.Time
				Name  string
				Score float64
				OK    bool
			}
			if err := it.Next(&rec); errors.Is(err, iterator.Done) {
				if !it.IsAccelerated() {
					b.Fatal("the official client did not use the Storage Read API")
				}
				return n
			} else if err != nil {
				b.Fatal(err)
			}
		}
	})
	measure("official client to values", func(b *testing.B) (n int) {
		it := c.Dataset("d").Table("t").Read(b.Context())
		for ; ; n++ {
			var rec []official.Value
			if err := it.Next(&rec); errors.Is(err, iterator.Done) {
				return n
			} else if err != nil {
				b.Fatal(err)
			}
		}
	})
}
