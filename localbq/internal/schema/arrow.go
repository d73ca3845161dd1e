package schema

import "github.com/apache/arrow-go/v18/arrow"

// Keys of Arrow field metadata that say what SQL type an Arrow type stands for where the Arrow type alone does not
// (BigQuery documentation, "Arrow schema details").
const (
	extensionName     = "ARROW:extension:name"
	extensionMetadata = "ARROW:extension:metadata"
)

// IntervalStored is how the store keeps an INTERVAL. Arrow's month-day-nano cannot hold what BigQuery can: 87,840,000
// hours are 3.2e20 nanoseconds.
var IntervalStored = arrow.StructOf(
	arrow.Field{Name: "months", Type: arrow.PrimitiveTypes.Int32},
	arrow.Field{Name: "days", Type: arrow.PrimitiveTypes.Int32},
	arrow.Field{Name: "micros", Type: arrow.PrimitiveTypes.Int64},
)

// Arrow is the schema of the record batches the store holds. It is the Arrow schema of a Storage Read session but for
// two types: an INTERVAL is IntervalStored, and a TIMESTAMP of picoseconds is text of one fixed width,
// 2006-01-02T15:04:05.000000000000Z, which sorts as the instants do. A nil schema has no fields.
func (s *Schema) Arrow() *arrow.Schema { return s.arrow(true) }

// ReadArrow is the schema of a Storage Read session in Arrow format: Arrow, with INTERVAL as month-day-nano and a
// TIMESTAMP of picoseconds as microseconds.
func (s *Schema) ReadArrow() *arrow.Schema { return s.arrow(false) }

func (s *Schema) arrow(stored bool) *arrow.Schema {
	var fields []arrow.Field
	if s != nil {
		fields = arrowFields(s.Fields, stored)
	}
	return arrow.NewSchema(fields, nil)
}

func arrowFields(fields []*Field, stored bool) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = f.arrow(stored)
	}
	return out
}

func (f *Field) arrow(stored bool) arrow.Field {
	a := arrow.Field{Name: f.Name, Type: f.arrowType(stored), Nullable: f.Mode == Nullable, Metadata: f.arrowMetadata()}
	if f.Mode == Repeated {
		a.Type = arrow.ListOfNonNullable(a.Type)
	}
	return a
}

func (f *Field) arrowType(stored bool) arrow.DataType {
	switch f.Type {
	case Bool:
		return arrow.FixedWidthTypes.Boolean
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Float64:
		return arrow.PrimitiveTypes.Float64
	case Numeric:
		p, s := f.Decimals()
		return &arrow.Decimal128Type{Precision: p, Scale: s}
	case BigNumeric:
		p, s := f.Decimals()
		return &arrow.Decimal256Type{Precision: p, Scale: s}
	case Bytes:
		return arrow.BinaryTypes.Binary
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Time:
		return arrow.FixedWidthTypes.Time64us
	case DateTime:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case Timestamp:
		if stored && f.Picos() {
			return arrow.BinaryTypes.String
		}
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case Interval:
		if stored {
			return IntervalStored
		}
		return arrow.FixedWidthTypes.MonthDayNanoInterval
	case Range:
		end := (&Field{Type: f.RangeElement}).arrowType(stored)
		return arrow.StructOf(arrow.Field{Name: "start", Type: end, Nullable: true}, arrow.Field{Name: "end", Type: end, Nullable: true})
	case Struct:
		return arrow.StructOf(arrowFields(f.Fields, stored)...)
	default: // String, Geography, JSON
		return arrow.BinaryTypes.String
	}
}

func (f *Field) arrowMetadata() arrow.Metadata {
	switch f.Type {
	case DateTime:
		return extension("google:sqlType:datetime")
	case JSON:
		return extension("google:sqlType:json")
	case Geography:
		return arrow.NewMetadata([]string{extensionName, extensionMetadata}, []string{"google:sqlType:geography", `{"encoding": "WKT"}`})
	case Interval:
		return extension("google:sqlType:interval")
	case Range:
		return extension("google:sqlType:range")
	}
	return arrow.Metadata{}
}

func extension(name string) arrow.Metadata {
	return arrow.NewMetadata([]string{extensionName}, []string{name})
}
