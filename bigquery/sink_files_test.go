package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// filing is a writer of MethodFileLoads whose files stay in memory: they are too small to be sent before they are finished.
func filing(t *testing.T, to Resolver[[]byte], failures stream.FailurePolicy) (*lane, *tally) {
	t.Helper()
	meter := newTally()
	sink, err := NewSink(to, row.Serializer[[]byte](badRows{newEventRows(t), new(int)}), SinkOptions{Method: MethodFileLoads, Failures: failures,
		Connection: Connection{RESTEndpoint: "127.0.0.1:1", StorageEndpoint: "127.0.0.1:1"}, PerDestinationMetrics: true,
		FileLoads: FileLoadOptions{StagingPath: "gs://b", MaxSerializedRowBytes: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Run: strings.Repeat("0", 32), Attempt: 1, Streaming: true, Meter: meter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &lane{t, sink, w}, meter
}

func writeFiling(l *lane, doc string) error {
	return l.writer.Write(l.Context(), &stream.Record[[]byte]{Value: []byte(doc), At: stream.Position{Split: "f", Row: 7}})
}

func TestRecordsOfFileLoads(t *testing.T) {
	t.Parallel()
	t.Run("FL-12 a record that cannot be routed", func(t *testing.T) {
		taken := &taking{}
		l, meter := filing(t, ResolverFunc[[]byte](func(context.Context, *stream.Record[[]byte]) (table.Destination, error) {
			return table.Destination{}, &Unroutable{Reason: "no tenant"}
		}), taken)
		if err := writeFiling(l, "x"); err != nil {
			t.Fatal(err)
		}
		if f := taken.records; len(f) != 1 || f[0].Destination != stream.Unresolved || !strings.Contains(f[0].Reason, "no tenant") || f[0].At.String() != "f@7" {
			t.Errorf("taken %+v", f)
		}
		if got := meter.String(); got != "send_errors=1" {
			t.Errorf("counts %q", got)
		}
	})
	t.Run("FL-13 a resolver that answers nothing, or fails, ends the job under every policy", func(t *testing.T) {
		for _, answer := range []error{nil, errors.New("lookup fails")} {
			taken := &taking{}
			l, _ := filing(t, ResolverFunc[[]byte](func(context.Context, *stream.Record[[]byte]) (table.Destination, error) {
				return table.Destination{}, answer
			}), taken)
			if err := writeFiling(l, "x"); err == nil || len(taken.records) != 0 || answer == nil && !errors.Is(err, ErrNilResolution) {
				t.Errorf("got %v, taken %v", err, taken.records)
			}
		}
	})
	t.Run("FL-14 a record that the serializer refuses", func(t *testing.T) {
		taken := &taking{}
		l, meter := filing(t, To[[]byte](tableT), taken)
		if err := writeFiling(l, "error"); err != nil {
			t.Fatal(err)
		}
		if f := taken.records; len(f) != 1 || f[0].Row != nil || f[0].Destination != "p.d.t" {
			t.Errorf("taken %+v", f)
		}
		if got := meter.String(); got != "send_errors of p.d.t=1 send_errors=1" {
			t.Errorf("counts %q", got)
		}
	})
	t.Run("FL-15 a record that the serializer skips", func(t *testing.T) {
		l, meter := filing(t, To[[]byte](tableT), nil)
		if err := writeFiling(l, "skip"); err != nil {
			t.Fatal(err)
		}
		if got := meter.String(); got != "records_skipped=1" {
			t.Errorf("counts %q", got)
		}
	})
	t.Run("FL-16 a row that is too long goes with its bytes", func(t *testing.T) {
		taken := &taking{}
		l, _ := filing(t, To[[]byte](tableT), taken)
		if err := writeFiling(l, fmt.Sprintf(`{"id":1,"event":%q}`, strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
		if f := taken.records; len(f) != 1 || len(f[0].Row) < 1000 || !strings.Contains(f[0].Reason, "expected at most 1000") || f[0].Split != "f" {
			t.Errorf("taken %+v", f)
		}
	})
	t.Run("FL-84 rows and errors by table", func(t *testing.T) {
		taken := &taking{}
		l, meter := filing(t, To[[]byte](tableT), taken)
		for _, doc := range []string{`{"id":1}`, "error", `{"id":2}`} {
			if err := writeFiling(l, doc); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.writer.(stream.Tallier).Tally(); got.Written != 2 || got.DeadLettered != 1 {
			t.Errorf("tally %+v", got)
		}
		for _, want := range []string{"records_sent of p.d.t=2", "send_errors of p.d.t=1"} {
			if got := meter.String(); !strings.Contains(got, want) {
				t.Errorf("counts %q, want %s", got, want)
			}
		}
	})
	t.Run("FL-85 a record that fails the job", func(t *testing.T) {
		l, _ := filing(t, To[[]byte](tableT), nil)
		if err := writeFiling(l, "error"); !errors.Is(err, stream.ErrRecordFailed) {
			t.Errorf("got %v", err)
		}
		if err := writeFiling(l, `{"id":1}`); !errors.Is(err, stream.ErrRecordFailed) {
			t.Errorf("the next row: %v", err)
		}
	})
}
