package export_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local is a local BigQuery whose sessions have many streams of small blocks.
type local struct {
	*localbq.Instance
	connection bigquery.Connection
}

var dst = table.Destination{Project: "p", Dataset: "d", Table: "t"}

func startLocal(t testing.TB, blockRows int64) *local {
	t.Helper()
	c := localbq.Config{Project: "p"}
	if blockRows > 0 {
		c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 4000, blockRows
	}
	i, err := localbq.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := i.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	return &local{i, bigquery.Connection{GRPCEndpoint: i.GRPC(), RESTEndpoint: i.REST(), StorageEndpoint: i.GCS()}}
}

var orders = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "name", Type: table.String}, {Name: "at", Type: table.Timestamp},
	{Name: "score", Type: table.Float64}, {Name: "price", Type: table.Numeric}, {Name: "day", Type: table.Date}, {Name: "more", Type: table.JSON},
	{Name: "tags", Type: table.String, Mode: table.Repeated},
	{Name: "place", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}, {Name: "y", Type: table.Bytes}}},
}}

// docs are rows of orders, as NDJSON has them.
func docs(n int) []string {
	out := make([]string, n)
	for i := range out {
		name := fmt.Sprintf(`"name":"row, \"%d\"",`, i)
		if i%7 == 3 {
			name = `"name":"",`
		}
		if i%7 == 5 {
			name = ""
		}
		out[i] = fmt.Sprintf(`{"id":%d,%s"at":"2026-07-26T01:02:%02d.500Z","score":%d.25,"price":%d.5,"day":"2026-01-%02d","more":{"k":[%d]},"tags":["a","b%d"],"place":{"x":%d,"y":"AQI="}}`,
			i, name, i%60, i, i, 1+i%28, i, i%3, i)
	}
	return out
}

func (l *local) write(t testing.TB, s *table.Schema, docs ...string) {
	t.Helper()
	rows, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(s), jsonrow.Options{JSONColumns: jsonrow.Values})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := bigquery.NewSink(bigquery.To[string](dst), rows, bigquery.SinkOptions{Connection: l.connection})
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

func (l *local) options(o export.Options) export.Options {
	o.Source.Connection = l.connection
	return o
}

// export opens and runs.
func (l *local) export(ctx context.Context, name string, o export.Options) (export.Result, error) {
	x, err := export.Open(ctx, bigquery.FromTable(dst), name, l.options(o))
	if err != nil {
		return export.Result{}, err
	}
	r, err := x.Run(ctx)
	return r, errors.Join(err, x.Close())
}

func (l *local) mustExport(t testing.TB, name string, o export.Options) export.Result {
	t.Helper()
	r, err := l.export(t.Context(), name, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// sessions counts the read sessions that were created.
func (l *local) sessions(t testing.TB) (n int) {
	t.Helper()
	for r, err := range l.Audit().Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.RPC == "CreateReadSession" {
			n++
		}
	}
	return n
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// files are the names in a folder.
func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
