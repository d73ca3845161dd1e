package avrorow

import (
	"math"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Deserializer turns rows read from BigQuery into maps by the names of the columns, as generic Avro records are in Go. It implements
// row.Deserializer.
//
// Values are those that the columns hold, and NULL is nil:
//
//	BOOL, INT64, FLOAT64         bool, int64, float64
//	STRING, JSON, GEOGRAPHY      string
//	BYTES                        []byte
//	DATE, TIME, DATETIME         civil.Date, civil.Time, civil.DateTime
//	TIMESTAMP                    time.Time in UTC
//	NUMERIC, BIGNUMERIC          *big.Rat
//	STRUCT                       map[string]any
//	RANGE                        map[string]any of start and end, nil where unbounded
//	INTERVAL                     map[string]any of months and days, int32, and microseconds, int64
//	REPEATED                     []any, never nil
//
// A RecordSerializer of the session's own schema (bigquery.ReadSession.AvroSchema) takes them back.
type Deserializer[T any] struct{ record func(fields map[string]any) T }

var _ row.Deserializer[map[string]any] = (*Deserializer[map[string]any])(nil)

// NewDeserializer makes a Deserializer. record makes a record of a row's columns, which are its own to keep.
func NewDeserializer[T any](record func(fields map[string]any) T) *Deserializer[T] {
	return &Deserializer[T]{record}
}

// Deserialize emits one record. An error is a *row.Error of a D kind with the path of the column.
func (d *Deserializer[T]) Deserialize(r *row.Row, emit func(T) error) error {
	fields, e := mapOf(r.Schema.Fields, r.Values)
	if e != nil {
		return e
	}
	return emit(d.record(fields))
}

func damaged(msg string) *row.Error { return &row.Error{Kind: row.KindDecode, Offset: -1, Msg: msg} }

func mapOf(fields []table.Field, values []row.Value) (map[string]any, *row.Error) {
	if len(values) < len(fields) {
		return nil, damaged("the row has fewer values than columns")
	}
	m := make(map[string]any, len(fields))
	for i := range fields {
		v, e := anyOf(&fields[i], &values[i])
		if e != nil {
			return nil, e.Within(fields[i].Name)
		}
		m[fields[i].Name] = v
	}
	return m, nil
}

func anyOf(f *table.Field, v *row.Value) (any, *row.Error) {
	if f.Mode != table.Repeated {
		return oneOf(f, v)
	}
	list := make([]any, len(v.List))
	for i := range v.List {
		var e *row.Error
		if list[i], e = oneOf(f, &v.List[i]); e != nil {
			return nil, e.Element(i)
		}
	}
	return list, nil
}

// oneOf is a value that is no list.
func oneOf(f *table.Field, v *row.Value) (any, *row.Error) {
	if v.Null {
		return nil, nil
	}
	switch f.Type {
	case table.Bool:
		return v.Int != 0, nil
	case table.Int64:
		return v.Int, nil
	case table.Float64:
		return math.Float64frombits(uint64(v.Int)), nil
	case table.Bytes:
		return append([]byte{}, v.Bytes...), nil
	case table.Interval:
		return intervalOf(v)
	case table.Struct, table.Range:
		m, e := mapOf(row.Members(f), v.List)
		if e != nil {
			return nil, e
		}
		return m, nil
	case table.Numeric, table.BigNumeric:
		return ratOf(v)
	case table.Date, table.Time, table.DateTime, table.Timestamp:
		out, err := timeOf(f.Type, v.Int)
		if err != nil {
			e := row.At(err, "", -1)
			e.Kind = row.KindDecode
			return nil, e
		}
		return out, nil
	}
	return string(v.Bytes), nil
}

func timeOf(t table.Type, n int64) (any, error) {
	switch t {
	case table.Date:
		return gotime.DateOf(n)
	case table.Time:
		return gotime.ClockOf(n)
	case table.DateTime:
		return gotime.DateTimeOf(n)
	}
	return gotime.InstantOf(n)
}

func ratOf(v *row.Value) (any, *row.Error) {
	if v.Int < 0 || v.Int > 77 {
		return nil, damaged("a decimal with the scale " + strconv.FormatInt(v.Int, 10))
	}
	s, err := row.ScaledFromBigEndian(v.Bytes)
	if err != nil {
		return nil, damaged("a decimal of more digits than any column has")
	}
	return s.Rat(int(v.Int)), nil
}

func intervalOf(v *row.Value) (any, *row.Error) {
	if len(v.List) != 3 {
		return nil, damaged("an interval without months, days and microseconds")
	}
	months, days := v.List[0].Int, v.List[1].Int
	if int64(int32(months)) != months || int64(int32(days)) != days {
		return nil, damaged("an interval of more months or days than 32 bits count")
	}
	return map[string]any{"months": int32(months), "days": int32(days), "microseconds": v.List[2].Int}, nil
}
