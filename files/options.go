package files

import (
	"errors"
	"fmt"
)

// Options tune a Source. The zero value is the default.
type Options struct {
	// Format is how records lie in the files. The zero value is NDJSON.
	Format Format

	// MaxRecordBytes is the longest record that is read, 64 MiB by default (BigQuery takes rows of at most 10 MB). A
	// longer one becomes a record with Err set, holding its first 4 KiB, and costs no more memory than MaxRecordBytes.
	MaxRecordBytes int

	// SplitBytes is the size of the byte ranges an uncompressed file is read in, 64 MiB by default.
	SplitBytes int64

	// FetchBytes and FetchRecords bound what one fetch hands over: 1 MiB and 10,000 by default. A lane holds FetchBytes,
	// or one record where that is longer, and as much again while it makes room.
	FetchBytes   int
	FetchRecords int
}

// Format is how records lie in a file.
type Format uint8

// NDJSON is one JSON object a line.
const NDJSON Format = 0

func (f Format) String() string {
	if f == NDJSON {
		return "ndjson"
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat reads a format's name.
func ParseFormat(s string) (Format, error) {
	if s == "ndjson" {
		return NDJSON, nil
	}
	return 0, fmt.Errorf("unknown format %q: expected ndjson", s)
}

func (o Options) resolve() (Options, error) {
	var errs []error
	if o.Format != NDJSON {
		errs = append(errs, fmt.Errorf("Format %s: expected ndjson", o.Format))
	}
	orDefault(&errs, "MaxRecordBytes", &o.MaxRecordBytes, 64<<20)
	orDefault(&errs, "SplitBytes", &o.SplitBytes, 64<<20)
	orDefault(&errs, "FetchBytes", &o.FetchBytes, 1<<20)
	orDefault(&errs, "FetchRecords", &o.FetchRecords, 10_000)
	return o, errors.Join(errs...)
}

func orDefault[N int | int64](errs *[]error, name string, v *N, def N) {
	switch {
	case *v < 0:
		*errs = append(*errs, fmt.Errorf("%s %d: expected a positive number, or 0 for the default of %d", name, *v, def))
	case *v == 0:
		*v = def
	}
}
