package store

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// TestLogicalBytes: NULL is nothing, in a STRUCT and behind one; a STRUCT is its members (BigQuery documentation, "Data type sizes").
func TestLogicalBytes(t *testing.T) {
	s := &schema.Schema{Fields: []*schema.Field{{Name: "s", Type: schema.Struct, Fields: []*schema.Field{
		{Name: "n", Type: schema.Int64}, {Name: "l", Type: schema.Int64, Mode: schema.Repeated},
		{Name: "inner", Type: schema.Struct, Fields: []*schema.Field{{Name: "t", Type: schema.String}}},
	}}, {Name: "many", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "d", Type: schema.Date}}}}}
	for rows, want := range map[string]int64{
		`[{"s":null,"many":[]}]`:                                  0,
		`[{"s":{"n":null,"l":[],"inner":null},"many":[]}]`:        0,
		`[{"s":{"n":1,"l":[1,2],"inner":{"t":"abc"}},"many":[]}]`: 8 + 16 + 5,
		`[{"s":null,"many":[]},{"s":{"n":1,"l":[1],"inner":{"t":"x"}},"many":[]},{"s":null,"many":[]},{"s":{"n":2,"l":[],"inner":null},"many":[]}]`: 8 + 8 + 3 + 8,
		`[{"s":null,"many":[{"d":1},{"d":null}]}]`: 8,
	} {
		if got := logicalBytes(s, fromJSON(t, s, rows)); got != want {
			t.Errorf("%s: %d bytes, want %d", rows, got, want)
		}
	}
	// A STRUCT that is NULL holds values of its members all the same, where they come from a writer that keeps their places.
	whole := fromJSON(t, s, `[{"s":{"n":1,"l":[1],"inner":{"t":"x"}},"many":[]},{"s":{"n":2,"l":[2,3],"inner":{"t":"y"}},"many":[]}]`)
	if got := LogicalBytes(s.Fields[0], behindNull(whole.Column(0), 0)); got != 8+16+3 {
		t.Errorf("a NULL and a STRUCT: %d bytes", got)
	}
}

// behindNull is a column of STRUCTs with one made NULL, and its members as they were.
func behindNull(a arrow.Array, at int) arrow.Array {
	d := a.Data()
	valid := make([]byte, bitutil.BytesForBits(int64(a.Len())))
	for i := range a.Len() {
		bitutil.SetBitTo(valid, i, i != at)
	}
	return array.MakeFromData(array.NewData(d.DataType(), d.Len(), []*memory.Buffer{memory.NewBufferBytes(valid)}, d.Children(), 1, 0))
}
