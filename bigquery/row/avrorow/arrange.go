package avrorow

import (
	"encoding/json"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// arrange turns a record's schema into one whose fields stand as a table's columns do, so that the plan of reading one as the
// other fills the table. derived are the columns that the schema alone would make.
func arrange(s *avro.Schema, derived, columns []table.Field, ignoreUnknown bool) (*avro.Schema, *row.Error) {
	out := &avro.Schema{Kind: avro.Record, Name: s.Name, Fields: make([]avro.Field, len(columns))}
	// No field is called like this: a column that none fills is null.
	for k := range columns {
		out.Fields[k] = avro.Field{Name: "\x00" + columns[k].Name, Type: &avro.Schema{Kind: avro.Null}, Default: json.RawMessage("null")}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		k := columnIndex(columns, derived[i].Name)
		if k < 0 {
			if ignoreUnknown {
				continue
			}
			return nil, fault(row.KindSchema, f.Name, "the table has no such column: add it, or ignore fields without one")
		}
		t, e := arrangeField(f.Type, &derived[i], &columns[k], ignoreUnknown)
		if e != nil {
			return nil, e.Within(f.Name)
		}
		out.Fields[k] = avro.Field{Name: f.Name, Type: t}
	}
	for k := range columns {
		if out.Fields[k].Default != nil && columns[k].Mode == table.Required {
			return nil, fault(row.KindSchema, columns[k].Name, "the column is REQUIRED, and the records have no field of its name")
		}
	}
	return out, nil
}

func columnIndex(columns []table.Field, name string) int {
	for k := range columns {
		if table.FoldName(columns[k].Name) == table.FoldName(name) {
			return k
		}
	}
	return -1
}

func arrangeField(t *avro.Schema, derived, c *table.Field, ignoreUnknown bool) (*avro.Schema, *row.Error) {
	if (derived.Mode == table.Repeated) != (c.Mode == table.Repeated) || !fills(derived.Type, c.Type) {
		return nil, fault(row.KindSchema, "", "the column is "+spelledType(c)+", and the field makes "+spelledType(derived))
	}
	inner, _, _ := single(t)
	switch {
	case c.Type != table.Struct:
		return t, nil
	case inner.Kind == avro.Map:
		return arrangeMap(inner, derived, c, ignoreUnknown)
	case inner.Kind == avro.Array:
		items, _, _ := single(inner.Items)
		arranged, e := arrange(items, derived.Fields, c.Fields, ignoreUnknown)
		return &avro.Schema{Kind: avro.Array, Items: arranged}, e
	}
	return arrange(inner, derived.Fields, c.Fields, ignoreUnknown)
}

// arrangeMap takes the columns key and value, in this order, as maps are written.
func arrangeMap(t *avro.Schema, derived, c *table.Field, ignoreUnknown bool) (*avro.Schema, *row.Error) {
	if len(c.Fields) != 2 || columnIndex(c.Fields, "key") != 0 || columnIndex(c.Fields, "value") != 1 || c.Fields[0].Type != table.String {
		return nil, fault(row.KindSchema, "", "the field is a map: expected the columns key, which is STRING, and value")
	}
	values, e := arrangeField(t.Values, &derived.Fields[1], &c.Fields[1], ignoreUnknown)
	if e != nil {
		return nil, e.Within("value")
	}
	return &avro.Schema{Kind: avro.Map, Values: values}, nil
}

// fills says whether values of a derived type are values of a column.
func fills(derived, column table.Type) bool {
	switch column {
	case table.JSON, table.Geography:
		return derived == table.String || derived == column
	case table.Numeric, table.BigNumeric:
		return derived == table.Numeric || derived == table.BigNumeric
	}
	return derived == column
}

func spelledType(f *table.Field) string {
	if f.Mode == table.Repeated {
		return "ARRAY<" + f.Type.String() + ">"
	}
	return f.Type.String()
}
