package parquetfile

import (
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// boundless finds the columns whose smallest and largest values must not be written: decimals are bytes, which the library
// would compare as text, and readers skip what lies outside the bounds. Text and bytes are written without them as well: each page and
// row group would have two more of its longest values, and load jobs read every row anyway.
func boundless(m *staging.Message, path []string) (paths [][]string) {
	for i := range m.Columns {
		c := &m.Columns[i]
		at := append(append([]string(nil), path...), c.Field.Name)
		if c.Repeated() {
			at = append(at, "list", "element")
		}
		switch c.Field.Type {
		case table.Numeric, table.BigNumeric, table.String, table.Bytes, table.Geography:
			paths = append(paths, at)
		case table.Struct:
			paths = append(paths, boundless(c.Message, at)...)
		}
	}
	return paths
}
