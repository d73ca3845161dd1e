package files

import (
	"errors"
	"fmt"
	"strings"
)

// Options tune a Source. The zero value is the default.
type Options struct {
	// Format is how records lie in the files. The zero value is NDJSON.
	Format Format

	// CSV says more about files of the format CSV.
	CSV CSVOptions
	// Container opens files of the format Parquet, which are containers.
	Container OpenContainer

	// MaxRecordBytes is the longest record that is read, 64 MiB by default (BigQuery takes rows of at most 10 MB). A
	// longer one becomes a record with Err set, holding its first 4 KiB, and costs no more memory than MaxRecordBytes.
	MaxRecordBytes int

	// MaxBlockBytes is the largest block of an Avro file that is read, in bytes as stored or unpacked, 64 MiB by default. A larger
	// one ends the job: small files can hold blocks that unpack to any size.
	MaxBlockBytes int

	// SplitBytes is the size of the byte ranges an uncompressed file is read in, 64 MiB by default.
	SplitBytes int64

	// FetchBytes and FetchRecords bound what one fetch hands over: 1 MiB and 10,000 by default. A lane holds FetchBytes,
	// or one record where that is longer, and as much again while it makes room.
	FetchBytes   int
	FetchRecords int
}

// Format is how records lie in a file.
type Format uint8

const (
	NDJSON   Format = iota // one JSON object a line
	CSV                    // cells between delimiters, records between line ends that are not quoted
	Parquet                // batches of rows in a file that Options.Container opens
	Avro                   // object container files
	Protobuf               // protobuf messages, each with its length before it as a varint
)

var formatNames = [...]string{"ndjson", "csv", "parquet", "avro", "protobuf"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat reads a format's name.
func ParseFormat(s string) (Format, error) {
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("unknown format %q: expected one of %s", s, strings.Join(formatNames[:], ", "))
}

func (o Options) resolve() (Options, error) {
	var errs []error
	switch {
	case int(o.Format) >= len(formatNames):
		errs = append(errs, fmt.Errorf("Format %s: expected one of %s", o.Format, strings.Join(formatNames[:], ", ")))
	case (o.Format == Parquet) != (o.Container != nil):
		errs = append(errs, fmt.Errorf("Format %s: expected a Container with Parquet, and with no other format", o.Format))
	case o.Format == CSV:
		errs = append(errs, o.CSV.resolve())
	}
	orDefault(&errs, "MaxRecordBytes", &o.MaxRecordBytes, 64<<20)
	orDefault(&errs, "MaxBlockBytes", &o.MaxBlockBytes, 64<<20)
	orDefault(&errs, "SplitBytes", &o.SplitBytes, 64<<20)
	orDefault(&errs, "FetchBytes", &o.FetchBytes, 1<<20)
	orDefault(&errs, "FetchRecords", &o.FetchRecords, 10_000)
	return o, errors.Join(errs...)
}

// ender finds the ends of records of the format.
func (o *Options) ender() ender {
	if o.Format == CSV && !o.CSV.NoQuotes {
		return quoteEnder{o.CSV.Delimiter, o.CSV.Quote}
	}
	return lineEnder{}
}

// ranges says whether a file can be read in ranges of bytes: whether a line end ends a record wherever it stands.
func (o *Options) ranges() bool {
	_, lines := o.ender().(lineEnder)
	return lines && o.Container == nil && o.Format != Protobuf
}

// preamble is how many records at the beginning of a file are none.
func (o *Options) preamble() int {
	if o.Format == CSV {
		return o.CSV.preamble()
	}
	return 0
}

func orDefault[N int | int64](errs *[]error, name string, v *N, def N) {
	switch {
	case *v < 0:
		*errs = append(*errs, fmt.Errorf("%s %d: expected a positive number, or 0 for the default of %d", name, *v, def))
	case *v == 0:
		*v = def
	}
}
