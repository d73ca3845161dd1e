package text

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// AppendCell writes one value of a column that is not NULL, no STRUCT and not held as text. Only a TIMESTAMP is written in
// several ways: timestamp writes one, in microseconds since 1970.
func AppendCell(dst []byte, f *schema.Field, a arrow.Array, i int, timestamp func(dst []byte, micros int64) []byte) []byte {
	switch v := a.(type) {
	case *array.Int64:
		return strconv.AppendInt(dst, v.Value(i), 10)
	case *array.Float64:
		return AppendFloat(dst, v.Value(i))
	case *array.Boolean:
		return strconv.AppendBool(dst, v.Value(i))
	case *array.Binary:
		return base64.StdEncoding.AppendEncode(dst, v.Value(i))
	case *array.Decimal128:
		return appendDecimal128(dst, v, i)
	case *array.Decimal256:
		return AppendDecimal(dst, v.Value(i).BigInt(), int(v.DataType().(*arrow.Decimal256Type).Scale))
	case *array.Date32:
		return AppendDate(dst, int64(v.Value(i)))
	case *array.Time64:
		return AppendTime(dst, int64(v.Value(i)))
	case *array.Timestamp:
		if f.Type == schema.DateTime {
			return AppendDateTime(dst, int64(v.Value(i)), 'T')
		}
		return timestamp(dst, int64(v.Value(i)))
	case *array.Struct:
		if f.Type == schema.Interval {
			months, days, micros := v.Field(0).(*array.Int32), v.Field(1).(*array.Int32), v.Field(2).(*array.Int64)
			return AppendInterval(dst, int64(months.Value(i)), int64(days.Value(i)), micros.Value(i))
		}
		return appendRange(dst, f, v, i, timestamp)
	}
	panic(fmt.Sprintf("text: column %s of type %s is held as %s", f.Name, f.Type, a.DataType()))
}

func appendDecimal128(dst []byte, a *array.Decimal128, i int) []byte {
	n, scale := a.Value(i), int(a.DataType().(*arrow.Decimal128Type).Scale)
	if low := int64(n.LowBits()); n.HighBits() == low>>63 {
		return AppendDecimal64(dst, low, scale)
	}
	return AppendDecimal(dst, n.BigInt(), scale)
}

// appendRange writes [start, end) with UNBOUNDED for an end that is not there.
func appendRange(dst []byte, f *schema.Field, a *array.Struct, i int, timestamp func([]byte, int64) []byte) []byte {
	element := &schema.Field{Name: f.Name, Type: f.RangeElement}
	for k, open := range []string{"[", ", "} {
		dst = append(dst, open...)
		if end := a.Field(k); end.IsNull(i) {
			dst = append(dst, "UNBOUNDED"...)
		} else {
			dst = AppendCell(dst, element, end, i, timestamp)
		}
	}
	return append(dst, ')')
}
