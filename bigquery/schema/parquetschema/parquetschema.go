// Package parquetschema turns a table's schema into a Parquet schema and back, losing nothing.
//
// Columns are as load jobs read them; lists have three levels. JSON has its own annotation, which no load job takes for a JSON
// column. What Parquet has no place for lies in the file's metadata, under [table.SchemaKey].
package parquetschema

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Write is the Parquet schema of a table's rows.
func Write(s *table.Schema) *parquet.Schema { return parquet.NewSchema("Row", group(s.Fields)) }

// WriteFile writes a file without rows, which is how Parquet schemas travel. The error may be that of row.CheckSchema.
func WriteFile(w io.Writer, s *table.Schema) error {
	if err := row.CheckSchema(s); err != nil {
		return err
	}
	return parquet.NewGenericWriter[any](w, Write(s), parquet.KeyValueMetadata(table.SchemaKey, string(s.CompactJSON()))).Close()
}

// ordered is a group whose fields stay in their order. The library's own sorts them by name.
type ordered struct {
	parquet.Group
	names []string
}

func group(columns []table.Field) parquet.Node {
	g := ordered{Group: parquet.Group{}}
	for i := range columns {
		g.Group[columns[i].Name] = node(&columns[i])
		g.names = append(g.names, columns[i].Name)
	}
	return g
}

func (g ordered) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, f := range g.Group.Fields() {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(g.names))
	for i, name := range g.names {
		fields[i] = byName[name]
	}
	return fields
}

func node(c *table.Field) parquet.Node {
	n := value(c)
	switch c.Mode {
	case table.Repeated:
		return parquet.List(n)
	case table.Nullable:
		return parquet.Optional(n)
	}
	return n
}

func value(c *table.Field) parquet.Node {
	switch c.Type {
	case table.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case table.Int64:
		return parquet.Leaf(parquet.Int64Type)
	case table.Float64:
		return parquet.Leaf(parquet.DoubleType)
	case table.Bytes:
		return plain(parquet.Leaf(parquet.ByteArrayType))
	case table.JSON:
		return plain(parquet.JSON())
	case table.Date:
		return parquet.Date()
	case table.Time:
		return parquet.TimeAdjusted(parquet.Microsecond, true)
	case table.DateTime:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case table.Timestamp:
		return parquet.TimestampAdjusted(parquet.Microsecond, true)
	case table.Numeric, table.BigNumeric:
		d := row.DecimalOf(c)
		return plain(parquet.Decimal(d.FractionDigits(), d.Precision(), parquet.ByteArrayType))
	case table.Struct, table.Range:
		return group(row.Members(c))
	}
	return plain(parquet.String())
}

// plain undoes the library's choice of encoding, which not every reader knows.
func plain(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.Plain) }
