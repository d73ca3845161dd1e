package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/arrowout"
)

// exporter writes what a source reads in one format, and returns how many rows it wrote.
type exporter func(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (rows int64, err error)

// exporters are the formats by name.
func exporters(keys func(*table.Schema) *jsonrow.Keys) map[string]exporter {
	return map[string]exporter{
		"ndjson": func(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (int64, error) {
			return exportNDJSON(ctx, w, from, o, keys)
		},
		"csv":  exportCSV,
		"avro": exportAvro,
		"arrow": func(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (int64, error) {
			if o.Limit > 0 {
				return exportArrow(ctx, w, from, o, arrowout.CutStream)
			}
			return exportArrow(ctx, w, from, o, arrowout.Stream)
		},
		"parquet": func(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (int64, error) {
			return exportArrow(ctx, w, from, o, arrowout.Parquet)
		},
		"table": exportTable,
	}
}

func formatNames(only ...string) []string { return slices.Sorted(slices.Values(only)) }

// bytesOf is a deserializer made of a function that writes a row, for many goroutines.
type bytesOf func(buf []byte, r *row.Row) ([]byte, error)

func (f bytesOf) Deserialize(r *row.Row, emit func([]byte) error) error {
	b, err := f(nil, r)
	if err != nil {
		return err
	}
	return emit(b)
}

// export plans a read, writes the head that its schema tells, and then every row.
func export(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions, each bytesOf, head func(*table.Schema) ([]byte, error)) (rows int64, err error) {
	src, err := bigquery.NewSource[[]byte](from, each, o)
	if err != nil {
		return 0, usage(err)
	}
	session, err := src.Session(ctx)
	if err != nil {
		return 0, err
	}
	h, err := head(session.Schema())
	if err == nil {
		_, err = w.Write(h)
	}
	if err != nil {
		return 0, err
	}
	for b, err := range session.Rows(ctx) {
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// exportNDJSON writes one JSON object a line, NULL columns left out.
func exportNDJSON(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions, keys func(*table.Schema) *jsonrow.Keys) (int64, error) {
	var writer *jsonrow.Writer
	return export(ctx, w, from, o, func(buf []byte, r *row.Row) ([]byte, error) {
		buf, err := writer.AppendJSON(buf, r)
		return append(buf, '\n'), err
	}, func(s *table.Schema) ([]byte, error) {
		writer = jsonrow.NewWriter(jsonrow.WriteOptions{Keys: keys(s)})
		return nil, nil
	})
}

// exportCSV writes a header and a line for each row. NULL is nothing between the commas, lists and STRUCTs are JSON.
func exportCSV(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (int64, error) {
	var cells cellWriter
	return export(ctx, w, from, o, func(buf []byte, r *row.Row) ([]byte, error) {
		record, err := cells.texts(r, "")
		if err != nil {
			return nil, err
		}
		return csvLine(record)
	}, func(s *table.Schema) ([]byte, error) {
		cells = newCellWriter(s)
		return csvLine(names(s))
	})
}

func csvLine(record []string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(record); err != nil {
		return nil, err
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

func names(s *table.Schema) []string {
	all := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		all[i] = f.Name
	}
	return all
}

// cellWriter writes the values of a row as text, each for itself.
type cellWriter struct {
	json    *jsonrow.Writer
	schemas []*table.Schema // one for each column
}

func newCellWriter(s *table.Schema) cellWriter {
	c := cellWriter{json: jsonrow.NewWriter(jsonrow.WriteOptions{Nulls: true})}
	for i := range s.Fields {
		c.schemas = append(c.schemas, &table.Schema{Fields: s.Fields[i : i+1]})
	}
	return c
}

func (c cellWriter) texts(r *row.Row, null string) ([]string, error) {
	all := make([]string, len(r.Values))
	for i := range r.Values {
		doc, err := c.json.AppendJSON(nil, &row.Row{Schema: c.schemas[i], Values: r.Values[i : i+1]})
		if err != nil {
			return nil, err
		}
		var one map[string]json.RawMessage
		if err := json.Unmarshal(doc, &one); err != nil {
			return nil, err
		}
		for _, v := range one {
			if all[i], err = cellText(v, null); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// cellText is a JSON value as a person writes it: strings without quotes.
func cellText(v json.RawMessage, null string) (string, error) {
	switch {
	case string(v) == "null":
		return null, nil
	case len(v) > 0 && v[0] == '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err
	}
	return string(v), nil
}

// widestCell is how much of a value a table on the terminal shows.
const widestCell = 60

// exportTable lays rows out for people to read. It holds them all: it is for results of a size that people read.
func exportTable(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (int64, error) {
	var cells cellWriter
	var schema *table.Schema
	var lines bytes.Buffer
	n, err := export(ctx, &lines, from, o, func(buf []byte, r *row.Row) ([]byte, error) {
		texts, err := cells.texts(r, "NULL")
		if err != nil {
			return nil, err
		}
		for i, t := range texts {
			texts[i] = shown(t)
		}
		line, err := json.Marshal(texts)
		return append(line, '\n'), err
	}, func(s *table.Schema) ([]byte, error) {
		cells, schema = newCellWriter(s), s
		return nil, nil
	})
	if err != nil {
		return n, err
	}
	rows, err := decodeLines(&lines)
	if err != nil {
		return n, err
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

func decodeLines(lines io.Reader) (rows [][]string, err error) {
	d := json.NewDecoder(lines)
	for {
		var r []string
		if err := d.Decode(&r); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
}

// shown keeps a value on one line, and what could steer a terminal out of it.
func shown(s string) string {
	s = oneLine(s)
	if r := []rune(s); len(r) > widestCell {
		return string(r[:widestCell-1]) + "…"
	}
	return s
}

// exportAvro writes an Avro object container file of the service's own blocks, which are neither decoded nor changed.
func exportAvro(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions) (rows int64, err error) {
	src, err := bigquery.NewSource[[]byte](from, bytesOf(func(buf []byte, _ *row.Row) ([]byte, error) { return buf, nil }), o)
	if err != nil {
		return 0, usage(err)
	}
	session, err := src.Session(ctx)
	if err != nil {
		return 0, err
	}
	// The marker between blocks only has to be unlikely in the data; the session's name makes it one of a kind.
	sync := fmt.Appendf(nil, "%016x", fnv64(session.Name()))
	if _, err := w.Write(avroHeader(session.AvroSchema(), sync)); err != nil {
		return 0, err
	}
	for b, err := range session.Blocks(ctx) {
		if err != nil {
			return rows, err
		}
		head := binary.AppendVarint(binary.AppendVarint(nil, b.Rows), int64(len(b.Data)))
		for _, piece := range [][]byte{head, b.Data, sync} {
			if _, err := w.Write(piece); err != nil {
				return rows, err
			}
		}
		rows += b.Rows
	}
	return rows, nil
}

// exportArrow writes the service's Arrow batches to a file.
func exportArrow(ctx context.Context, w io.Writer, from bigquery.Input, o bigquery.SourceOptions,
	write func(io.Writer, []byte, iter.Seq2[arrowout.Batch, error]) (int64, error)) (int64, error) {
	session, err := bigquery.ReadArrow(ctx, from, o)
	var plan *bigquery.PlanError
	switch {
	case err != nil && ctx.Err() == nil && !errors.As(err, &plan):
		return 0, usage(err)
	case err != nil:
		return 0, err
	}
	return write(w, session.Schema(), func(yield func(arrowout.Batch, error) bool) {
		for b, err := range session.Blocks(ctx) {
			if !yield(arrowout.Batch{Data: b.Data, Rows: b.Rows}, err) {
				return
			}
		}
	})
}

// avroHeader is the beginning of a container file without compression (Avro specification, "Object Container Files").
func avroHeader(schema string, sync []byte) []byte {
	b := []byte("Obj\x01")
	b = binary.AppendVarint(b, 2) // entries of the metadata map
	for _, kv := range [][2]string{{"avro.schema", schema}, {"avro.codec", "null"}} {
		for _, s := range kv {
			b = append(binary.AppendVarint(b, int64(len(s))), s...)
		}
	}
	b = append(b, 0)
	return append(b, sync...)
}
