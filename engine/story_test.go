package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/engine/enginetest"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// story is a job over a world, with a store that outlives its runs, and a log to look at.
type story struct {
	t      *testing.T
	source stream.Source[item]
	sink   stream.Sink[item]
	fn     stream.Func[item, item]
	world  *streamtest.World
	store  *enginetest.Memory
	log    *lockedBuffer
	opts   engine.Options
}

// numbers has two splits of ten rows, which take 50 ms each; a checkpoint is taken every 20.
var numbers = streamtest.Ranges{Splits: 2, Rows: 10, Batch: 2, Pace: 10 * time.Millisecond}

// inBubble tells a story in virtual time.
func inBubble(t *testing.T, tell func(t *testing.T, s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world := streamtest.NewWorld()
		s := &story{
			t: t, source: numbers, sink: streamtest.Buffered{World: world}, world: world,
			store: &enginetest.Memory{}, log: &lockedBuffer{},
			opts: engine.Options{Lanes: 1, Restart: engine.Restart{Policy: engine.NoRestart}},
		}
		s.opts.Checkpoint = engine.Checkpointing{Every: 20 * time.Millisecond, Store: s.store}
		s.opts.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		tell(t, s)
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

func (s *story) job() engine.Job[item, item] {
	return engine.Job[item, item]{Name: "numbers", Source: s.source, Func: s.fn, Sink: s.sink}
}

func (s *story) run(ctx context.Context) (engine.Result, error) {
	return engine.Run(ctx, s.job(), s.opts)
}

// finish runs the job, which must end well.
func (s *story) finish() engine.Result {
	s.t.Helper()
	r, err := s.run(s.t.Context())
	if err != nil {
		s.t.Errorf("Run: %v\n%s", err, s.log) // not Fatalf: some stories run it beside themselves
	}
	return r
}

// stopAfter runs the job and stops it gracefully after a while.
func (s *story) stopAfter(d time.Duration) engine.Result {
	s.t.Helper()
	opts := s.opts
	opts.Handle = &engine.Handle{}
	time.AfterFunc(d, opts.Handle.Stop)
	r, err := engine.Run(s.t.Context(), s.job(), opts)
	if err != nil {
		s.t.Fatalf("Run: %v\n%s", err, s.log)
	}
	if r.Outcome != engine.Stopped {
		s.t.Fatalf("the run that was stopped after %v has %v", d, r.Outcome)
	}
	return r
}

// sees requires the world to have exactly these items.
func (s *story) sees(want ...[]item) {
	s.t.Helper()
	var all []item
	for _, w := range want {
		all = append(all, w...)
	}
	if diff := cmp.Diff(all, s.world.Items(), cmp.Transformer("text", item.String)); diff != "" {
		s.t.Errorf("visible rows (-want +got):\n%s", diff)
	}
}

// checkpoints are all in the store.
func (s *story) checkpoints() (all []*engine.Checkpoint) {
	s.t.Helper()
	ids, err := s.store.List(s.t.Context(), "numbers")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		data, err := s.store.Load(s.t.Context(), "numbers", id)
		if err != nil {
			s.t.Fatal(err)
		}
		c, err := engine.DecodeCheckpoint(data)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// twice are the items of two runs.
func twice(items []item) (all []item) {
	for _, i := range items {
		all = append(all, i, i)
	}
	return all
}
