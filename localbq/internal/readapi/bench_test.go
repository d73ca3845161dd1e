package readapi

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// BenchmarkReadRows reads a million rows of four columns through the official client, undecoded.
func BenchmarkReadRows(b *testing.B) {
	const rows = 1_000_000
	f := setup(b)
	f.table(&schema.Field{Name: "id", Type: schema.Int64}, &schema.Field{Name: "name", Type: schema.String},
		&schema.Field{Name: "score", Type: schema.Float64}, &schema.Field{Name: "at", Type: schema.Timestamp})
	t, err := f.store.Table(tableRef)
	if err != nil {
		b.Fatal(err)
	}
	build := array.NewRecordBuilder(memory.DefaultAllocator, t.Info().Schema.Arrow())
	for i := range rows {
		build.Field(0).(*array.Int64Builder).Append(int64(i))
		build.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("name of row %d", i))
		build.Field(2).(*array.Float64Builder).Append(float64(i) / 3)
		build.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
	}
	if _, err := t.Write(store.Rows{Info: t.Info(), Batches: []arrow.RecordBatch{build.NewRecordBatch()}}); err != nil {
		b.Fatal(err)
	}
	for name, format := range map[string]func(*storagepb.CreateReadSessionRequest){"Avro": func(*storagepb.CreateReadSessionRequest) {}, "Arrow": inArrow} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			bytes := 0
			for b.Loop() {
				call, err := f.client.ReadRows(b.Context(), &storagepb.ReadRowsRequest{ReadStream: f.session(avroSession(format)).Streams[0].Name})
				if err != nil {
					b.Fatal(err)
				}
				read := int64(0)
				bytes = 0
				for {
					r, err := call.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					read += r.RowCount
					bytes += len(r.GetAvroRows().GetSerializedBinaryRows()) + len(r.GetArrowRecordBatch().GetSerializedRecordBatch())
				}
				if read != rows {
					b.Fatalf("%d rows", read)
				}
			}
			b.SetBytes(int64(bytes))
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
