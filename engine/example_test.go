package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// A job reads numbers from three splits, drops the odd ones, and writes the rest. streamtest stands in for connectors.
func ExampleRun() {
	world := streamtest.NewWorld()
	result, err := engine.Run(context.Background(), engine.Job[streamtest.Item, streamtest.Item]{
		Name:   "even-numbers",
		Source: streamtest.Ranges{Splits: 3, Rows: 4},
		Func: func(_ context.Context, in *stream.Record[streamtest.Item], emit func(*stream.Record[streamtest.Item]) error) error {
			if in.Value.Row%2 == 1 {
				return stream.ErrSkip
			}
			return emit(in)
		},
		Sink: streamtest.Buffered{World: world},
	}, engine.Options{
		Lanes:      2,
		Checkpoint: engine.Checkpointing{Every: 10 * time.Second, URL: "mem://"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Outcome, world.Items())
	fmt.Printf("read %d, written %d, skipped %d\n", result.Tally.Read, result.Tally.Written, result.Tally.Skipped)
	// Output:
	// finished [0 2 4 6 8 10]
	// read 12, written 6, skipped 6
}

// A job without an end is stopped from another goroutine. The next run goes on where it stopped.
func ExampleHandle() {
	world := streamtest.NewWorld()
	store, err := engine.OpenStore(context.Background(), "mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	run := func(rows int64) engine.Result {
		handle := &engine.Handle{}
		result, err := engine.Run(context.Background(), engine.Job[streamtest.Item, streamtest.Item]{
			Name:   "forever",
			Source: streamtest.Ranges{Splits: 1, Rows: 8, Endless: true, Batch: 1, Pace: time.Millisecond},
			Func: func(_ context.Context, in *stream.Record[streamtest.Item], emit func(*stream.Record[streamtest.Item]) error) error {
				if in.Value.Row == rows {
					handle.Stop()
				}
				return emit(in)
			},
			Sink: streamtest.Buffered{World: world},
		}, engine.Options{Handle: handle, Checkpoint: engine.Checkpointing{Every: time.Second, Store: store}})
		if err != nil {
			fmt.Println(err)
		}
		return result
	}
	first, second := run(3), run(7)
	fmt.Println(first.Outcome, second.Outcome, second.ResumedFrom == first.Checkpoint)
	fmt.Println(world.Items())
	// Output:
	// stopped stopped true
	// [0 1 2 3 4 5 6 7]
}
