package bigquery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// Exactly-once delivery makes rows visible at checkpoints: what never takes one is refused before it begins, and what ends takes
// its last one whatever else it takes.
func TestModes(t *testing.T) {
	t.Parallel()
	const rows = 7
	run := func(t *testing.T, source streamtest.Ranges, o engine.Options) (*local, error) {
		bq := startLocal(t, localbq.Config{})
		sink, err := NewSink(byEvent(t), row.Serializer[[]byte](newEventRows(t)), SinkOptions{Method: MethodExactlyOnce, Connection: bq.connection})
		if err != nil {
			t.Fatal(err)
		}
		if o.Handle != nil {
			// The job has no end. It is stopped once its rows can be seen.
			o.ProgressEvery = time.Millisecond
			o.Progress = func(engine.Status) {
				if len(bq.visible(t)) == rows {
					o.Handle.Stop()
				}
			}
		}
		_, err = engine.Run(t.Context(), engine.Job[streamtest.Item, []byte]{Name: "j", Source: source, Sink: sink,
			Func: func(_ context.Context, r *stream.Record[streamtest.Item], emit func(*stream.Record[[]byte]) error) error {
				return emit(&stream.Record[[]byte]{Value: eventDoc(int(r.Value.Row)), At: r.At})
			}}, o)
		return bq, err
	}
	all := []int{0, 1, 2, 3, 4, 5, 6}
	t.Run("SW-155_endless without checkpoints", func(t *testing.T) {
		bq, err := run(t, streamtest.Ranges{Splits: 1, Rows: rows, Endless: true}, engine.Options{})
		if err == nil || !strings.Contains(err.Error(), "Checkpoint.Every") || len(bq.visible(t)) != 0 {
			t.Errorf("error %v, rows %v", err, bq.visible(t))
		}
	})
	t.Run("SW-155_endless with checkpoints", func(t *testing.T) {
		bq, err := run(t, streamtest.Ranges{Splits: 1, Rows: rows, Endless: true},
			engine.Options{Checkpoint: engine.Checkpointing{Every: 2 * time.Millisecond}, Handle: new(engine.Handle)})
		if err != nil || !slices.Equal(bq.visible(t), all) {
			t.Errorf("error %v, rows %v", err, bq.visible(t))
		}
	})
	t.Run("SW-155_bounded", func(t *testing.T) {
		bq, err := run(t, streamtest.Ranges{Splits: 2, Rows: 4}, engine.Options{Lanes: 2})
		if err != nil || !slices.Equal(bq.visible(t), append(all, 7)) {
			t.Errorf("error %v, rows %v", err, bq.visible(t))
		}
		for r, err := range bq.Audit().Records() {
			if err != nil || r.RPC == "FinalizeWriteStream" {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}

// visible are the ids of all rows that can be read now, in order.
func (l *local) visible(t testing.TB) []int {
	var all []int
	for _, name := range []string{"d.t0", "d.t1", "d.t2"} {
		all = append(all, ids(t, l.Instance, name)...)
	}
	slices.Sort(all)
	return all
}
