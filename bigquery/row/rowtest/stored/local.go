package stored

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/storage"
	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

const (
	project = "p"
	dataset = "d"
	bucket  = "staged"
)

// Local is a BigQuery in the process, with a bucket of Cloud Storage. It may be used from many goroutines.
type Local struct {
	Connection bigquery.Connection

	bucket *storage.BucketHandle
	jobs   *bqrest.JobsService
	tables atomic.Int64
}

// Start starts a Local that ends with the test.
func Start(t testing.TB) *Local {
	t.Helper()
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	files, err := storage.NewClient(ctx, bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(files.Close(), bq.Close()); err != nil {
			t.Error(err)
		}
	})
	rest, err := bqrest.NewService(ctx, bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	l := &Local{Connection: bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}, bucket: files.Bucket(bucket), jobs: rest.Jobs}
	if err := errors.Join(bq.CreateDataset(dataset), l.bucket.Create(ctx, project, nil)); err != nil {
		t.Fatal(err)
	}
	return l
}

// NewTable names a table that does not exist.
func (l *Local) NewTable() table.Destination {
	return table.Destination{Project: project, Dataset: dataset, Table: fmt.Sprintf("t%d", l.tables.Add(1))}
}

// Write writes records to a table over its default stream. The table is made if there is none.
func Write[T any](ctx context.Context, l *Local, dst table.Destination, rows row.Serializer[T], records ...T) error {
	sink, err := bigquery.NewSink(bigquery.To[T](dst), rows, bigquery.SinkOptions{Connection: l.Connection})
	if err != nil {
		return err
	}
	w, err := sink.NewWriter(ctx, stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := w.Write(ctx, &stream.Record[T]{Value: r}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Flush(ctx, true), w.Close())
}

// Formats are what rows of a schema can be staged as: nothing where a column is of a type that no file carries.
func Formats(s *table.Schema) []staging.Format {
	d, err := row.Descriptor(s)
	if err != nil {
		return nil
	}
	plan, err := staging.Compile(s, d)
	if err != nil {
		return nil
	}
	formats := []staging.Format{staging.Avro}
	if staging.NewChoice(staging.Parquet).Of(table.Destination{}, s, slog.New(slog.DiscardHandler)) == staging.Parquet {
		formats = append(formats, staging.Parquet)
	}
	formats = append(formats, staging.JSONL)
	if staging.CSVFiles.Check(plan) == nil {
		formats = append(formats, staging.CSV)
	}
	return formats
}

// Stage writes the rows of records to a file of a format.
func Stage[T any](dst table.Destination, f staging.Format, rows row.Serializer[T], records ...T) ([]byte, error) {
	s, err := rows.Schema(dst)
	if err != nil {
		return nil, err
	}
	d, err := rows.Descriptor(dst)
	if err != nil {
		return nil, err
	}
	plan, err := staging.Compile(s, d)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := encodings[f].NewFile(&out, plan)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		data, err := rows.AppendRow(nil, dst, r)
		if err != nil {
			return nil, err
		}
		if err := w.Write(data); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

var encodings = map[staging.Format]staging.Encoding{
	staging.Avro:    staging.AvroFiles,
	staging.Parquet: parquetfile.Encoder{}.Files(0, false),
	staging.JSONL:   staging.JSONFiles,
	staging.CSV:     staging.CSVFiles,
}

// Load puts a staged file in the bucket and has it loaded into a table of that schema, as its format asks for.
func (l *Local) Load(ctx context.Context, dst table.Destination, f staging.Format, s *table.Schema, data []byte) error {
	name := dst.Table + encodings[f].Extension()
	w := l.bucket.Object(name).NewWriter(ctx)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	o := staging.LoadOf(f, s)
	load := &bqrest.JobConfigurationLoad{
		SourceUris: []string{"gs://" + bucket + "/" + name}, SourceFormat: o.SourceFormat, Schema: tableadmin.ToREST(o.Schema),
		UseAvroLogicalTypes: o.UseAvroLogicalTypes,
		DestinationTable:    &bqrest.TableReference{ProjectId: dst.Project, DatasetId: dst.Dataset, TableId: dst.Table},
	}
	if o.EnableListInference {
		load.ParquetOptions = &bqrest.ParquetOptions{EnableListInference: true}
	}
	if c := o.CSV; c != nil {
		load.NullMarker, load.AllowQuotedNewlines, load.PreserveAsciiControlCharacters = c.NullMarker, c.AllowQuotedNewlines, c.PreserveASCIIControlCharacters
	}
	job, err := l.jobs.Insert(dst.Project, &bqrest.Job{Configuration: &bqrest.JobConfiguration{Load: load}}).Context(ctx).Do()
	for err == nil && job.Status.State != "DONE" {
		job, err = l.jobs.Get(dst.Project, job.JobReference.JobId).Location(job.JobReference.Location).Context(ctx).Do()
	}
	if err != nil {
		return err
	}
	if e := job.Status.ErrorResult; e != nil {
		return fmt.Errorf("load of %s: %s", name, e.Message)
	}
	return nil
}
