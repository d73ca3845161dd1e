//go:build cgo

package duckdb

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/compile"
)

// pick is the columns of a stored batch that a plan reads, members of structs by themselves. It shares the batch's memory,
// but for the bitmaps of members that a NULL struct hides.
func pick(b arrow.RecordBatch, columns []compile.Stored) arrow.RecordBatch {
	arrays := make([]arrow.Array, len(columns))
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		a := b.Column(c.Path[0])
		for _, step := range c.Path[1:] {
			a = member(a.(*array.Struct), step)
		}
		arrays[i], fields[i] = a, arrow.Field{Name: c.Name, Type: a.DataType(), Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, b.NumRows())
}

// member is a member of a struct, NULL where the struct is.
func member(s *array.Struct, i int) arrow.Array {
	m := s.Field(i)
	if s.NullN() == 0 {
		return m
	}
	d := m.Data()
	bitmap := make([]byte, (d.Offset()+d.Len()+7)/8)
	nulls := 0
	for k := range d.Len() {
		if s.IsNull(k) || m.IsNull(k) {
			nulls++
			continue
		}
		at := d.Offset() + k
		bitmap[at/8] |= 1 << (at % 8)
	}
	buffers := append([]*memory.Buffer{memory.NewBufferBytes(bitmap)}, d.Buffers()[1:]...)
	return array.MakeFromData(array.NewData(d.DataType(), d.Len(), buffers, d.Children(), nulls, d.Offset()))
}
