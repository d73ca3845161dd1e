package parquetfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"cloud.google.com/go/storage"
	bqrest "google.golang.org/api/bigquery/v2"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// loader loads files into a local BigQuery by way of its Cloud Storage.
type loader struct {
	*localbq.Instance
	bucket *storage.BucketHandle
	jobs   *bqrest.JobsService
	loads  int
}

func newLoader(t *testing.T) *loader {
	t.Helper()
	bq, err := localbq.Start(t.Context(), localbq.Config{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bq.Close() })
	files, err := storage.NewClient(t.Context(), bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	rest, err := bqrest.NewService(t.Context(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{Instance: bq, bucket: files.Bucket("staged"), jobs: rest.Jobs}
	if err := errors.Join(bq.CreateDataset("d"), l.bucket.Create(t.Context(), "p", nil)); err != nil {
		t.Fatal(err)
	}
	return l
}

// load puts a file in a bucket, runs the load job that the format asks for, and returns the table.
func (l *loader) load(t testing.TB, f staging.Format, s *table.Schema, data []byte) table.Destination {
	t.Helper()
	ctx := context.Background()
	l.loads++
	dst := table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprintf("t%d", l.loads)}
	name := dst.Table + f.Extension()
	w := l.bucket.Object(name).NewWriter(ctx)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	o := f.Load(s)
	job, err := l.jobs.Insert("p", &bqrest.Job{Configuration: &bqrest.JobConfiguration{Load: &bqrest.JobConfigurationLoad{
		SourceUris: []string{"gs://staged/" + name}, SourceFormat: o.SourceFormat, Schema: tableadmin.ToREST(o.Schema),
		UseAvroLogicalTypes: o.UseAvroLogicalTypes, ParquetOptions: parquetOptions(o),
		DestinationTable: &bqrest.TableReference{ProjectId: "p", DatasetId: "d", TableId: dst.Table},
	}}}).Context(ctx).Do()
	for err == nil && job.Status.State != "DONE" {
		job, err = l.jobs.Get("p", job.JobReference.JobId).Location(job.JobReference.Location).Context(ctx).Do()
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := job.Status.ErrorResult; e != nil {
		t.Fatalf("load of %s: %s", name, e.Message)
	}
	return dst
}

func parquetOptions(o staging.Load) *bqrest.ParquetOptions {
	if !o.EnableListInference {
		return nil
	}
	return &bqrest.ParquetOptions{EnableListInference: true}
}

// keep copies rows.
type keep struct{}

func (keep) Deserialize(r *row.Row, emit func([]row.Value) error) error { return emit(clone(r.Values)) }

func clone(values []row.Value) []row.Value {
	out := slices.Clone(values)
	for i := range out {
		out[i].Bytes, out[i].List = bytes.Clone(out[i].Bytes), clone(out[i].List)
	}
	return out
}

// rows reads a table by way of the Storage Read API.
func (l *loader) rows(t testing.TB, dst table.Destination) (out [][]row.Value) {
	t.Helper()
	src, err := bigquery.NewSource(bigquery.FromTable(dst), keep{}, bigquery.SourceOptions{Connection: bigquery.Connection{GRPCEndpoint: l.GRPC(), RESTEndpoint: l.REST()}, MaxStreamCount: 1})
	if err != nil {
		t.Fatal(err)
	}
	for values, err := range src.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, values)
	}
	return out
}

// avroFile makes an Avro file of rows.
func avroFile(t testing.TB, s *table.Schema, rows [][]row.Value) []byte {
	t.Helper()
	var out bytes.Buffer
	f, err := staging.NewAvroFile(&out, mustPlan(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := f.Write(rowtest.Encode(s.Fields, r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestLoadsHoldWhatTheRowsHold stages random rows of random schemas in both formats, loads the files, and reads the tables.
func TestLoadsHoldWhatTheRowsHold(t *testing.T) {
	l := newLoader(t)
	types := append(slices.Clone(stageable), table.JSON)
	rapid.Check(t, func(r *rapid.T) {
		s := rowtest.Schemas(types, 3).Draw(r, "schema")
		var rows [][]row.Value
		for range rapid.IntRange(1, 4).Draw(r, "rows") {
			rows = append(rows, rowtest.Rows(s).Draw(r, "row"))
		}
		tables := map[string]table.Destination{"Avro": l.load(t, staging.Avro, s, avroFile(t, s, rows))}
		if staging.NewChoice(staging.Parquet, nil).Of(table.Destination{}, s) == staging.Parquet {
			tables["Parquet"] = l.load(t, staging.Parquet, s, write(t, s, parquetfile.Options{}, rows...))
		}
		for format, dst := range tables {
			got := l.rows(t, dst)
			if len(got) != len(rows) {
				r.Fatalf("%s: %d rows, want %d", format, len(got), len(rows))
			}
			for i := range rows {
				if diff := rowtest.Diff(s, rows[i], got[i]); diff != "" {
					r.Fatalf("%s, row %d: %s", format, i, diff)
				}
			}
		}
	})
}
