package decode

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// hundred is a descriptor, a table and a row of about 100 bytes.
func hundred(t testing.TB) (*descriptorpb.DescriptorProto, *schema.Schema, []byte) {
	d := messageOf("Row", field("id", "int64"), field("name", "string"), field("score", "double"), field("at", "int64"), field("note", "string"))
	s := tableOf(required(col("id", schema.Int64)), col("name", schema.String), col("score", schema.Float64), col("at", schema.Timestamp), col("note", schema.String))
	row := rows(&testing.T{}, d, `id: 123456789 name: "a name of some length" score: 0.25 at: 1785027723456789 note: "`+strings.Repeat("x", 50)+`"`)[0]
	if len(row) < 90 || len(row) > 110 {
		t.Fatalf("the row has %d bytes", len(row))
	}
	return d, s, row
}

func BenchmarkDecode(b *testing.B) {
	d, s, row := hundred(b)
	const batch = 500
	request := make([][]byte, batch)
	for i := range request {
		request[i] = row
	}
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "rows/s")
		b.SetBytes(int64(batch * len(row)))
	}
	for _, mode := range []string{"take", "reset"} {
		b.Run(mode, func(b *testing.B) {
			p, err := Compile(d, "t", s)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if bad := p.Decode(request, Request{}); bad != nil {
					b.Fatal(bad)
				}
				if mode == "take" {
					p.Take()
				} else {
					p.Reset()
				}
			}
			report(b)
		})
	}
	b.Run("dynamicpb", func(b *testing.B) { // what decoding through message objects would cost
		md := official(&testing.T{}, d)
		b.ReportAllocs()
		for b.Loop() {
			for _, row := range request {
				if err := proto.Unmarshal(row, dynamicpb.NewMessage(md)); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
}
