package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/schema/schemafile"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job"
)

func (a *app) schemaInfer() *cobra.Command {
	var flags schemaFlags
	var output, to string
	var d documents
	cmd := &cobra.Command{
		Use:   "infer FILE...|-",
		Short: "Find out the schema of data",
		Long: `infer prints a schema for the data in files. JSON documents, one to a line, and records of CSV, packed or not, are looked at one by
one, as many as --sample says; decisions that a reader of the table should know of go to standard error. Avro, Arrow and Parquet
files say themselves what they hold: of several, the schemas are joined.`,
		Example: "  millrace schema infer events/*.ndjson.gz -o schema.json\n  millrace schema infer orders.csv --delimiter ';'\n  millrace schema infer part-*.parquet",
		Args:    filesArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.sample < 1 {
				return usagef("--sample %d: expected at least 1", d.sample)
			}
			if d.format != "" && d.format != "ndjson" && d.format != "csv" {
				return usagef("--format %q: expected ndjson or csv; files of other formats are known by what they hold", d.format)
			}
			s, err := a.inferSchema(cmd.Context(), args, &d, flags.Options)
			if err != nil {
				return err
			}
			return a.writeSchema(s, output, to, flags.Options)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&d.format, "format", "", "how records lie in files that do not say so themselves (default: as their names tell, else ndjson): ndjson or csv")
	d.csv.add(cmd.Flags())
	cmd.Flags().IntVar(&d.sample, "sample", 1000, "records to look at")
	cmd.Flags().StringVar(&d.infer.Rest, "rest", "", "name of a JSON `column` that takes every field without a column of its own")
	cmd.Flags().StringArrayVar(&d.infer.JSONPaths, "json", nil, "dotted `path` of a field that becomes a JSON column whatever it holds; may be repeated")
	cmd.Flags().BoolVar(&d.infer.TimesAsStrings, "times-as-strings", false, "keep texts that are times as STRING")
	addOutput(cmd, &output, &to)
	return cmd
}

// inferSchema takes the schemas that containers carry, and looks at documents where a file is none.
func (a *app) inferSchema(ctx context.Context, names []string, d *documents, form schemafile.Options) (*table.Schema, error) {
	var all *table.Schema
	var rest []string
	for _, name := range names {
		if !container(name) {
			rest = append(rest, name)
			continue
		}
		s, err := a.readSchema(name, form)
		if err != nil {
			return nil, err
		}
		if all, err = joined(all, s, name); err != nil {
			return nil, err
		}
	}
	formats, files := d.formats(rest)
	for _, format := range formats {
		s, err := a.inferDocuments(ctx, files[format], format, d)
		if err != nil {
			return nil, err
		}
		if all, err = joined(all, s, files[format][0]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func joined(all, s *table.Schema, name string) (*table.Schema, error) {
	if all == nil {
		return s, nil
	}
	all, err := all.Union(s, table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true})
	if err != nil {
		return nil, inFile(name, err)
	}
	return all, nil
}

// container says whether a file is one that carries its schema. What cannot be opened is left for others to complain about.
func container(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	head := make([]byte, 6)
	n, _ := io.ReadFull(f, head)
	for _, magic := range []string{"PAR1", "Obj\x01", "ARROW1", "\xff\xff\xff\xff"} {
		if bytes.HasPrefix(head[:n], []byte(magic)) {
			return true
		}
	}
	return false
}

// documents say how files are written that do not carry their schema.
type documents struct {
	format string
	csv    csvFlags
	sample int
	infer  jsonrow.InferOptions
}

// formats groups files by the format that their names tell, unless one was named.
func (d *documents) formats(names []string) (formats []string, files map[string][]string) {
	files = map[string][]string{}
	for _, name := range names {
		format := cmp.Or(d.format, job.FormatOf(name), "ndjson")
		if files[format] == nil {
			formats = append(formats, format)
		}
		files[format] = append(files[format], name)
	}
	return formats, files
}

func (a *app) inferDocuments(ctx context.Context, names []string, format string, d *documents) (*table.Schema, error) {
	f := job.Files{Paths: names, Format: format}
	if format == "csv" {
		f.CSV = d.csv.options()
	}
	found, err := job.InferSchema(ctx, f, d.sample, d.infer, a.stdin)
	if invalid := (*job.InvalidError)(nil); errors.As(err, &invalid) {
		return nil, usage(inFlags(err))
	}
	if err != nil {
		return nil, err
	}
	for _, c := range found.Choices {
		a.say("%v\n", c)
	}
	return found.Mapping.Schema, nil
}
