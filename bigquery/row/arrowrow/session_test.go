package arrowrow_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// TestReadArrow reads a table in Arrow and makes documents of its rows: the same as the read in Avro makes.
func TestReadArrow(t *testing.T) {
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	connection := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	schema := &table.Schema{Fields: []table.Field{{Name: "i", Type: table.Int64, Mode: table.Required}, {Name: "s", Type: table.String},
		{Name: "n", Type: table.Numeric}, {Name: "dt", Type: table.DateTime}, {Name: "j", Type: table.JSON}, {Name: "l", Type: table.Date, Mode: table.Repeated},
		{Name: "js", Type: table.JSON, Mode: table.Repeated},
		{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Bytes}, {Name: "r", Type: table.Range, Range: table.Date}}}}}
	write(t, connection, schema, `{"i": 1, "s": "é", "n": "-1.25", "dt": "2026-07-26T01:02:03.5", "j": {"a": [1]}, "l": ["2026-07-26"], "js": [{"k": 1}, 2], "st": {"x": "AQI=", "r": {"start": "2026-07-26"}}}`,
		`{"i": 2}`, `{"i": 3, "s": ""}`)
	avro, err := bigquery.NewSource[string](bigquery.FromTable(read), jsonrow.NewDeserializer(func(doc []byte) string { return string(doc) }, jsonrow.WriteOptions{}), bigquery.SourceOptions{Connection: connection})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for doc, err := range avro.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, doc)
	}
	for limit, rows := range map[int64]int{0: 3, 2: 2} {
		session, err := bigquery.ReadArrow(t.Context(), bigquery.FromTable(read), bigquery.SourceOptions{Connection: connection, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if session.Name() == "" || session.Table() != read || session.Streams() != 1 || session.Expires().IsZero() {
			t.Errorf("session %+v", session)
		}
		var got []string
		for b, err := range session.Blocks(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, documents(t, session.Schema(), b)...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(got) != rows || rows == 3 && !slices.Equal(got, want) {
			t.Errorf("limit %d: %s, want %s", limit, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

var read = table.Destination{Project: localbq.DefaultProject, Dataset: "d", Table: "arrow"}

// write puts documents into the table, which it creates.
func write(t *testing.T, c bigquery.Connection, s *table.Schema, docs ...string) {
	t.Helper()
	rows, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(s), jsonrow.Options{JSONColumns: jsonrow.Values})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := bigquery.NewSink(bigquery.To[string](read), row.Serializer[string](rows), bigquery.SinkOptions{Connection: c, Create: bigquery.Create{Datasets: true}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if err := w.Write(t.Context(), &stream.Record[string]{Value: doc}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// documents are the rows of a block as JSON.
func documents(t *testing.T, schema []byte, b bigquery.Block) (docs []string) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(slices.Concat(schema, b.Data)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	batch, err := arrowrow.NewBatch(r.RecordBatch())
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	reader, err := arrowrow.NewReader(batch.Schema())
	if err != nil {
		t.Fatal(err)
	}
	w := jsonrow.NewWriter(jsonrow.WriteOptions{})
	for i := range b.Rows {
		rec, err := reader.Read(arrowrow.Row{Batch: batch, Index: int(i)})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := w.AppendJSON(nil, rec)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
	return docs
}

func TestReadArrowRefuses(t *testing.T) {
	nowhere := bigquery.Connection{GRPCEndpoint: "127.0.0.1:1", RESTEndpoint: "127.0.0.1:1"}
	const reader = `{"type":"record","name":"R","fields":[{"name":"id","type":"double"}]}`
	_, err := bigquery.ReadArrow(t.Context(), bigquery.FromTable(read), bigquery.SourceOptions{Connection: nowhere, Limit: -1, ReaderSchema: reader})
	for _, option := range []string{"Limit", "ReaderSchema"} {
		if err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%v, want %s named", err, option)
		}
	}
}
