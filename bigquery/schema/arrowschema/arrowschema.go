// Package arrowschema turns a table's schema into an Arrow schema and back, losing nothing.
//
// Columns are of the types that the Storage Read API has for them; JSON, GEOGRAPHY and RANGE are its extension types. What Arrow
// has no place for lies in the schema's metadata, under [table.SchemaKey].
package arrowschema

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Write is the Arrow schema of a table's rows. The error is that of row.CheckSchema.
func Write(s *table.Schema) (*arrow.Schema, error) {
	if err := row.CheckSchema(s); err != nil {
		return nil, err
	}
	m := arrow.NewMetadata([]string{table.SchemaKey}, []string{string(s.CompactJSON())})
	return arrow.NewSchema(fields(s.Fields), &m), nil
}

// Read is the table's schema that an Arrow schema was written for. One that Write did not write, or that was changed since, is
// read as package arrowrow reads it; see there for the errors. Columns that are never null are REQUIRED.
func Read(a *arrow.Schema) (*table.Schema, error) {
	metadata := a.Metadata()
	if text, ok := metadata.GetValue(table.SchemaKey); ok {
		if s, err := table.ParseSchemaJSON([]byte(text)); err == nil && same(a.Fields(), fields(s.Fields)) {
			return s, nil
		}
	}
	return arrowrow.SchemaOf(a, arrowrow.Options{DeriveRequired: true})
}

func same(a, b []arrow.Field) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

func fields(columns []table.Field) []arrow.Field {
	out := make([]arrow.Field, len(columns))
	for i := range columns {
		c := &columns[i]
		out[i] = value(c)
		out[i].Name, out[i].Nullable = c.Name, c.Mode == table.Nullable
		if c.Mode == table.Repeated {
			element := out[i]
			element.Name = "item"
			out[i] = arrow.Field{Name: c.Name, Type: arrow.ListOfField(element)}
		}
	}
	return out
}

var types = map[table.Type]arrow.DataType{
	table.Bool:      arrow.FixedWidthTypes.Boolean,
	table.Int64:     arrow.PrimitiveTypes.Int64,
	table.Float64:   arrow.PrimitiveTypes.Float64,
	table.String:    arrow.BinaryTypes.String,
	table.JSON:      arrow.BinaryTypes.String,
	table.Geography: arrow.BinaryTypes.String,
	table.Bytes:     arrow.BinaryTypes.Binary,
	table.Date:      arrow.FixedWidthTypes.Date32,
	table.Time:      arrow.FixedWidthTypes.Time64us,
	table.DateTime:  &arrow.TimestampType{Unit: arrow.Microsecond},
	table.Timestamp: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	table.Interval:  arrow.FixedWidthTypes.MonthDayNanoInterval,
}

// value is a column without its name and mode.
func value(c *table.Field) arrow.Field {
	switch c.Type {
	case table.Struct:
		return arrow.Field{Type: arrow.StructOf(fields(c.Fields)...)}
	case table.Range:
		ends := arrow.StructOf(arrow.Field{Name: "start", Type: types[c.Range], Nullable: true}, arrow.Field{Name: "end", Type: types[c.Range], Nullable: true})
		return extended(ends, "google:sqlType:range")
	case table.JSON:
		return extended(types[c.Type], "google:sqlType:json")
	case table.Geography:
		return extended(types[c.Type], "google:sqlType:geography")
	case table.Numeric, table.BigNumeric:
		return arrow.Field{Type: decimal(c)}
	}
	return arrow.Field{Type: types[c.Type]}
}

func extended(t arrow.DataType, name string) arrow.Field {
	return arrow.Field{Type: t, Metadata: arrow.NewMetadata([]string{"ARROW:extension:name"}, []string{name})}
}

// decimal has 76 digits where BIGNUMERIC has some numbers of 77: Arrow ends there.
func decimal(c *table.Field) arrow.DataType {
	d := row.DecimalOf(c)
	precision, scale := int32(min(d.Precision(), 76)), int32(d.FractionDigits())
	if c.Type == table.Numeric {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: precision, Scale: scale}
}
