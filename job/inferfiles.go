package job

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
)

// InferSchema finds out the schema that the records of files have in common, as a job with one table would, without a job. The
// paths begin where the process is; stdin is what the path "-" reads. Unlike a job it ends at the first record that cannot be
// read: there is nobody else to say so. An *InvalidError lists what is wrong with f.
func InferSchema(ctx context.Context, f Files, sample int, o jsonrow.InferOptions, stdin io.Reader) (*jsonrow.Inferred, error) {
	d := &decoder{places: map[string]place{}}
	if (checker{d}).files(&f); len(d.faults) > 0 {
		return nil, &InvalidError{d.faults}
	}
	p := &Parsed{decoder: d, File: File{Source: Source{Files: &f}}}
	source, err := p.source(stdin)
	if err != nil {
		return nil, err
	}
	inference, err := f.format().inference(Schema{Rest: o.Rest, Infer: &Infer{Text: o.TimesAsStrings, JSON: o.JSONPaths}})
	if err != nil {
		return nil, err
	}
	n := 0
	for rec, err := range source.Records(ctx) {
		if err == nil && rec.Value.Err != nil {
			err = fmt.Errorf("%v: %w", rec.At, rec.Value.Err)
		} else if err == nil {
			if err = inference.add(rec.Value); err != nil {
				err = fmt.Errorf("%v: %w", rec.At, err)
			}
		}
		if err != nil {
			return nil, p.inPaths(err)
		}
		if n++; n == sample {
			break
		}
	}
	return inference.schema()
}

// FormatOf is the format that the name of a file tells, "" where it tells none.
func FormatOf(name string) string { return formatOf(name) }
