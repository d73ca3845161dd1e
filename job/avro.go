package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
)

// avroRows makes rows of the records of Avro files. Where no schema is given, the first file's is the job's.
func (pl *Pipeline) avroRows(ctx context.Context, c bigquery.Connection, s Surroundings) (row.Serializer[files.Record], error) {
	schema := pl.file.Sink.BigQuery.Schema
	dst, err := table.ParseDestination(pl.file.Sink.BigQuery.Table)
	if err != nil {
		return nil, err
	}
	o := avrorow.Options{RecognizeSQLTypes: true, IgnoreUnknownFields: schema.UnknownFields == "ignore"}
	var text string
	switch {
	case schema.File != "":
		o.Table, err = pl.file.schemaFile()
	case schema.Table:
		if o.Table, err = bigquery.TableSchema(ctx, c, dst); err != nil {
			err = fmt.Errorf("sink.bigquery.schema.table: %w", err)
		}
	case pl.Letters != nil:
		if o.Table, text, err = pl.tableOrFirstLetter(ctx, c, dst); o.Table == nil {
			o.JSONPaths = schema.Infer.JSON
		}
	default:
		o.JSONPaths, o.GeographyPaths, o.DeriveRequired = schema.Infer.JSON, schema.Infer.Geography, schema.Infer.Required
		text, err = pl.firstSchema(ctx, s.Stdin)
	}
	if err != nil {
		return nil, err
	}
	rows, err := avrorow.NewWritten(text, func(r files.Record) (string, []byte) { return r.Schema, r.Bytes }, o)
	if err != nil {
		return nil, fmt.Errorf("sink.bigquery.schema: %w", err)
	}
	if o.Table == nil {
		derived, err := rows.Schema(dst)
		if err != nil {
			return nil, err
		}
		if err := pl.file.namedColumns(derived); err != nil {
			return nil, err
		}
		pl.Inferred = []Inferred{{dst, &jsonrow.Inferred{Mapping: jsonrow.Fixed(derived)}}}
	}
	return rows, nil
}

// firstSchema is the schema of the first file. What is read of standard input for it goes back in front of the rest.
func (pl *Pipeline) firstSchema(ctx context.Context, stdin io.Reader) (string, error) {
	if !pl.ReadsStdin() {
		return pl.source.AvroSchema(nil)
	}
	if stdin == nil {
		return "", errors.New("standard input is not connected")
	}
	type read struct {
		text string
		head bytes.Buffer
		err  error
	}
	done := make(chan *read, 1)
	// Owned by this call; where ctx ends it, it ends after the read that is under way: no call can end a blocked read of standard
	// input.
	go func() {
		r := &read{}
		r.text, r.err = pl.source.AvroSchema(io.TeeReader(stdin, &r.head))
		done <- r
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		pl.source.WithStdin(io.MultiReader(&r.head, stdin))
		return r.text, r.err
	}
}
