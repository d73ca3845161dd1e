package rowtest

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Decode reads a row by way of the protobuf library, slowly and by other means than package row. The descriptor must be of the
// kinds that the columns' own have, as row.Descriptor makes them.
func Decode(d *descriptorpb.DescriptorProto, s *table.Schema, data []byte) ([]row.Value, error) {
	md, err := standalone(d)
	if err != nil {
		return nil, err
	}
	return decode(md, s.Fields, data)
}

// decode reads a row by way of the protobuf library, slowly and by other means than package row.
func decode(md protoreflect.MessageDescriptor, columns []table.Field, data []byte) ([]row.Value, error) {
	m := dynamicpb.NewMessage(md)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		return nil, fmt.Errorf("fields the descriptor lacks: %x", unknown)
	}
	return values(m, columns)
}

func values(m protoreflect.Message, columns []table.Field) ([]row.Value, error) {
	out := make([]row.Value, len(columns))
	for i := range columns {
		c := &columns[i]
		fd := m.Descriptor().Fields().Get(i)
		var err error
		switch {
		case fd.IsList():
			out[i].List, err = list(m.Get(fd).List(), c)
		case m.Has(fd):
			out[i], err = value(m.Get(fd), c)
		default:
			out[i].Null = true
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return out, nil
}

func list(l protoreflect.List, c *table.Field) ([]row.Value, error) {
	var out []row.Value
	for i := range l.Len() {
		v, err := value(l.Get(i), c)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func value(v protoreflect.Value, c *table.Field) (out row.Value, err error) {
	switch c.Type {
	case table.Bool:
		if v.Bool() {
			out.Int = 1
		}
	case table.Float64:
		out.Int = int64(math.Float64bits(v.Float()))
	case table.Int64, table.Date, table.Timestamp:
		out.Int = v.Int()
	case table.Time:
		out.Int, err = clock(v.Int())
	case table.DateTime:
		out.Int, err = civil(v.Int())
	case table.Numeric:
		out.Bytes, out.Int = bigEndian(v.Bytes()), 9
	case table.BigNumeric:
		out.Bytes, out.Int = bigEndian(v.Bytes()), 38
	case table.Bytes:
		out.Bytes = v.Bytes()
	case table.Interval:
		months, days, micros, ierr := row.ParseInterval(v.String())
		out.List, err = []row.Value{{Int: months}, {Int: days}, {Int: micros}}, ierr
	case table.Struct, table.Range:
		out.List, err = values(v.Message(), row.Members(c))
	default:
		out.Bytes = []byte(v.String())
	}
	return out, err
}

func clock(packed int64) (micros int64, err error) {
	h, m, s, us := packed>>32, packed>>26&63, packed>>20&63, packed&0xfffff
	if h > 23 || m > 59 || s > 59 || us > 999_999 || packed < 0 {
		return 0, fmt.Errorf("%#x is no packed time", packed)
	}
	return (time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second).Microseconds() + us, nil
}

func civil(packed int64) (micros int64, err error) {
	year, month, day := int(packed>>46), time.Month(packed>>42&15), int(packed>>37&31)
	rest, err := clock(packed & (1<<37 - 1))
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if y, m, d := date.Date(); err != nil || y != year || m != month || d != day || year < 1 || year > 9999 {
		return 0, fmt.Errorf("%#x is no packed date and time", packed)
	}
	return date.UnixMicro() + rest, nil
}

// bigEndian turns the bytes of a decimal around, through the number they are.
func bigEndian(little []byte) []byte {
	b := slices.Clone(little)
	slices.Reverse(b)
	n := new(big.Int).SetBytes(b)
	negative := len(b) > 0 && b[0]&0x80 != 0
	if !negative {
		out := n.Bytes()
		if len(out) == 0 || out[0]&0x80 != 0 {
			out = append([]byte{0}, out...)
		}
		return out
	}
	n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	size := (new(big.Int).Not(n).BitLen())/8 + 1
	return new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size))).FillBytes(make([]byte, size))
}

// difference says where two rows differ first, "" when they mean the same.
func difference(want, got []row.Value, columns []table.Field, path string) string {
	if len(want) != len(got) || len(want) != len(columns) {
		return fmt.Sprintf("%q has %d values, want %d, for %d columns", path, len(got), len(want), len(columns))
	}
	for i := range columns {
		c := columns[i]
		at := table.Join(path, c.Name)
		if c.Mode != table.Repeated {
			if d := differ(want[i], got[i], &c, at); d != "" {
				return d
			}
			continue
		}
		if len(want[i].List) != len(got[i].List) {
			return fmt.Sprintf("%s has %d elements, want %d", at, len(got[i].List), len(want[i].List))
		}
		for j := range want[i].List {
			if d := differ(want[i].List[j], got[i].List[j], &c, fmt.Sprintf("%s[%d]", at, j)); d != "" {
				return d
			}
		}
	}
	return ""
}

// differ compares values that are no lists.
func differ(want, got row.Value, c *table.Field, at string) string {
	if want.Null || got.Null {
		if want.Null != got.Null {
			return fmt.Sprintf("%s is NULL: %v, want %v", at, got.Null, want.Null)
		}
		return ""
	}
	if members := row.Members(c); members != nil {
		return difference(want.List, got.List, members, at)
	}
	if c.Type == table.Interval {
		return difference(want.List, got.List, []table.Field{{Name: "months"}, {Name: "days"}, {Name: "micros"}}, at)
	}
	if c.Type == table.Numeric || c.Type == table.BigNumeric {
		w, g := number(want), number(got)
		if w.Cmp(g) != 0 {
			return fmt.Sprintf("%s is %s, want %s", at, g.RatString(), w.RatString())
		}
		return ""
	}
	if want.Int != got.Int || !bytes.Equal(want.Bytes, got.Bytes) {
		return fmt.Sprintf("%s is %d %q, want %d %q", at, got.Int, got.Bytes, want.Int, want.Bytes)
	}
	return ""
}

// number is a decimal of any scale.
func number(v row.Value) *big.Rat {
	s, err := row.ScaledFromBigEndian(v.Bytes)
	if err != nil {
		panic(err)
	}
	return s.Rat(int(v.Int))
}

// Decimal is the Value of a NUMERIC or BIGNUMERIC column that holds the number text.
func Decimal(t table.Type, text string) row.Value {
	d := row.DecimalOf(&table.Field{Type: t})
	v, err := row.ParseDecimal(d, text)
	if err != nil {
		panic(err)
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: int64(d.Scale())}
}

// Float is the Value of a FLOAT64 column.
func Float(f float64) row.Value { return row.Value{Int: int64(math.Float64bits(f))} }

// Text is the Value of a column of text or bytes.
func Text(s string) row.Value { return row.Value{Bytes: []byte(s)} }

// List is the Value of a STRUCT, a RANGE, an INTERVAL or a REPEATED column.
func List(v ...row.Value) row.Value { return row.Value{List: v} }

// Null is the Value of a column that is NULL.
var Null = row.Value{Null: true}
