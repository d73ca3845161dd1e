package row

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Decoder turns the bytes of rows back into values: what a staged file or a dead letter is made of. It reads rows of the
// message that Descriptor derives, packed and unpacked lists alike. It may be used from many goroutines.
type Decoder struct {
	schema *table.Schema
}

// NewDecoder makes the Decoder of a table's rows. The error is that of CheckSchema.
func NewDecoder(s *table.Schema) (*Decoder, error) {
	if err := CheckSchema(s); err != nil {
		return nil, err
	}
	return &Decoder{schema: s}, nil
}

// Decode makes the row that data is. Texts and bytes in it are parts of data. An error is a *Error that names the column.
func (d *Decoder) Decode(data []byte) (*Row, error) {
	values := nulls(d.schema.Fields)
	if err := decodeMessage(data, d.schema.Fields, values, ""); err != nil {
		return nil, err
	}
	return &Row{Schema: d.schema, Values: values}, nil
}

func nulls(fields []table.Field) []Value {
	values := make([]Value, len(fields))
	for i := range fields {
		values[i].Null = fields[i].Mode != table.Repeated
	}
	return values
}

func decodeMessage(data []byte, fields []table.Field, values []Value, path string) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return decodeError(path, "the bytes are no protobuf message: %v", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, data[n:])
		if size < 0 {
			return decodeError(path, "the bytes are no protobuf message: %v", protowire.ParseError(size))
		}
		i := int(num) - 1
		if i >= len(fields) {
			return decodeError(path, "field number %d: the schema has %d columns here", num, len(fields))
		}
		f := &fields[i]
		if err := decodeField(data[n:n+size], typ, f, &values[i], table.Join(path, f.Name)); err != nil {
			return err
		}
		data = data[n+size:]
	}
	for i := range fields {
		if fields[i].Mode == table.Required && values[i].Null {
			return &Error{Kind: KindNull, Path: table.Join(path, fields[i].Name), Offset: -1, Msg: "no value for a REQUIRED column"}
		}
	}
	return nil
}

func decodeError(path, format string, args ...any) error {
	return &Error{Kind: KindDecode, Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

// decodeField decodes what stands behind a tag.
func decodeField(data []byte, typ protowire.Type, f *table.Field, v *Value, path string) error {
	want := WireType(f)
	if f.Mode != table.Repeated {
		if typ != want {
			return decodeError(path, "wire type %d, expected %d for %v", typ, want, f.Type)
		}
		return decodeValue(data, f, v, path)
	}
	if typ == want {
		return decodeElement(data, f, v, path)
	}
	if typ != protowire.BytesType {
		return decodeError(path, "wire type %d, expected %d or a packed list for %v", typ, want, f.Type)
	}
	list, _ := protowire.ConsumeBytes(data)
	for len(list) > 0 {
		n := protowire.ConsumeFieldValue(1, want, list)
		if n < 0 {
			return decodeError(path, "the packed list is cut: %v", protowire.ParseError(n))
		}
		if err := decodeElement(list[:n], f, v, path); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func decodeElement(data []byte, f *table.Field, v *Value, path string) error {
	v.List = append(v.List, Value{Null: true})
	return decodeValue(data, f, &v.List[len(v.List)-1], fmt.Sprintf("%s[%d]", path, len(v.List)-1))
}

func decodeValue(data []byte, f *table.Field, v *Value, path string) (err error) {
	switch WireType(f) {
	case protowire.VarintType:
		n, _ := protowire.ConsumeVarint(data)
		v.Int, err = decodeInt(int64(n), f.Type)
	case protowire.Fixed64Type:
		n, _ := protowire.ConsumeFixed64(data)
		v.Int = int64(n)
	default:
		content, _ := protowire.ConsumeBytes(data)
		if members := Members(f); members != nil {
			if v.Null {
				v.List = nulls(members)
			}
			v.Null = false
			return decodeMessage(content, members, v.List, path)
		}
		err = decodeContent(content, f, v)
	}
	if err != nil {
		e := At(err, path, -1)
		e.Kind = KindDecode
		return e
	}
	v.Null = false
	return nil
}

func decodeInt(n int64, t table.Type) (int64, error) {
	switch t {
	case table.Time:
		return UnpackTime(n)
	case table.DateTime:
		return UnpackDateTime(n)
	case table.Date:
		return n, CheckDays(n)
	case table.Timestamp:
		return n, CheckMicros(n)
	case table.Bool:
		if n != 0 {
			n = 1
		}
		return n, nil
	}
	return n, nil
}

func decodeContent(content []byte, f *table.Field, v *Value) error {
	switch f.Type {
	case table.Numeric, table.BigNumeric:
		s, err := ScaledFromWire(content)
		v.Bytes, v.Int = s.AppendBigEndian(nil), int64(DecimalOf(f).Scale())
		return err
	case table.Interval:
		months, days, micros, err := ParseInterval(string(content))
		v.List = []Value{{Int: months}, {Int: days}, {Int: micros}}
		return err
	case table.Bytes:
	default:
		if !utf8.Valid(content) {
			return &ValueError{KindText, "expected UTF-8"}
		}
	}
	v.Bytes = content
	return nil
}
