package parquetfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
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
// files where Parquet can carry its columns. The tables are equal. With -short it takes every eighth table.
func TestGitHub(t *testing.T) {
	l := stored.Start(t)
	parquets := 0
	all := deliveries(t)
	for i, event := range slices.Sorted(maps.Keys(all)) {
		if testing.Short() && i%8 != 0 {
			continue
		}
		docs := all[event]
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
		dst := l.NewTable()
		if err := stored.Write(t.Context(), l, dst, rows, docs...); err != nil {
			t.Fatal(err)
		}
		want, err := stored.Read(t.Context(), l, dst, stored.Keep{})
		if err != nil || len(want) != len(docs) {
			t.Fatalf("%s: %d rows over streams, %v, want %d", event, len(want), err, len(docs))
		}
		s := found.Mapping.Schema
		for _, f := range stored.Formats(s) {
			dst := l.NewTable()
			data, err := stored.Stage(dst, f, rows, docs...)
			if err == nil {
				err = l.Load(t.Context(), dst, f, s, data)
			}
			if err == nil {
				err = l.Holds(t.Context(), dst, s, want)
			}
			if err != nil {
				t.Errorf("%s in %v: %v", event, f, err)
			}
			if f == staging.Parquet {
				parquets++
			}
		}
	}
	if parquets == 0 {
		t.Error("no table went through Parquet")
	}
}
