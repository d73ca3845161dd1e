package decode

import (
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// bulk copies a whole Arrow column into a vector of the same layout; nil for columns whose values need more than a look.
// It leaves a column with NULLs, or with a value to be refused, alone: rows are taken one by one then.
func bulk(f *arrowipc.Field, target *schema.Field, v vector) func(*arrowipc.Column) bool {
	switch {
	case target.Mode == schema.Repeated:
	case target.Type == schema.Int64 && f.Kind == arrowipc.Int && f.Bits == 64 && f.Signed:
		return func(c *arrowipc.Column) bool { return copyFixed(v.(*fixed[int64]), c, arrow.Int64Traits.CastToBytes) }
	case target.Type == schema.Float64 && f.Kind == arrowipc.Float && f.Bits == 64:
		return func(c *arrowipc.Column) bool {
			return copyFixed(v.(*fixed[float64]), c, arrow.Float64Traits.CastToBytes)
		}
	case target.Type == schema.String && f.Kind == arrowipc.Utf8 && target.MaxLength == 0:
		return func(c *arrowipc.Column) bool { return copyText(v.(*text), c, true) }
	case target.Type == schema.Bytes && f.Kind == arrowipc.Binary && target.MaxLength == 0:
		return func(c *arrowipc.Column) bool { return copyText(v.(*text), c, false) }
	}
	return nil
}

func copyFixed[T number](v *fixed[T], c *arrowipc.Column, bytes func([]T) []byte) bool {
	if c.Nulls() || v.bits != nil {
		return false
	}
	old := len(v.values)
	v.values = append(v.values, make([]T, c.Len)...)
	copy(bytes(v.values[old:]), c.Values)
	v.n += c.Len
	return true
}

// copyText needs each value to be UTF-8, which the whole being so does not say.
func copyText(v *text, c *arrowipc.Column, isText bool) bool {
	if c.Nulls() || v.bits != nil {
		return false
	}
	if isText {
		for i := range c.Len {
			if !utf8.Valid(c.Bytes(i)) {
				return false
			}
		}
	}
	for i := range c.Len {
		v.append(c.Bytes(i))
	}
	return true
}
