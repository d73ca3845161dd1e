package streamtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// EngineHarness says how to run a job under an engine.
type EngineHarness struct {
	// NewStore makes an empty place for checkpoints that outlives processes; the suite hands it to Run.
	NewStore func(t TB) any

	// Run is the life of one process: it runs the job from what the store holds until it is done, is stopped, fails, or
	// the process dies. When the store says that the job is done, it does nothing.
	Run func(ctx context.Context, run EngineRun) (EngineResult, error)

	// RealTime is for engines that cannot run in a testing/synctest bubble.
	RealTime bool

	// stride is how many steps lie between two deaths, for the tests of this package; 0 is 1.
	stride int
}

// EngineRun is a job and how to run it.
type EngineRun struct {
	// Process is the one that Run lives in. Its source, sink and failure policy are cut with it already; what the engine
	// does to the store should be steps of it, too.
	Process *Process
	Store   any

	Source   stream.Source[Item]
	Func     stream.Func[Item, Item] // may be nil
	Failures stream.FailurePolicy    // for records that Func refuses
	Sink     stream.Sink[Item]

	Lanes    int
	Every    time.Duration   // between checkpoints; 0 for one at the end
	Restarts int             // how often a failed attempt is tried again in this process
	Stop     <-chan struct{} // asks for a graceful stop when it is closed; may be nil
}

// EngineResult is what a run came to.
type EngineResult struct {
	Stopped bool // gracefully, rather than at the end of the input

	// Tally is that of all runs up to now; nil where the engine keeps none.
	Tally *stream.Tally
}

// TestEngine runs the suite.
func TestEngine(t *testing.T, h EngineHarness) { runAll(t, engineChecks(), h, h.RealTime) }

func engineChecks() []check[EngineHarness] {
	return []check[EngineHarness]{
		{"moves_every_record_once", checkMoves},
		{"waits_for_splits", checkWaits},
		{"calls_keep_their_order", checkCallOrder},
		{"says_what_flush_is_final", checkFinalFlag},
		{"commits_as_the_sink_wants", checkScope},
		{"exactly_once_whenever_the_process_dies", checkExactlyOnce},
		{"at_least_once_whenever_the_process_dies", checkAtLeastOnce},
		{"one_checkpoint_at_the_end_is_enough", checkEndOnly},
		{"goes_on_with_another_number_of_lanes", checkRescale},
		{"states_of_a_destination_stay_together", checkStatesTogether},
		{"funcs_give_none_one_or_many", checkFuncs},
		{"failed_records_are_dead_letters", checkDeadLetters},
		{"acknowledges_what_is_safe", checkAcknowledge},
		{"stops_gracefully_and_goes_on", checkStop},
		{"tries_again_after_a_failure", checkRestart},
		{"ends_with_the_error_and_its_place", checkError},
		{"tally_accounts_for_every_record", checkEngineTally},
	}
}

// story is a job over a world, ready to be told many times.
type story struct {
	source   func() stream.Source[Item]
	fn       stream.Func[Item, Item]
	sink     func(*World) stream.Sink[Item]
	failures func(*World) stream.FailurePolicy
	lanes    []int // of the first process, the second, and so on; the last number stays
	every    time.Duration
	between  func() // two processes
}

// small has several splits, batches that end within checkpoints, and a few checkpoints.
var small = Ranges{Splits: 3, Rows: 4, Batch: 2, Pace: 10 * time.Millisecond}

const often = 15 * time.Millisecond

func ranged(r Ranges) func() stream.Source[Item] { return func() stream.Source[Item] { return r } }

func buffered(w *World) stream.Sink[Item] { return Buffered{World: w} }
func direct(w *World) stream.Sink[Item]   { return Direct{World: w} }

// scene is a story under way.
type scene struct {
	t     TB
	h     EngineHarness
	s     story
	world *World
	store any
	lives int
}

func (h EngineHarness) scene(t TB, s story) *scene {
	return &scene{t: t, h: h, s: s, world: NewWorld(), store: h.NewStore(t)}
}

// live runs one process.
func (c *scene) live(p *Process, change func(*EngineRun)) (EngineResult, error) {
	if c.lives > 0 && c.s.between != nil {
		c.s.between()
	}
	run := EngineRun{
		Process: p, Store: c.store,
		Source: InSource(p, c.s.source()), Func: c.s.fn, Sink: InSink(p, c.s.sink(c.world)),
		Lanes: c.s.lanes[min(c.lives, len(c.s.lanes)-1)], Every: c.s.every,
	}
	if c.s.failures != nil {
		run.Failures = InPolicy(p, c.s.failures(c.world))
	}
	if change != nil {
		change(&run)
	}
	c.lives++
	ctx, cancel := p.Context(c.t.Context())
	defer cancel()
	ctx, late := context.WithTimeoutCause(ctx, patience, errStuck)
	defer late()
	return c.h.Run(ctx, run)
}

var errStuck = fmt.Errorf("the run did not end within %v", patience)

// finish runs a process that is left in peace.
func (c *scene) finish() EngineResult {
	c.t.Helper()
	r, err := c.live(nil, nil)
	if err != nil {
		c.t.Fatalf("run: %v", err)
	}
	if r.Stopped {
		c.t.Errorf("the run says that it was stopped, and its input had ended")
	}
	return r
}

// everywhere tells the story again and again, and lets the process die at every step of it, before, at, and after the
// step. A second process goes on and dies too, a third goes on to the end; then verify looks at the world.
func (h EngineHarness) everywhere(t TB, s story, verify func(c *scene, when string) bool) {
	t.Helper()
	for at := 1; ; at += max(1, h.stride) {
		for _, mode := range KillModes {
			c := h.scene(t, s)
			first := &Process{At: at, Mode: mode}
			if _, err := c.live(first, nil); !first.Dead() {
				if err != nil {
					t.Fatalf("run: %v", err)
				}
				verify(c, "no death")
				return // there is no such step: every one has had its turn
			}
			second := &Process{At: 1 + at*7%40, Mode: mode}
			c.live(second, nil)
			c.finish()
			steps := first.Steps()
			when := "death " + mode.String() + " step " + steps[len(steps)-1]
			if !verify(c, when) {
				t.Fatalf("%s, number %d of lanes %v; steps of the first process: %v; of the second: %v", when, at, s.lanes, steps, second.Steps())
			}
		}
	}
}

// exactly requires each of the items to be visible once.
func (c *scene) exactly(when string, want []Item) bool {
	c.t.Helper()
	got := c.world.Items()
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: visible are %v, want %v", when, got, want)
		return false
	}
	return true
}

// atLeast requires each of the items to be visible, and no other.
func (c *scene) atLeast(when string, want []Item) bool {
	c.t.Helper()
	if got := slices.Compact(c.world.Items()); !slices.Equal(got, want) {
		c.t.Errorf("%s: visible are, without duplicates, %v, want %v", when, got, want)
		return false
	}
	return true
}
