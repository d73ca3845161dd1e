package load

import (
	"bytes"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// FuzzRun reads anything as any format: what comes of it is rows or a refusal.
func FuzzRun(f *testing.F) {
	f.Add(uint8(0), []byte("1,\"a\"\"b\nc\",x\r\n"))
	f.Add(uint8(1), []byte("{\"a\":1,\"b\":[{\"c\":null}]}\n\n{\"a\":\"x\"}"))
	f.Add(uint8(2), []byte("n,s\n1,\"\n"))
	f.Add(uint8(3), []byte("Obj\x01\x04\x14avro.codec\x08null\x16avro.schema\x02{}\x00"))
	f.Add(uint8(4), []byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Add(uint8(0), []byte{0x1f, 0x8b, 8, 0, 0})
	columns := &schema.Schema{Fields: []*schema.Field{{Name: "a", Type: schema.Int64}, {Name: "b", Type: schema.String}}}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		c := []Config{
			{Format: CSV, Schema: columns, MaxBadRecords: 3}, {Format: JSON, Autodetect: true}, {Format: CSV, Autodetect: true},
			{Format: Avro, Logical: true}, {Format: Parquet, ListInference: true},
		}[kind%5]
		c.Table = "p:d.t"
		source := Source{URI: "gs://b/o", Size: int64(len(data)), Open: func() (File, error) { return memory{bytes.NewReader(data)}, nil }}
		var out *Result
		var err error
		// A byte may unpack to a thousand, and is then a row; the libraries of the formats take some megabytes to begin with.
		hostile.Proportional(t, len(data), 64<<10, 512<<20, func() { out, err = Run(t.Context(), c, []Source{source}) })
		if err != nil && refusal.Of(err) == nil {
			t.Errorf("an error that is no refusal: %v", err)
		}
		if err == nil && out.Schema == nil {
			t.Error("rows without a schema")
		}
	})
}
