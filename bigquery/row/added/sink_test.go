package added_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/added"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// TestAddedColumnsArrive (SER-127, SER-128, SER-129, SER-130) writes rows with columns that are computed from the record, to a
// table that is made for them, and reads them back.
func TestAddedColumnsArrive(t *testing.T) {
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	connection := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	inner, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(&table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}), jsonrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := added.New[string](skipping{inner},
		added.String("__uuid", added.Required, func(doc string) (string, bool, error) { return "u-" + doc, !strings.Contains(doc, "9"), nil }),
		added.Timestamp("__timestamp", added.Nullable, func(doc string) (time.Time, bool, error) {
			return time.Date(2026, 8, 14, 1, 2, 3, 123456789, time.UTC), strings.Contains(doc, "1"), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	taken := &taking{}
	sink, err := bigquery.NewSink(bigquery.To[string](dst), row.Serializer[string](rows), bigquery.SinkOptions{Connection: connection, Failures: taken, Create: bigquery.Create{Datasets: true}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, doc := range []string{`{"id":1}`, `{"id":2}`, "skip", `{"id":9}`} {
		if err := w.Write(t.Context(), &stream.Record[string]{Value: doc}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if len(taken.reasons) != 1 || !strings.Contains(taken.reasons[0], "R-REQUIRED: field __uuid") {
		t.Errorf("failed %q", taken.reasons)
	}
	src, err := bigquery.NewSource[string](bigquery.FromTable(dst), jsonrow.NewDeserializer(func(doc []byte) string { return string(doc) }, jsonrow.WriteOptions{}), bigquery.SourceOptions{Connection: connection})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for doc, err := range src.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, doc)
	}
	want := `{"id":1,"__uuid":"u-{\"id\":1}","__timestamp":"2026-08-14T01:02:03.123456Z"}` + "\n" + `{"id":2,"__uuid":"u-{\"id\":2}"}`
	if strings.Join(got, "\n") != want {
		t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// skipping skips a document.
type skipping struct{ row.Serializer[string] }

func (s skipping) AppendRow(buf []byte, dst table.Destination, doc string) ([]byte, error) {
	if doc == "skip" {
		return buf, row.ErrSkip
	}
	return s.Serializer.AppendRow(buf, dst, doc)
}

// taking is a failure policy that keeps the reasons.
type taking struct{ reasons []string }

func (k *taking) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return k, nil
}

func (k *taking) Handle(_ context.Context, f *stream.FailedRecord) error {
	k.reasons = append(k.reasons, f.Reason)
	return nil
}

func (k *taking) Flush(context.Context) error { return nil }
func (k *taking) Close() error                { return nil }
