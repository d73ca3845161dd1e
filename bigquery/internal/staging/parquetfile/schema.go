package parquetfile

import (
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/table"
)

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
