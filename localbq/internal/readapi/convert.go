package readapi

import (
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// The store keeps two types otherwise than sessions send them: an INTERVAL as a struct, which a session sends as
// month-day-nano, and a TIMESTAMP of picoseconds as text, which a session sends as its options say. Everything else is sent
// as it is.

// sessionSchema is the schema of the session's batches.
func (f *arrowFormat) sessionSchema(columns *schema.Schema) *arrow.Schema {
	read := columns.ReadArrow()
	fields := make([]arrow.Field, read.NumFields())
	for i, field := range read.Fields() {
		field.Type = f.sessionType(columns.Fields[i], field.Type)
		fields[i] = field
	}
	return arrow.NewSchema(fields, nil)
}

// sessionType puts the type of picoseconds where the column has them.
func (f *arrowFormat) sessionType(column *schema.Field, t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.ListType:
		return arrow.ListOfNonNullable(f.sessionType(column, t.Elem()))
	case *arrow.StructType:
		if column.Type != schema.Struct {
			return t
		}
		members := make([]arrow.Field, t.NumFields())
		for i, m := range t.Fields() {
			m.Type = f.sessionType(column.Fields[i], m.Type)
			members[i] = m
		}
		return arrow.StructOf(members...)
	}
	if column.Picos() {
		return f.picos
	}
	return t
}

// convert brings a batch from the store's layout into the session's.
func (f *arrowFormat) convert(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if f.asStored {
		return b, nil
	}
	columns := make([]arrow.Array, b.NumCols())
	for i, column := range f.fields {
		d, err := convertData(b.Column(i).Data(), column, f.target.Field(i).Type)
		if err != nil {
			return nil, err
		}
		columns[i] = array.MakeFromData(d)
	}
	return array.NewRecordBatch(f.target, columns, b.NumRows()), nil
}

func convertData(d arrow.ArrayData, column *schema.Field, target arrow.DataType) (arrow.ArrayData, error) {
	switch t := target.(type) {
	case *arrow.ListType:
		child, err := convertData(d.Children()[0], column, t.Elem())
		if err != nil {
			return nil, err
		}
		return array.NewData(target, d.Len(), d.Buffers(), []arrow.ArrayData{child}, d.NullN(), d.Offset()), nil
	case *arrow.StructType:
		if column.Type != schema.Struct {
			return d, nil
		}
		children := make([]arrow.ArrayData, len(column.Fields))
		for i, member := range column.Fields {
			var err error
			if children[i], err = convertData(d.Children()[i], member, t.Field(i).Type); err != nil {
				return nil, err
			}
		}
		return array.NewData(target, d.Len(), d.Buffers(), children, d.NullN(), d.Offset()), nil
	}
	switch {
	case column.Type == schema.Interval:
		return intervals(d, column)
	case column.Picos() && target.ID() == arrow.TIMESTAMP:
		return timestamps(d, target.(*arrow.TimestampType))
	}
	return d, nil
}

func intervals(d arrow.ArrayData, column *schema.Field) (arrow.ArrayData, error) {
	a := array.NewStructData(d)
	months, days, micros := a.Field(0).(*array.Int32), a.Field(1).(*array.Int32), a.Field(2).(*array.Int64)
	b := array.NewMonthDayNanoIntervalBuilder(memory.DefaultAllocator)
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		if m := micros.Value(i); m > math.MaxInt64/1000 || m < math.MinInt64/1000 {
			return nil, status.Errorf(codes.InvalidArgument,
				"column %s: an INTERVAL of %d microseconds does not fit the nanoseconds of Arrow's month_day_nano", column.Name, m)
		}
		b.Append(arrow.MonthDayNanoInterval{Months: months.Value(i), Days: days.Value(i), Nanoseconds: micros.Value(i) * 1000})
	}
	return b.NewArray().Data(), nil
}

func timestamps(d arrow.ArrayData, target *arrow.TimestampType) (arrow.ArrayData, error) {
	a := array.NewStringData(d)
	b := array.NewTimestampBuilder(memory.DefaultAllocator, target)
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, a.Value(i)[:len("2006-01-02T15:04:05.000000000")]+"Z")
		if err != nil {
			return nil, status.Errorf(codes.Internal, "a TIMESTAMP of picoseconds is held as %q", a.Value(i))
		}
		if target.Unit == arrow.Nanosecond {
			b.Append(arrow.Timestamp(at.UnixNano()))
		} else {
			b.Append(arrow.Timestamp(at.UnixMicro()))
		}
	}
	return b.NewArray().Data(), nil
}
