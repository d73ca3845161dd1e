package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/job"
)

func (a *app) write() *cobra.Command {
	var flags jobFlags
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "write TABLE [FILE...|-]",
		Short: "Load files or standard input into a table",
		Long: `write is a job file without the file: it writes the records of files, or of standard input, to one table, or to one
table for each value of the placeholders in its name.

--schema infer looks at the records first, --schema table takes the columns of the table, which exists; anything else is a
schema file as bq writes it.`,
		Example: `  millrace write my-project.github.issues issues.ndjson --local
  gzip -dc events.ndjson.gz | millrace write 'my-project.github.{event}' - --schema schema.json
  millrace write my-project.shop.orders orders.csv --format csv --null '\N'
  millrace write my-project.shop.orders orders.tsv --format csv --delimiter '\t'
  millrace write my-project.shop.orders orders.binpb --format protobuf --descriptors shop.pb --message shop.Order
  millrace write my-project.logs.app 'logs/*.ndjson' --dead-letters bad.ndjson --partition day:time`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("write takes a table, and files or - for standard input; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if !utf8.ValidString(arg) {
					return usagef("%q is not valid UTF-8: name such files by a pattern, with ? for what is not", arg)
				}
			}
			text := w.file(args[0], args[1:]).YAML()
			parsed, err := job.Parse(writeName, text, nil)
			if err != nil {
				return usage(inFlags(err))
			}
			if w.print {
				in := parsed.Source.Files
				in.Format = cmp.Or(in.Format, "ndjson")
				_, err := a.stdout.Write(parsed.YAML())
				return err
			}
			err = a.runParsed(cmd.Context(), parsed, &flags, typedAgain(cmd, args))
			if invalid := (*job.InvalidError)(nil); errors.As(err, &invalid) {
				return usage(inFlags(err))
			}
			if errors.Is(err, bigquery.ErrCredentials) {
				err = bigquery.ErrCredentials // without the key of the job file
			}
			return keyFileFlag(err)
		},
	}
	flags.add(cmd)
	w.add(cmd)
	return cmd
}

type writeFlags struct {
	format, method, schema, rest string
	csv                          csvFlags
	protobuf                     job.Protobuf
	infer                        job.Infer
	deadLetters, partition       string
	cluster                      []string
	ignoreUnknown, never, print  bool
	update                       job.SchemaUpdate
	files                        job.FileLoads
	connection                   job.Connection
}

func (w *writeFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&w.format, "format", "", "how records lie in the input (default: as the names of the files tell, else ndjson): ndjson, avro, csv, parquet or protobuf")
	w.csv.add(fs)
	fs.BoolVar(&w.csv.AllowJaggedRows, "allow-jagged-rows", false, "cells of CSV that are missing at the end are NULL")
	fs.StringVar(&w.csv.TimestampNumbers, "timestamp-numbers", "", "what numbers mean in TIMESTAMP columns of CSV: reject (default), seconds, millis or micros")
	fs.StringVar(&w.protobuf.Descriptors, "descriptors", "", "descriptor set `file` of protobuf messages, as protoc --include_imports --descriptor_set_out writes it")
	fs.StringVar(&w.protobuf.Message, "message", "", "full `name` of the protobuf message that the files hold")
	fs.StringArrayVar(&w.protobuf.JSONOptions, "json-option", nil, "`name` or number of a protobuf field option that marks JSON columns; may be repeated")
	fs.StringArrayVar(&w.protobuf.GeographyOptions, "geography-option", nil, "`name` or number of a protobuf field option that marks GEOGRAPHY columns; may be repeated")
	fs.StringVar(&w.method, "method", "default", "how to write: default, at least once and visible at once; exactly-once, visible at checkpoints; file-loads, exactly once by load jobs at the end")
	fs.StringVar(&w.files.StagingPath, "staging-path", "", "where file-loads stages files: `gs://bucket/prefix`")
	fs.StringVar(&w.files.WriteDisposition, "disposition", "", "what file-loads does about rows that are there: write-append (default), write-truncate, write-truncate-data or write-empty")
	fs.StringVar(&w.files.StagingFormat, "staging-format", "", "what file-loads stages: avro (default), parquet, jsonl or csv")
	fs.StringVar(&w.schema, "schema", "infer", "infer, table, or a schema `file`")
	fs.IntVar(&w.infer.Sample, "sample", 0, "records that infer looks at for each table (default 1000)")
	fs.StringArrayVar(&w.infer.JSON, "json", nil, "dotted `path` of a field that becomes a JSON column; may be repeated")
	fs.StringArrayVar(&w.infer.Geography, "geography", nil, "dotted `path` of a text field that becomes a GEOGRAPHY column: Avro, Parquet, protobuf; may be repeated")
	fs.BoolVar(&w.infer.Required, "required", false, "columns that files say are never null are REQUIRED: Avro, Parquet, protobuf")
	fs.StringVar(&w.rest, "rest", "", "name of a JSON `column` that takes every field without a column of its own")
	fs.BoolVar(&w.ignoreUnknown, "ignore-unknown-fields", false, "drop fields that have no column")
	fs.StringVar(&w.deadLetters, "dead-letters", "", "`file` for records that cannot be written (default: the first one ends the job)")
	fs.StringVar(&w.partition, "partition", "", "how a new table is partitioned: hour, day, month or year, and `UNIT:FIELD` to partition by a column")
	fs.StringSliceVar(&w.cluster, "cluster", nil, "columns that a new table is clustered by")
	fs.BoolVar(&w.never, "no-create", false, "do not create tables")
	fs.BoolVar(&w.update.AllowNewFields, "allow-new-fields", false, "add columns that the schema has to a table that exists and lacks them")
	fs.BoolVar(&w.update.AllowFieldRelaxation, "allow-field-relaxation", false, "make REQUIRED columns of a table that exists NULLABLE where the schema has them so")
	fs.BoolVar(&w.print, "print-job", false, "print the job file that does the same, and do nothing")
	fs.StringVar(&w.connection.RESTEndpoint, "rest-endpoint", "", "`host:port` of an emulator's REST API")
	fs.StringVar(&w.connection.GRPCEndpoint, "grpc-endpoint", "", "`host:port` of an emulator's Storage API")
	fs.StringVar(&w.connection.StorageEndpoint, "storage-endpoint", "", "`host:port` of an emulator of Cloud Storage, for file-loads")
	fs.StringVar(&w.connection.KeyFile, "key-file", "", "`file` with a service account's key (default: application default credentials)")
}

// file is the job file that the flags stand for.
func (w *writeFlags) file(table string, paths []string) *job.File {
	if len(paths) == 0 {
		paths = []string{files.Stdin}
	}
	b := &job.BigQuery{Method: w.method, Table: table, Connection: w.connection}
	switch w.schema {
	case "infer":
		b.Schema.Infer = &w.infer
	case "table":
		b.Schema.Table = true
	default:
		b.Schema.File = w.schema
	}
	if w.infer.JSON != nil || w.infer.Geography != nil || w.infer.Required {
		b.Schema.Infer = &w.infer // where it does not belong, that is said
	}
	b.Schema.Rest = w.rest
	if w.ignoreUnknown {
		b.Schema.UnknownFields = "ignore"
	}
	if w.deadLetters != "" {
		b.Failures = job.Failures{Policy: "dead-letter", DeadLetter: &job.DeadLetter{File: w.deadLetters}}
	}
	if w.partition != "" {
		unit, field, _ := strings.Cut(w.partition, ":")
		b.Create.Partition = &job.Partition{Type: unit, Field: field}
	}
	if w.never {
		b.Create.Disposition = "never"
	}
	b.Create.Cluster = w.cluster
	b.SchemaUpdate, b.FileLoads = w.update, w.files
	in := &job.Files{Paths: paths, Format: w.format}
	in.CSV = w.csv.options()
	if !reflect.ValueOf(w.protobuf).IsZero() {
		in.Protobuf = &w.protobuf
	}
	return &job.File{
		Job:        "write to " + table,
		Source:     job.Source{Files: in},
		Sink:       job.Sink{BigQuery: b},
		Checkpoint: job.Checkpoint{Every: checkpointEvery},
	}
}

// writeName stands for the name of the job file that there is none of.
const writeName = "write"

// checkpointEvery bounds what a load that was interrupted does again.
const checkpointEvery = 10 * time.Second

// flagOf names the flag that a key of the job file comes from.
var flagOf = []struct{ key, flag string }{
	{"sink.bigquery.table", "TABLE"},
	{"sink.bigquery.method", "--method"},
	{"sink.bigquery.fileLoads.stagingPath", "--staging-path"},
	{"sink.bigquery.fileLoads.writeDisposition", "--disposition"},
	{"sink.bigquery.fileLoads.stagingFormat", "--staging-format"},
	{"sink.bigquery.fileLoads", "--staging-path, --disposition, --staging-format"},
	{"sink.bigquery.schemaUpdate", "--allow-new-fields, --allow-field-relaxation"},
	{"sink.bigquery.schema.rest", "--rest"},
	{"sink.bigquery.schema.infer.sample", "--sample"},
	{"sink.bigquery.schema.infer.json", "--json"},
	{"sink.bigquery.schema.infer.geography", "--geography"},
	{"sink.bigquery.schema.infer.required", "--required"},
	{"sink.bigquery.schema.unknownFields", "--ignore-unknown-fields"},
	{"sink.bigquery.schema", "--schema"},
	{"sink.bigquery.create.partition", "--partition"},
	{"sink.bigquery.create.cluster", "--cluster"},
	{"sink.bigquery.failures", "--dead-letters"},
	{"sink.bigquery.connection", "--rest-endpoint, --grpc-endpoint, --storage-endpoint, --key-file"},
	{"source.files.paths", "FILE"},
	{"source.files.format", "--format"},
	{"source.files.csv.delimiter", "--delimiter"},
	{"source.files.csv.quote", "--quote"},
	{"source.files.csv.skipRows", "--skip-rows"},
	{"source.files.csv.timestampNumbers", "--timestamp-numbers"},
	{"source.files.csv.nullMarkers", "--null"},
	{"source.files.csv", "a flag of CSV"},
	{"source.files.protobuf.descriptors", "--descriptors"},
	{"source.files.protobuf.message", "--message"},
	{"source.files.protobuf.jsonOptions", "--json-option"},
	{"source.files.protobuf.geographyOptions", "--geography-option"},
	{"source.files.protobuf", "a flag of protobuf"},
	{"job", "TABLE"},
}

// inFlags tells faults in the words that were typed.
func inFlags(err error) error {
	var invalid *job.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	faults := make([]error, len(invalid.Faults))
	for i, f := range invalid.Faults {
		if f.File != "" && f.File != writeName {
			faults[i] = fmt.Errorf("--schema: %v", f) // has a place in the schema file
			continue
		}
		name := f.Key
		for _, known := range flagOf {
			if strings.HasPrefix(f.Key, known.key) {
				name = known.flag
				break
			}
		}
		faults[i] = fmt.Errorf("%s: %s", name, f.Msg)
	}
	return errors.Join(faults...)
}
