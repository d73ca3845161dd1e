package staging

import (
	"context"
	"log/slog"
	"sync"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Format is what a staged file is written as. Its order and names are those of plans and committables.
type Format = loadplan.Format

// The formats that this package and its neighbours write.
const (
	Avro    = loadplan.Avro
	Parquet = loadplan.Parquet
	JSONL   = loadplan.JSONL
	CSV     = loadplan.CSV
	Custom  = loadplan.Custom
)

// Load is what a load job must be told about files of a format. It always carries the schema: a load that guesses makes
// NUMERIC of every decimal and NULLABLE of every column.
type Load struct {
	SourceFormat string
	Schema       *table.Schema
	// UseAvroLogicalTypes makes dates of dates. Without it they load as the integers they are stored as.
	UseAvroLogicalTypes bool
	// EnableListInference makes arrays of lists. Without it, REPEATED columns load empty, with no error.
	EnableListInference bool
	CSV                 *CSVLoad // of CSV files
}

// CSVLoad is what a load job is told about CSV files (BigQuery REST reference, JobConfigurationLoad). What is empty is left to the
// service.
type CSVLoad struct {
	FieldDelimiter, Encoding, NullMarker string
	Quote                                *string
	SkipLeadingRows                      int64
	AllowQuotedNewlines, AllowJaggedRows bool
	PreserveASCIIControlCharacters       bool
}

// LoadOf is what a load job of a format must be told. What it is told of a custom one is CustomFiles.Load.
func LoadOf(f Format, s *table.Schema) Load {
	l := Load{SourceFormat: f.String(), Schema: s, UseAvroLogicalTypes: f == Avro, EnableListInference: f == Parquet}
	switch f {
	case JSONL:
		l.SourceFormat = "NEWLINE_DELIMITED_JSON"
	case CSV:
		l.CSV = &CSVLoad{NullMarker: csvNull, AllowQuotedNewlines: true, PreserveASCIIControlCharacters: true}
	}
	return l
}

// Choice decides what the files of each destination are written as. It may be used from many goroutines.
type Choice struct {
	want Format

	mu   sync.Mutex // guards said
	said map[table.Destination]bool
}

// NewChoice prefers a format.
func NewChoice(want Format) *Choice {
	return &Choice{want: want, said: map[table.Destination]bool{}}
}

// Of is the format for a destination with that schema. Parquet has no way into a JSON column, at any depth: a load job that
// names one is refused. Nor is it known to have one into DATETIME: both of its timestamps are documented as TIMESTAMP. Such
// tables are staged as Avro. log hears of destinations that get another format than the preferred one, once for each.
func (c *Choice) Of(dst table.Destination, s *table.Schema, log *slog.Logger) Format {
	if c.want != Parquet {
		return c.want
	}
	path, t := avroOnly(s.Fields, "")
	if path == "" {
		return c.want
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.said[dst] {
		c.said[dst] = true
		log.LogAttrs(context.Background(), slog.LevelInfo, "files are staged as Avro: Parquet cannot fill a column of this table",
			slog.String("destination", dst.String()), slog.String("column", path), slog.String("type", t.String()))
	}
	return Avro
}

// avroOnly finds the first column that Parquet does not reach; "" is none.
func avroOnly(fields []table.Field, parent string) (path string, t table.Type) {
	for i := range fields {
		f := &fields[i]
		path = table.Join(parent, f.Name)
		switch f.Type {
		case table.JSON, table.DateTime:
			return path, f.Type
		case table.Struct:
			if path, t = avroOnly(f.Fields, path); path != "" {
				return path, t
			}
		}
	}
	return "", 0
}
