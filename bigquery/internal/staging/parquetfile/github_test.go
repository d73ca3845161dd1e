package parquetfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// deliveries are the documents of the example, by the table they go to.
func deliveries(t *testing.T) map[string][][]byte {
	t.Helper()
	f, err := os.Open("../../../../examples/github/events/deliveries.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]byte{}
	for line := range bytes.Lines(text) {
		var key struct{ Event string }
		if err := json.Unmarshal(line, &key); err != nil {
			t.Fatal(err)
		}
		all[key.Event] = append(all[key.Event], bytes.TrimSpace(line))
	}
	return all
}

// TestGitHub takes the documents of the example to one table over streams, to another in Avro files, and to a third in Parquet
// files where Parquet can carry its columns. The tables are equal.
func TestGitHub(t *testing.T) {
	l := newLoader(t)
	parquets := 0
	for event, docs := range deliveries(t) {
		inference := jsonrow.NewInference(jsonrow.InferOptions{})
		for _, doc := range docs {
			if err := inference.Add(doc); err != nil {
				t.Fatal(err)
			}
		}
		found, err := inference.Schema()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := jsonrow.New(func(doc []byte) []byte { return doc }, found.Mapping, jsonrow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dst := table.Destination{Project: "p", Dataset: "d", Table: event}
		l.stream(t, dst, rows, docs)
		want := l.rows(t, dst)
		if len(want) != len(docs) {
			t.Fatalf("%s: %d rows over streams, want %d", event, len(want), len(docs))
		}
		s := found.Mapping.Schema
		formats := []staging.Format{staging.Avro}
		if staging.NewChoice(staging.Parquet, nil).Of(dst, s) == staging.Parquet {
			formats = append(formats, staging.Parquet)
			parquets++
		}
		for _, f := range formats {
			got := l.rows(t, l.load(t, f, s, staged(t, f, s, rows, dst, docs)))
			if len(got) != len(want) {
				t.Errorf("%s in %v: %d rows, want %d", event, f, len(got), len(want))
				continue
			}
			for i := range want {
				if diff := rowtest.Diff(s, want[i], got[i]); diff != "" {
					t.Errorf("%s in %v, row %d: %s", event, f, i, diff)
				}
			}
		}
	}
	if parquets == 0 {
		t.Error("no table went through Parquet")
	}
}

func (l *loader) stream(t *testing.T, dst table.Destination, rows *jsonrow.Serializer[[]byte], docs [][]byte) {
	t.Helper()
	sink, err := bigquery.NewSink(bigquery.To[[]byte](dst), rows, bigquery.SinkOptions{Connection: bigquery.Connection{GRPCEndpoint: l.GRPC(), RESTEndpoint: l.REST()}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if err := w.Write(t.Context(), &stream.Record[[]byte]{Value: doc}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// staged is a file of documents.
func staged(t *testing.T, f staging.Format, s *table.Schema, rows *jsonrow.Serializer[[]byte], dst table.Destination, docs [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		Write(row []byte) error
		Close() error
	}
	var err error
	if f == staging.Avro {
		w, err = staging.NewAvroFile(&out, mustPlan(t, s))
	} else {
		w, err = parquetfile.New(&out, mustPlan(t, s), parquetfile.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		data, err := rows.AppendRow(nil, dst, doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
