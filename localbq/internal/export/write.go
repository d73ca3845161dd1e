package export

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Formats of files.
const (
	CSV     = "CSV"
	JSON    = "NEWLINE_DELIMITED_JSON"
	Avro    = "AVRO"
	Parquet = "PARQUET"
)

// Options are those of an extract job.
type Options struct {
	Format      string
	Compression string // NONE, GZIP, DEFLATE, SNAPPY, ZSTD, as far as the format has it
	Delimiter   string // of CSV, one character; "" is a comma
	NoHeader    bool   // of CSV
	Logical     bool   // useAvroLogicalTypes
}

// compressions are what each format may be packed with (BigQuery documentation, "Export formats and compression types").
var compressions = map[string]map[string]bool{
	CSV:     {"NONE": true, "GZIP": true},
	JSON:    {"NONE": true, "GZIP": true},
	Avro:    {"NONE": true, "DEFLATE": true, "SNAPPY": true},
	Parquet: {"NONE": true, "GZIP": true, "SNAPPY": true, "ZSTD": true},
}

// Check refuses options that no format has, and columns that the format cannot hold.
func (o *Options) Check() error {
	known := compressions[o.Format]
	switch {
	case known == nil:
		return fmt.Errorf("Invalid value for destinationFormat: %s is not a valid value", o.Format)
	case !known[o.Compression]:
		return fmt.Errorf("Invalid value for compression: %s cannot be used with %s", o.Compression, o.Format)
	case len(o.Delimiter) > 1 && o.Delimiter != `\t` && o.Delimiter != "tab":
		return fmt.Errorf("fieldDelimiter %q: expected one character of one byte", o.Delimiter)
	}
	return nil
}

// CheckColumns refuses columns that the format cannot hold.
func (o *Options) CheckColumns(s *schema.Schema) error {
	if s == nil || len(s.Fields) == 0 {
		return errors.New("Table has no schema")
	}
	if o.Format != CSV {
		return nil
	}
	for _, f := range s.Fields {
		if f.Mode == schema.Repeated || f.Type == schema.Struct {
			return fmt.Errorf("Operation cannot be performed on a nested schema. Field: %s", f.Name)
		}
	}
	return nil
}

// Write writes the rows of batches, which are in the layout of the store.
func Write(w io.Writer, s *schema.Schema, batches []arrow.RecordBatch, o Options) error {
	switch o.Format {
	case Avro:
		return writeAvro(w, s, batches, o)
	case Parquet:
		return writeParquet(w, s, batches, o)
	}
	if o.Compression != "GZIP" {
		return writeText(w, s, batches, o)
	}
	z := gzip.NewWriter(w)
	return errors.Join(writeText(z, s, batches, o), z.Close())
}

// flushBytes is how much text is gathered before it is written.
const flushBytes = 1 << 20

func writeText(w io.Writer, s *schema.Schema, batches []arrow.RecordBatch, o Options) error {
	c := newCSV(o)
	var buf []byte
	if o.Format == CSV && !o.NoHeader {
		buf = c.header(buf, s)
	}
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			if o.Format == CSV {
				buf = c.row(buf, s, b, i)
			} else {
				buf = append(appendObject(buf, s.Fields, b.Columns(), i), '\n')
			}
			if len(buf) < flushBytes {
				continue
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}
