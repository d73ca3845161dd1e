package avrorow

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/millrace-dev/millrace/internal/avro"
)

// encode writes the raw Go value of a schema in the binary encoding. Unions take the first branch that takes the value; nil is null.
func encode(buf []byte, s *avro.Schema, v any) []byte {
	switch s.Kind {
	case avro.Null:
		return buf
	case avro.Boolean:
		if v.(bool) {
			return append(buf, 1)
		}
		return append(buf, 0)
	case avro.Int:
		return avro.AppendLong(buf, int64(v.(int32)))
	case avro.Long:
		return avro.AppendLong(buf, v.(int64))
	case avro.Float:
		return binary.LittleEndian.AppendUint32(buf, math.Float32bits(v.(float32)))
	case avro.Double:
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(v.(float64)))
	case avro.Bytes:
		return append(avro.AppendLong(buf, int64(len(v.([]byte)))), v.([]byte)...)
	case avro.String:
		return append(avro.AppendLong(buf, int64(len(v.(string)))), v.(string)...)
	case avro.Fixed:
		return append(buf, v.([]byte)...)
	case avro.Enum:
		return avro.AppendLong(buf, int64(slices.Index(s.Symbols, v.(string))))
	case avro.Union:
		for i, b := range s.Branches {
			if (b.Kind == avro.Null) == (v == nil) {
				return encode(avro.AppendLong(buf, int64(i)), b, v)
			}
		}
		panic("no branch")
	case avro.Array:
		list := v.([]any)
		if len(list) > 0 {
			buf = avro.AppendLong(buf, int64(len(list)))
		}
		for _, e := range list {
			buf = encode(buf, s.Items, e)
		}
		return append(buf, 0)
	case avro.Map:
		m := v.(map[string]any)
		if len(m) > 0 {
			buf = avro.AppendLong(buf, int64(len(m)))
		}
		// Backwards, so that the order of the rows is not that of the bytes.
		for _, k := range slices.Backward(slices.Sorted(maps.Keys(m))) {
			buf = append(avro.AppendLong(buf, int64(len(k))), k...)
			buf = encode(buf, s.Values, m[k])
		}
		return append(buf, 0)
	case avro.Record:
		m := v.(map[string]any)
		for i := range s.Fields {
			buf = encode(buf, s.Fields[i].Type, m[s.Fields[i].Name])
		}
		return buf
	}
	panic(fmt.Sprintf("no encoding of %v", s.Kind))
}
