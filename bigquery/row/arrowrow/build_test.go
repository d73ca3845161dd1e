package arrowrow

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// choose picks one of several ways to lay values out.
type choose func(n int) int

func first(int) int { return 0 }

func drawn(t *rapid.T) choose {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "layout") }
}

func extended(f arrow.Field, name string) arrow.Field {
	f.Metadata = arrow.NewMetadata([]string{"ARROW:extension:name"}, []string{name})
	return f
}

// arrowField is a field that holds a column: the first choice is what the Storage Read API answers.
func arrowField(c choose, f *table.Field) arrow.Field {
	out := arrow.Field{Name: f.Name, Nullable: f.Mode == table.Nullable, Type: arrowType(c, f)}
	switch f.Type {
	case table.JSON:
		out = extended(out, "google:sqlType:json")
	case table.Geography:
		out = extended(out, "google:sqlType:geography")
	case table.Range:
		out = extended(out, "google:sqlType:range")
	}
	if f.Mode != table.Repeated {
		return out
	}
	elem := out
	elem.Name, elem.Nullable = "item", false
	if c(2) == 0 {
		elem.Metadata = arrow.Metadata{} // as the Storage Read API has it
	} else {
		out.Metadata = arrow.Metadata{}
	}
	switch c(4) {
	case 1:
		out.Type = arrow.LargeListOfField(elem)
	case 2:
		out.Type = arrow.ListViewOfField(elem)
	case 3:
		out.Type = arrow.LargeListViewOfField(elem)
	default:
		out.Type = arrow.ListOfField(elem)
	}
	return out
}

func arrowType(c choose, f *table.Field) arrow.DataType {
	pick := func(types ...arrow.DataType) arrow.DataType { return types[c(len(types))] }
	switch f.Type {
	case table.Bool:
		return arrow.FixedWidthTypes.Boolean
	case table.Int64:
		return arrow.PrimitiveTypes.Int64
	case table.Float64:
		return arrow.PrimitiveTypes.Float64
	case table.Numeric, table.BigNumeric:
		d := row.DecimalOf(f)
		if f.Type == table.BigNumeric {
			return &arrow.Decimal256Type{Precision: int32(min(d.Precision(), 76)), Scale: int32(d.FractionDigits())}
		}
		return &arrow.Decimal128Type{Precision: int32(d.Precision()), Scale: int32(d.FractionDigits())}
	case table.Bytes:
		return pick(arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
			&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.Binary})
	case table.Date:
		return pick(arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64)
	case table.Time:
		return pick(arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns)
	case table.DateTime:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case table.Timestamp:
		return pick(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Vienna"})
	case table.Interval:
		return arrow.FixedWidthTypes.MonthDayNanoInterval
	case table.Struct, table.Range:
		members := row.Members(f)
		fields := make([]arrow.Field, len(members))
		for i := range members {
			fields[i] = arrowField(c, &members[i])
		}
		return arrow.StructOf(fields...)
	}
	return pick(arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String})
}

func arrowSchema(c choose, s *table.Schema) *arrow.Schema {
	fields := make([]arrow.Field, len(s.Fields))
	for i := range s.Fields {
		fields[i] = arrowField(c, &s.Fields[i])
	}
	return arrow.NewSchema(fields, nil)
}

// build makes a batch of rows, slowly.
func build(t testing.TB, a *arrow.Schema, s *table.Schema, rows [][]row.Value) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, a)
	defer b.Release()
	for _, r := range rows {
		for i := range s.Fields {
			put(b.Field(i), &s.Fields[i], r[i])
		}
	}
	return b.NewRecordBatch()
}

func put(b array.Builder, f *table.Field, v row.Value) {
	if f.Mode != table.Repeated {
		putValue(b, f, v)
		return
	}
	l := b.(array.VarLenListLikeBuilder)
	l.AppendWithSize(true, len(v.List))
	for _, e := range v.List {
		putValue(l.ValueBuilder(), f, e)
	}
}

func unscaled(v row.Value) *big.Int {
	n := new(big.Int).SetBytes(v.Bytes)
	if len(v.Bytes) > 0 && v.Bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v.Bytes))))
	}
	return n
}

// scaledTo is a decimal as an integer of another scale; the digits that go are zeros.
func scaledTo(v row.Value, scale int32) *big.Int {
	n := unscaled(v)
	return n.Quo(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(v.Int-int64(scale)), nil))
}

func putValue(b array.Builder, f *table.Field, v row.Value) {
	if v.Null {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.Int != 0)
	case *array.Int64Builder:
		b.Append(v.Int)
	case *array.Float64Builder:
		b.Append(math.Float64frombits(uint64(v.Int)))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(scaledTo(v, b.Type().(arrow.DecimalType).GetScale())))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(scaledTo(v, b.Type().(arrow.DecimalType).GetScale())))
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(unscaled(v).Int64()))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.Int))
	case *array.Date64Builder:
		b.Append(arrow.Date64(v.Int * 86_400_000))
	case *array.Time64Builder:
		if b.Type().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			v.Int *= 1000
		}
		b.Append(arrow.Time64(v.Int))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.Int))
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(v.List[0].Int), Days: int32(v.List[1].Int), Nanoseconds: v.List[2].Int * 1000})
	case *array.StructBuilder:
		b.Append(true)
		for i, m := range row.Members(f) {
			put(b.FieldBuilder(i), &m, v.List[i])
		}
	case *array.StringBuilder:
		b.Append(string(v.Bytes))
	case *array.LargeStringBuilder:
		b.Append(string(v.Bytes))
	case *array.StringViewBuilder:
		b.Append(string(v.Bytes))
	case *array.BinaryBuilder:
		b.Append(v.Bytes)
	case *array.BinaryViewBuilder:
		b.Append(v.Bytes)
	case *array.BinaryDictionaryBuilder:
		if err := b.Append(v.Bytes); err != nil {
			panic(err)
		}
	default:
		panic(fmt.Sprintf("no way to build %T", b))
	}
}

// plain takes parameters off that say no more than the type.
func plain(fields []table.Field) {
	for i := range fields {
		f := &fields[i]
		if integer, fraction := f.Type.DecimalDigits(); f.Precision == integer+fraction {
			f.Precision, f.Scale = 0, 0
		}
		plain(f.Fields)
	}
}

// tame brings intervals within what nanoseconds in 64 bits hold.
func tame(fields []table.Field, values []row.Value) {
	for i := range fields {
		f := &fields[i]
		list := []*row.Value{&values[i]}
		if f.Mode == table.Repeated {
			list = list[:0]
			for k := range values[i].List {
				list = append(list, &values[i].List[k])
			}
		}
		for _, v := range list {
			switch {
			case v.Null:
			case f.Type == table.Interval:
				v.List[2].Int %= math.MaxInt64 / 1000
			case row.Members(f) != nil:
				tame(row.Members(f), v.List)
			}
		}
	}
}

func le64(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
