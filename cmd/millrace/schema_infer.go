package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/schema/schemafile"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
)

func (a *app) schemaInfer() *cobra.Command {
	var flags schemaFlags
	var output, to string
	var sample int
	var o jsonrow.InferOptions
	cmd := &cobra.Command{
		Use:   "infer FILE...|-",
		Short: "Find out the schema of data",
		Long: `infer prints a schema for the data in files. JSON documents, one to a line and packed or not, are looked at one by one, as many as
--sample says; decisions that a reader of the table should know of go to standard error. Avro, Arrow and Parquet files say
themselves what they hold: of several, the schemas are joined.`,
		Example: "  millrace schema infer events/*.ndjson.gz -o schema.json\n  millrace schema infer part-*.parquet",
		Args:    filesArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sample < 1 {
				return usagef("--sample %d: expected at least 1", sample)
			}
			s, err := a.inferSchema(cmd.Context(), args, sample, o, flags.Options)
			if err != nil {
				return err
			}
			return a.writeSchema(s, output, to, flags.Options)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&sample, "sample", 1000, "documents to look at")
	cmd.Flags().StringVar(&o.Rest, "rest", "", "name of a JSON `column` that takes every field without a column of its own")
	cmd.Flags().StringArrayVar(&o.JSONPaths, "json", nil, "dotted `path` of a field that becomes a JSON column whatever it holds; may be repeated")
	cmd.Flags().BoolVar(&o.TimesAsStrings, "times-as-strings", false, "keep texts that are times as STRING")
	addOutput(cmd, &output, &to)
	return cmd
}

// inferSchema takes the schemas that containers carry, and looks at documents where a file is none.
func (a *app) inferSchema(ctx context.Context, names []string, sample int, o jsonrow.InferOptions, form schemafile.Options) (*table.Schema, error) {
	var all *table.Schema
	var documents []string
	for _, name := range names {
		if !container(name) {
			documents = append(documents, name)
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
	if documents == nil {
		return all, nil
	}
	s, err := a.inferDocuments(ctx, documents, sample, o)
	if err != nil {
		return nil, err
	}
	return joined(all, s, documents[0])
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

func (a *app) inferDocuments(ctx context.Context, names []string, sample int, o jsonrow.InferOptions) (*table.Schema, error) {
	src, err := files.NewSource(names, files.Options{})
	if err != nil {
		return nil, usage(err)
	}
	src.WithStdin(a.stdin)
	inference := jsonrow.NewInference(o)
	seen := 0
	for rec, err := range src.Records(ctx) {
		if err != nil {
			return nil, err
		}
		if err := rec.Value.Err; err != nil {
			return nil, fmt.Errorf("%v: %w", rec.At, err)
		}
		if err := inference.Add(rec.Value.Bytes); err != nil {
			return nil, fmt.Errorf("%v: %w", rec.At, err)
		}
		if seen++; seen == sample {
			break
		}
	}
	found, err := inference.Schema()
	if err != nil {
		return nil, err
	}
	for _, c := range found.Choices {
		a.say("%v\n", c)
	}
	return found.Mapping.Schema, nil
}
