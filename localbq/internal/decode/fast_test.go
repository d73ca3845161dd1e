package decode

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// fast prints a row of a batch as slow prints a message.
func fast(b arrow.RecordBatch, s *schema.Schema, row int) string {
	var out string
	for i, f := range s.Fields {
		out += " " + f.Name + "=" + fastValue(f, b.Column(i), row)
	}
	return out
}

func fastValue(f *schema.Field, a arrow.Array, row int) string {
	if list, ok := a.(*array.List); ok {
		var out string
		from, to := list.ValueOffsets(row)
		element := *f
		element.Mode = schema.Required
		for i := from; i < to; i++ {
			out += fastValue(&element, list.ListValues(), int(i)) + ";"
		}
		return out
	}
	if a.IsNull(row) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Struct:
		out := "{"
		for i, member := range f.Fields {
			out += " " + member.Name + "=" + fastValue(member, a.Field(i), row)
		}
		return out + " }"
	case *array.String:
		if f.Name == "e" {
			return a.Value(row)
		}
		return fmt.Sprintf("%q", a.Value(row))
	case *array.Float64:
		return fmt.Sprint(a.Value(row))
	case *array.Int64:
		return fmt.Sprint(a.Value(row))
	case *array.Boolean:
		return fmt.Sprint(a.Value(row))
	}
	return fmt.Sprintf("unexpected %T", a)
}
