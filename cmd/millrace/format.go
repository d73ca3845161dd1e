package main

import (
	"context"
	"io"
	"slices"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func formatNames(only ...string) []string { return slices.Sorted(slices.Values(only)) }

// exportThrough writes what a source reads to w, and returns how many rows it wrote.
func exportThrough(ctx context.Context, w io.Writer, from bigquery.Input, o export.Options) (int64, error) {
	x, err := export.OpenWriter(ctx, from, w, o)
	if err != nil {
		return 0, readFault(&readFlags{}, err)
	}
	defer x.Close()
	result, err := x.Run(ctx)
	return result.Rows, err
}

// widestCell is how much of a value a table on the terminal shows.
const widestCell = 60

// cellsOf is a deserializer of rows for people to read.
type cellsOf struct {
	texts func(*table.Schema) export.Texts
}

func (c cellsOf) Deserialize(r *row.Row, emit func([]string) error) error {
	texts := c.texts(r.Schema)
	cells := make([]string, len(r.Values))
	for i := range r.Values {
		text, null, err := texts.Append(nil, r, i)
		if err != nil {
			return err
		}
		if cells[i] = shown(string(text)); null {
			cells[i] = "NULL"
		}
	}
	return emit(cells)
}

// exportTable lays rows out for people to read, as many as most, 0 is all; it returns how many came. It holds them all: it is for
// results of a size that people read.
func exportTable(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions, most int64) (n int64, err error) {
	o.MaxStreamCount = 1
	var texts export.Texts
	src, err := bigquery.NewSource[[]string](from, cellsOf{func(*table.Schema) export.Texts { return texts }}, o)
	if err != nil {
		return 0, usage(err)
	}
	session, err := src.Session(ctx)
	if err != nil {
		return 0, err
	}
	schema := session.Schema()
	texts = export.NewTexts(schema)
	var rows [][]string
	for cells, err := range session.Rows(ctx) {
		if err != nil {
			return n, err
		}
		if n++; most == 0 || n <= most {
			rows = append(rows, cells)
		}
	}
	right := map[int]bool{}
	for i, f := range schema.Fields {
		switch f.Type {
		case table.Int64, table.Float64, table.Numeric, table.BigNumeric:
			right[i] = f.Mode != table.Repeated
		}
	}
	_, err = io.WriteString(w, harmless(columns(names(schema), rows, right)))
	return n, err
}

func names(s *table.Schema) []string {
	all := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		all[i] = f.Name
	}
	return all
}

// shown keeps a value on one line, and what could steer a terminal out of it.
func shown(s string) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > widestCell {
		return string(r[:widestCell-1]) + "…"
	}
	return s
}
