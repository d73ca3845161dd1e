package bigquery

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// TestNamesOfTemporaryTables: a record cannot have itself loaded into what a commit makes and deletes, nor end the job by trying.
func TestNamesOfTemporaryTables(t *testing.T) {
	const run = "0123456789abcdef0123456789abcdef"
	temporary := table.Destination{Project: "p", Dataset: "d", Table: "millrace_tmp_" + run + "_8e93e1634914_p0"}
	writer := func(t *testing.T, to Resolver[[]byte], failures stream.FailurePolicy) stream.Writer[[]byte] {
		t.Helper()
		sink, err := NewSink(to, newEventRows(t), SinkOptions{Method: MethodFileLoads, FileLoads: staged, Failures: failures})
		if err != nil {
			t.Fatal(err)
		}
		w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Run: run, Meter: stream.NoMeter, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	record := &stream.Record[[]byte]{Value: eventDoc(0), At: stream.Position{Split: "f", Row: 7}}
	t.Run("FL-12 named by a record it is unroutable", func(t *testing.T) {
		taken := &taking{}
		w := writer(t, ResolverFunc[[]byte](func(context.Context, *stream.Record[[]byte]) (table.Destination, error) { return temporary, nil }), taken)
		if err := w.Write(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if len(taken.records) != 1 || taken.records[0].Destination != stream.Unresolved || !strings.Contains(taken.records[0].Reason, "temporary tables of file loads") ||
			taken.records[0].At.Row != 7 {
			t.Errorf("taken %+v", taken.records)
		}
	})
	t.Run("named by the job it ends it", func(t *testing.T) {
		taken := &taking{}
		err := writer(t, To[[]byte](temporary), taken).Write(t.Context(), record)
		if !errors.Is(err, loadplan.ErrReserved) || len(taken.records) != 0 {
			t.Errorf("error is %v, taken %+v", err, taken.records)
		}
	})
}
