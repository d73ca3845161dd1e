package bigquery

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// An engine that fails after a checkpoint goes on with the same session, at the checkpoint's rows: with a sink that
// commits in two phases every row is there once.
func TestSourceUnderAnEngine(t *testing.T) {
	t.Parallel()
	const streams, rows, half = 3, 40, 20
	s := &readServer{blockRows: 4, pauseAt: half, pause: make(chan struct{})}
	for i := range streams {
		var texts []string
		for j := range rows {
			texts = append(texts, strconv.Itoa(i*rows+j))
		}
		s.streams = append(s.streams, texts)
	}
	s.serve(t)
	var failed atomic.Bool
	src := newSource(t, s, deserialize[streamtest.Item](func(r *row.Row, emit func(streamtest.Item) error) error {
		item, err := streamtest.ParseItem(string(r.Values[0].Bytes))
		if err == nil && item.Row%rows == half && failed.CompareAndSwap(false, true) {
			err = errors.New("a bad moment")
		}
		return errors.Join(err, emit(item))
	}), SourceOptions{MaxRecordsPerFetch: 7})

	world := streamtest.NewWorld()
	go func() { // ends when a checkpoint has been committed, or with the test
		for len(world.Items()) == 0 && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		close(s.pause)
	}()
	result, err := engine.Run(t.Context(), engine.Job[streamtest.Item, streamtest.Item]{
		Name: "j", Source: src, Sink: streamtest.Buffered{World: world},
	}, engine.Options{Lanes: 2, Checkpoint: engine.Checkpointing{Every: time.Millisecond}, Restart: engine.Restart{Initial: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if result.Restarts != 1 || len(s.requests) != 1 {
		t.Errorf("%d restarts, %d sessions, want one of each", result.Restarts, len(s.requests))
	}
	items := world.Items()
	if len(items) != streams*rows {
		t.Fatalf("%d rows, want %d", len(items), streams*rows)
	}
	for i, item := range items {
		if item.Row != int64(i) {
			t.Fatalf("row %d is %v", i, item)
		}
	}
	if read := result.Tally.Read; read != streams*rows {
		t.Errorf("the engine counts %d rows", read)
	}
}
