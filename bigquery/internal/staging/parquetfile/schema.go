package parquetfile

import (
	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// schema is the file's schema: the columns in their order, optional where NULLABLE, and lists of three levels where
// REPEATED (parquet-format, LogicalTypes.md, "Lists").
func schema(p *staging.Plan) *parquet.Schema { return parquet.NewSchema("Row", group(p.Root)) }

// ordered is a group whose fields stay in their order. The library's own sorts them by name.
type ordered struct {
	parquet.Group
	names []string
}

func group(m *staging.Message) parquet.Node {
	g := ordered{Group: parquet.Group{}}
	for i := range m.Columns {
		c := &m.Columns[i]
		g.Group[c.Field.Name] = node(c)
		g.names = append(g.names, c.Field.Name)
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

func node(c *staging.Column) parquet.Node {
	n := value(c)
	switch c.Field.Mode {
	case table.Repeated:
		return parquet.List(n)
	case table.Nullable:
		return parquet.Optional(n)
	}
	return n
}

func value(c *staging.Column) parquet.Node {
	switch c.Field.Type {
	case table.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case table.Int64:
		return parquet.Leaf(parquet.Int64Type)
	case table.Float64:
		return parquet.Leaf(parquet.DoubleType)
	case table.Bytes:
		return plain(parquet.Leaf(parquet.ByteArrayType))
	case table.Date:
		return parquet.Date()
	case table.Time:
		return parquet.TimeAdjusted(parquet.Microsecond, true)
	case table.DateTime:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case table.Timestamp:
		return parquet.TimestampAdjusted(parquet.Microsecond, true)
	case table.Numeric, table.BigNumeric:
		return plain(parquet.Decimal(c.Decimal.FractionDigits(), c.Decimal.Precision(), parquet.ByteArrayType))
	case table.Struct:
		return group(c.Message)
	}
	return plain(parquet.String())
}

// plain undoes the library's choice of encoding, which not every reader knows.
func plain(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.Plain) }

// boundless finds the columns whose smallest and largest values must not be written: decimals are bytes, which the library
// would compare as text, and readers skip what lies outside the bounds.
func boundless(m *staging.Message, path []string) (paths [][]string) {
	for i := range m.Columns {
		c := &m.Columns[i]
		at := append(append([]string(nil), path...), c.Field.Name)
		if c.Repeated() {
			at = append(at, "list", "element")
		}
		switch c.Field.Type {
		case table.Numeric, table.BigNumeric:
			paths = append(paths, at)
		case table.Struct:
			paths = append(paths, boundless(c.Message, at)...)
		}
	}
	return paths
}
