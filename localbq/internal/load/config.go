package load

import (
	"io"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/load/csvfile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Formats of files.
const (
	Avro    = "AVRO"
	Parquet = "PARQUET"
	JSON    = "NEWLINE_DELIMITED_JSON"
	CSV     = "CSV"
)

// Config is what a job asks for.
type Config struct {
	Format string
	// Schema is what the job says the columns are; nil leaves that to the table, the files or a guess.
	Schema *schema.Schema
	// Autodetect guesses the columns of JSON and CSV.
	Autodetect bool
	// Table names the table as messages do, p:d.t; Existing is its schema, nil where it has none or the job replaces it.
	Table    string
	Existing *schema.Schema
	// AddFields and RelaxFields are schemaUpdateOptions.
	AddFields, RelaxFields bool
	MaxBadRecords          int64
	// IgnoreUnknown leaves values out that no column takes, of JSON and CSV; the other formats always do.
	IgnoreUnknown bool
	Logical       bool          // useAvroLogicalTypes
	Decimals      []schema.Type // decimalTargetTypes
	ListInference bool          // parquetOptions.enableListInference
	EnumAsString  bool          // parquetOptions.enumAsString
	CSV           csvfile.Options
	Now           time.Time
}

// Source is a file.
type Source struct {
	URI  string
	Size int64
	Open func() (File, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
}
