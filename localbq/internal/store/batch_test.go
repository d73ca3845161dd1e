package store

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// everyType is a schema with every type the store holds, in every mode.
var everyType = func() *schema.Schema {
	s := &schema.Schema{}
	types := []schema.Type{schema.Bool, schema.Int64, schema.Float64, schema.Numeric, schema.BigNumeric, schema.String, schema.Bytes,
		schema.Date, schema.Time, schema.DateTime, schema.Timestamp, schema.Geography, schema.JSON}
	for _, t := range types {
		s.Fields = append(s.Fields,
			&schema.Field{Name: t.String(), Type: t},
			&schema.Field{Name: t.String() + "_many", Type: t, Mode: schema.Repeated})
	}
	s.Fields = append(s.Fields,
		&schema.Field{Name: "interval", Type: schema.Interval},
		&schema.Field{Name: "range", Type: schema.Range, RangeElement: schema.Date},
		&schema.Field{Name: "nested", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{
			{Name: "a", Type: schema.String}, {Name: "b", Type: schema.Struct, Fields: []*schema.Field{{Name: "c", Type: schema.Int64, Mode: schema.Repeated}}},
		}})
	return s
}()

// randomBatch fills any schema through Arrow's own builders.
func randomBatch(t *rapid.T, s *arrow.Schema, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for range rows {
		for i := range s.Fields() {
			appendRandom(t, b.Field(i), s.Field(i).Nullable)
		}
	}
	return b.NewRecordBatch()
}

func appendRandom(t *rapid.T, b array.Builder, nullable bool) {
	if nullable && rapid.Bool().Draw(t, "null") {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			appendRandom(t, b.ValueBuilder(), false)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendRandom(t, b.FieldBuilder(i), b.Type().(*arrow.StructType).Field(i).Nullable)
		}
	case *array.StringBuilder:
		b.Append(rapid.String().Draw(t, "text"))
	case *array.BinaryBuilder:
		b.Append(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case *array.BooleanBuilder:
		b.Append(rapid.Bool().Draw(t, "bool"))
	case *array.Int64Builder:
		b.Append(rapid.Int64().Draw(t, "number"))
	default:
		b.AppendEmptyValue()
	}
}

func TestBatchRoundTrip(t *testing.T) {
	shape := everyType.Arrow()
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 20).Draw(t, "rows")
		b := randomBatch(t, shape, rows)
		from := rapid.IntRange(0, rows-1).Draw(t, "from")
		slice := b.NewSlice(int64(from), int64(rapid.IntRange(from+1, rows).Draw(t, "to")))
		joined := Concatenate([]arrow.RecordBatch{b, slice})

		var buf []byte
		in := []arrow.RecordBatch{b, slice, joined}
		for _, each := range in {
			buf = appendBatch(buf, each)
		}
		r := batchReader{payload: buf}
		for i, each := range in {
			got, err := r.batch(shape)
			if err != nil {
				t.Fatalf("batch %d: %v", i, err)
			}
			if !array.RecordEqual(each, got) {
				t.Fatalf("batch %d: got\n%v, want\n%v", i, got, each)
			}
		}
		if r.at != len(buf) {
			t.Fatalf("read %d of %d bytes", r.at, len(buf))
		}
	})
}

func TestBatchDamaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buf := appendBatch(nil, randomBatch(t, everyType.Arrow(), 3))
		cut := rapid.IntRange(0, len(buf)-1).Draw(t, "cut")
		r := batchReader{payload: buf[:cut:cut]}
		if b, err := r.batch(everyType.Arrow()); err == nil && cut < len(buf)-8 {
			t.Fatalf("%d of %d bytes decoded as %d rows", cut, len(buf), b.NumRows())
		}
	})
}

// FuzzBatch shows that no bytes make the reader panic; frames are checksummed, so this is for bugs and not for damage.
func FuzzBatch(f *testing.F) {
	f.Add(appendBatch(nil, numbered(0, 5)))
	shape := numberedSchema.Arrow()
	f.Fuzz(func(t *testing.T, payload []byte) {
		r := batchReader{payload: payload}
		hostile.Proportional(t, len(payload), 64, 1<<16, func() { _, _ = r.batch(shape) })
	})
}
