package load

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/load/avrofile"
	"github.com/millrace-dev/millrace/localbq/internal/load/csvfile"
	"github.com/millrace-dev/millrace/localbq/internal/load/jsonfile"
	"github.com/millrace-dev/millrace/localbq/internal/load/parquetfile"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Result is the rows of a job, ready to be written.
type Result struct {
	Schema  *schema.Schema // of the batches
	Batches []arrow.RecordBatch
	Rows    int64
	Bad     int64   // records left out
	Errors  []error // why, the first few
	Bytes   int64   // of the files
}

// maxErrors is how many bad records a job tells of.
const maxErrors = 100

// reader reads the records of one file.
type reader interface {
	Next() (r column.Record, bad, err error)
	Position() string
}

// typed is a reader of a file that knows its types.
type typed interface {
	reader
	Schema() *schema.Schema
	Check(*schema.Schema) error
}

// Run reads all files. An error is the job's, and a refusal.
func Run(ctx context.Context, c Config, sources []Source) (*Result, error) {
	j := &job{Config: c, out: &Result{}}
	for _, s := range sources {
		j.out.Bytes += s.Size
	}
	if err := j.settle(sources); err != nil {
		return nil, err
	}
	var err error
	if j.builder, err = column.New(j.out.Schema, column.Options{Now: c.Now, KnownOnly: c.Format == JSON && !c.IgnoreUnknown}); err != nil {
		return nil, refusal.New(refusal.Invalid, "%v", err)
	}
	for _, s := range sources {
		if err := j.file(ctx, s); err != nil {
			return nil, err
		}
	}
	if j.builder.Rows() > 0 {
		j.take()
	}
	return j.out, nil
}

type job struct {
	Config
	out     *Result
	builder *column.Builder
}

func (j *job) take() {
	b := j.builder.Take()
	j.out.Rows += b.NumRows()
	j.out.Batches = append(j.out.Batches, b)
}

func failed(s Source, err error) error {
	if refusal.Of(err) != nil {
		return err
	}
	return refusal.New(refusal.Invalid, "Error while reading data, error message: %v File: %s", err, s.URI)
}

// file reads one file.
func (j *job) file(ctx context.Context, s Source) (err error) {
	f, err := s.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, end, err := j.open(f, s)
	if err != nil {
		return failed(s, err)
	}
	defer end()
	if t, ok := r.(typed); ok {
		if err := t.Check(j.out.Schema); err != nil {
			return failed(s, err)
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		record, bad, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed(s, err)
		}
		if bad == nil {
			bad = j.builder.Add(record)
		}
		if bad != nil {
			if err := j.refuse(s, r, bad); err != nil {
				return err
			}
			continue
		}
		if j.builder.Full() {
			j.take()
		}
	}
}

// refuse counts a bad record, and fails when there are too many.
func (j *job) refuse(s Source, r reader, bad error) error {
	err := refusal.New(refusal.Invalid, "Error while reading data, error message: %v File: %s", bad, s.URI)
	j.out.Bad++
	if len(j.out.Errors) < maxErrors {
		j.out.Errors = append(j.out.Errors, err)
	}
	if j.out.Bad <= j.MaxBadRecords {
		return nil
	}
	if where := r.Position(); where != "" {
		err.Message = fmt.Sprintf("Error while reading data, error message: %s; errors: %d; max bad: %d. %v File: %s", where, j.out.Bad, j.MaxBadRecords, bad, s.URI)
	}
	return err
}

// open makes the reader of an open file.
func (j *job) open(f File, s Source) (reader, func(), error) {
	nothing := func() {}
	var columns []*schema.Field
	if j.out.Schema != nil {
		columns = j.out.Schema.Fields
	}
	switch j.Format {
	case Avro:
		r, err := avrofile.Open(io.NewSectionReader(f, 0, s.Size), avrofile.Options{Logical: j.Logical, Decimals: j.Decimals})
		if err != nil {
			return nil, nothing, err
		}
		return r, func() { _ = r.Close() }, nil // closing frees a codec, and has nothing to say
	case Parquet:
		r, err := parquetfile.Open(f, s.Size, parquetfile.Options{
			ListInference: j.ListInference, EnumAsString: j.EnumAsString,
			Target: func(precision, scale int) (schema.Type, bool) { return avrofile.Target(precision, scale, j.Decimals) },
		})
		if err != nil {
			return nil, nothing, err
		}
		return r, func() { _ = r.Close() }, nil // closing frees buffers, and has nothing to say
	case JSON:
		in, err := unpacked(f, s)
		return jsonfile.New(in, columns), nothing, err
	}
	in, err := unpacked(f, s)
	if err != nil {
		return nil, nothing, err
	}
	r, err := csvfile.New(in, columns, j.csv())
	return r, nothing, err
}

// csv is the options, for the columns there are.
func (j *job) csv() csvfile.Options {
	o := j.Config.CSV
	o.IgnoreExtra = j.IgnoreUnknown
	return o
}

// unpacked reads a text file, packed with gzip or not.
func unpacked(f File, s Source) (io.Reader, error) {
	var magic [2]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	in := io.NewSectionReader(f, 0, s.Size)
	if slices.Equal(magic[:], []byte{0x1f, 0x8b}) {
		return gzip.NewReader(in)
	}
	return in, nil
}
