package arrowipc_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// written is a message as the Arrow library writes it.
func written(t testing.TB, p ipc.Payload, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var out bytes.Buffer
	if _, err := p.WritePayload(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func schemaMessage(t testing.TB, s *arrow.Schema) []byte {
	t.Helper()
	return written(t, ipc.GetSchemaPayload(s, memory.DefaultAllocator), nil)
}

func batchMessage(t testing.TB, b arrow.RecordBatch, options ...ipc.Option) []byte {
	t.Helper()
	p, err := ipc.GetRecordBatchPayload(b, options...)
	return written(t, p, err)
}

// sample has every layout there is.
var sample = arrow.NewSchema([]arrow.Field{
	{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "small", Type: arrow.PrimitiveTypes.Int8},
	{Name: "f", Type: arrow.PrimitiveTypes.Float32},
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "dec", Type: &arrow.Decimal128Type{Precision: 38, Scale: 9}, Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String)},
	{Name: "r", Type: arrow.StructOf(
		arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		arrow.Field{Name: "deep", Type: arrow.ListOf(arrow.PrimitiveTypes.Uint16)}), Nullable: true},
}, nil)

const sampleRows = `[
	{"i": -5, "small": -1, "f": 1.5, "b": true, "s": "one", "dec": "-1.5", "l": ["a", "", "ccc"], "r": {"d": 3, "deep": [1, 65535]}},
	{"i": null, "small": 2, "f": -2.25, "b": null, "s": null, "dec": null, "l": [], "r": null},
	{"i": 7, "small": 3, "f": 0, "b": false, "s": "", "dec": "2", "l": ["d"], "r": {"d": null, "deep": []}}
]`

func record(t testing.TB, s *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, bytes.NewReader([]byte(rows)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
