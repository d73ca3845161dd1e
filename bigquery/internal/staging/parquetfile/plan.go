package parquetfile

import "github.com/millrace-dev/millrace/bigquery/internal/staging"

// column is where a column of the table stands in the file.
type column struct {
	*staging.Column
	first, last int      // its leaves: one, or those of its members; last is behind them
	repetition  int      // level of an element that is not the first
	definition  int      // level of a value that is there
	members     []column // of a STRUCT
}

// compile gives leaves their numbers, and columns the levels that say what is there and what repeats (parquet-format,
// README.md, "Nested Encoding").
func compile(m *staging.Message, leaves *int, repetition, definition int) []column {
	columns := make([]column, len(m.Columns))
	for i := range columns {
		c := &columns[i]
		c.Column, c.first = &m.Columns[i], *leaves
		c.repetition, c.definition = repetition, definition
		if c.Repeated() {
			c.repetition++
		}
		if !c.Required() {
			c.definition++
		}
		if c.Message != nil {
			c.members = compile(c.Message, leaves, c.repetition, c.definition)
		} else {
			*leaves++
		}
		c.last = *leaves
	}
	return columns
}
