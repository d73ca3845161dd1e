package bigquery

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// benchServer sends blocks of 10,000 rows of five columns, about 50 bytes each.
func benchServer(b *testing.B, times int) *readServer {
	const rows = 10_000
	var data []byte
	for i := range rows {
		data = binary.AppendVarint(append(data, 2), int64(i))
		data = binary.AppendVarint(append(data, 2), 1785027723456789+int64(i))
		name := fmt.Sprintf("a name of some length, %d", i)
		data = append(binary.AppendVarint(append(data, 2), int64(len(name))), name...)
		data = binary.LittleEndian.AppendUint64(append(data, 2), math.Float64bits(1.5))
		data = append(data, 2, 1)
	}
	return (&readServer{streams: [][]string{nil}, times: times,
		schema: `{"type":"record","name":"__root__","fields":[
			{"name":"id","type":["null","long"]},
			{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
			{"name":"name","type":["null","string"]},
			{"name":"score","type":["null","double"]},
			{"name":"ok","type":["null","boolean"]}]}`,
		encoded: &storagepb.ReadRowsResponse{RowCount: rows,
			Rows: &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: data}}},
	}).serve(b)
}

type benchRecord struct {
	id, at int64
	name   string
	score  float64
	ok     bool
}

// BenchmarkSourceRows reads a million rows over loopback: into structs through the source, its blocks undecoded, and,
// as the floor of both, with a bare loop over the generated client. All include a server in the same process.
func BenchmarkSourceRows(b *testing.B) {
	const times, rows = 100, 1_000_000
	s := benchServer(b, times)
	measure := func(name string, read func(b *testing.B) int64) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(times * len(s.encoded.GetAvroRows().SerializedBinaryRows)))
			b.ReportAllocs()
			for b.Loop() {
				if n := read(b); n != rows {
					b.Fatalf("read %d rows", n)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	src := newSource(b, s, deserialize[benchRecord](func(r *row.Row, emit func(benchRecord) error) error {
		v := r.Values
		return emit(benchRecord{v[0].Int, v[1].Int, string(v[2].Bytes), math.Float64frombits(uint64(v[3].Int)), v[4].Int == 1})
	}), SourceOptions{})
	measure("structs", func(b *testing.B) (n int64) {
		for _, err := range src.Rows(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		return n
	})
	measure("blocks", func(b *testing.B) (n int64) {
		session, err := src.Session(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for block, err := range session.Blocks(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n += block.Rows
		}
		return n
	})
	measure("bare receive", func(b *testing.B) (n int64) {
		c, err := s.connection().ReadClient(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		call, err := c.ReadRows(b.Context(), &storagepb.ReadRowsRequest{ReadStream: "projects/p/locations/us/sessions/1/streams/0"})
		if err != nil {
			b.Fatal(err)
		}
		for {
			resp, err := call.Recv()
			if err != nil {
				return n
			}
			n += resp.RowCount
		}
	})
}
