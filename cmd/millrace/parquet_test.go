package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// TestFilesMakeEqualTables loads the example from its documents, writes every table to a Parquet file and, by our own tool, to an
// Avro file, and loads those: all tables of an event have the same columns and the same rows. With -short it takes every eighth event.
func TestFilesMakeEqualTables(t *testing.T) {
	dir := t.TempDir()
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	endpoints := []string{"--set", "sink.bigquery.connection.restEndpoint=" + local.REST(), "--set", "sink.bigquery.connection.grpcEndpoint=" + local.GRPC()}
	millrace(t, append([]string{"run", example(t, "job.yaml"), "--checkpoint-dir", "file://" + dir + "/checkpoints",
		"--set", "sink.bigquery.failures.deadLetter.file=" + filepath.Join(dir, "dead")}, endpoints...)...)
	client, err := storage.NewBigQueryReadClient(t.Context(), local.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, event := range slices.Sorted(maps.Keys(deliveries(t))) {
		if testing.Short() && i%8 != 0 {
			continue
		}
		original := readArrow(t, client, "github", event)
		path := filepath.Join(dir, event+".parquet")
		writeParquet(t, path, original)
		millrace(t, "write", "my-project.copy."+event, path, "--format", "parquet", "--checkpoint-dir", "file://"+dir+"/copies",
			"--rest-endpoint", local.REST(), "--grpc-endpoint", local.GRPC())
		copied := readArrow(t, client, "copy", event)
		avro := filepath.Join(dir, event+".avro")
		millrace(t, "read", "my-project.github."+event, "--format", "avro", "-o", avro, "--rest-endpoint", local.REST(), "--grpc-endpoint", local.GRPC())
		millrace(t, "write", "my-project.avro."+event, avro, "--format", "avro", "--checkpoint-dir", "file://"+dir+"/avro",
			"--rest-endpoint", local.REST(), "--grpc-endpoint", local.GRPC())
		fromAvro := readArrow(t, client, "avro", event)
		batches := filepath.Join(dir, event+".yaml")
		job := fmt.Sprintf(`job: batches of %[1]s
source: { files: { paths: [%[1]s.parquet, %[1]s-again.parquet], format: parquet } }
parallelism: 1
sink: { bigquery: { table: my-project.batches.%[1]s, schema: { infer: {} }, defaultStream: { arrowBatches: true, maxAppendBytes: 4096 } } }
`, event)
		writeParquet(t, filepath.Join(dir, event+"-again.parquet"), original)
		if err := os.WriteFile(batches, []byte(job), 0o600); err != nil {
			t.Fatal(err)
		}
		millrace(t, append([]string{"run", batches, "--checkpoint-dir", "file://" + dir + "/batches"}, endpoints...)...)
		want := slices.Sorted(slices.Values(slices.Concat(rowsOf(t, original), rowsOf(t, original))))
		if got := rowsOf(t, readArrow(t, client, "batches", event)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%s: %d rows sent in batches, want %d, or other ones", event, len(got), len(want))
		}
		for form, batches := range map[string][]arrow.RecordBatch{"Parquet": copied, "Avro": fromAvro} {
			if got, want := rowsOf(t, batches), rowsOf(t, original); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s from %s: %d rows, want %d, or other ones", event, form, len(got), len(want))
			}
			if diff := cmp.Diff(schemaOf(t, original), schemaOf(t, batches)); diff != "" {
				t.Errorf("%s from %s: %s", event, form, diff)
			}
		}
	}
}

// readArrow reads a table in Arrow.
func readArrow(t *testing.T, client *storage.BigQueryReadClient, dataset, id string) (all []arrow.RecordBatch) {
	t.Helper()
	session, err := client.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/my-project", MaxStreamCount: 1,
		ReadSession: &storagepb.ReadSession{Table: "projects/my-project/datasets/" + dataset + "/tables/" + id, DataFormat: storagepb.DataFormat_ARROW}})
	if err != nil {
		t.Fatal(err)
	}
	text := slices.Clone(session.GetArrowSchema().GetSerializedSchema())
	for _, stream := range session.GetStreams() {
		rows, err := client.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: stream.GetName()})
		if err != nil {
			t.Fatal(err)
		}
		for {
			answer, err := rows.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, answer.GetArrowRecordBatch().GetSerializedRecordBatch()...)
		}
	}
	r, err := ipc.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		all = append(all, b)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return all
}

func writeParquet(t *testing.T, path string, batches []arrow.RecordBatch) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The Arrow schema in the file says which texts are JSON.
	w, err := pqarrow.NewFileWriter(batches[0].Schema(), f, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func schemaOf(t *testing.T, batches []arrow.RecordBatch) *table.Schema {
	t.Helper()
	s, err := arrowrow.SchemaOf(batches[0].Schema(), arrowrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rowsOf are the rows of batches in wire form, sorted.
func rowsOf(t *testing.T, batches []arrow.RecordBatch) (all []string) {
	t.Helper()
	s, err := arrowrow.New(batches[0].Schema(), arrowrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range batches {
		b, err := arrowrow.NewBatch(r)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			out, err := s.AppendRow(nil, table.Destination{}, arrowrow.Row{Batch: b, Index: i})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(out))
		}
	}
	slices.Sort(all)
	return all
}
