package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

// embedded runs jobs under the embedded engine. Its own tests run the suite with a store that is cut, too.
func embedded() EngineHarness {
	return EngineHarness{
		NewStore: func(t TB) any {
			store, err := engine.OpenStore(t.Context(), "mem://")
			if err != nil {
				t.Fatalf("open store: %v", err)
			}
			return store
		},
		Run: runEmbedded,
	}
}

func runEmbedded(ctx context.Context, run EngineRun) (EngineResult, error) {
	handle := &engine.Handle{}
	var watching sync.WaitGroup
	ended := make(chan struct{})
	watching.Go(func() {
		select {
		case <-run.Stop:
			handle.Stop()
		case <-ended:
		}
	})
	defer watching.Wait()
	defer close(ended)
	restart := engine.Restart{Policy: engine.NoRestart}
	if run.Restarts > 0 {
		restart = engine.Restart{Policy: engine.FixedDelay, Attempts: run.Restarts}
	}
	res, err := engine.Run(ctx, engine.Job[Item, Item]{
		Name: "streamtest", Source: run.Source, Func: run.Func, Failures: run.Failures, Sink: run.Sink,
	}, engine.Options{
		Lanes: run.Lanes, From: engine.Latest, Handle: handle, Restart: restart,
		Checkpoint: engine.Checkpointing{Every: run.Every, Store: run.Store.(engine.Store)},
	})
	return EngineResult{Stopped: res.Outcome == engine.Stopped, Tally: &res.Tally}, err
}

// defect makes an engine with something wrong: before a run, after it, or both.
func defect(before func(run *EngineRun), after func(run EngineRun, r EngineResult, err error) (EngineResult, error)) func(*testing.T) EngineHarness {
	return func(*testing.T) EngineHarness {
		h := embedded()
		h.Run = func(ctx context.Context, run EngineRun) (EngineResult, error) {
			if before != nil {
				before(&run)
			}
			r, err := runEmbedded(ctx, run)
			if after != nil {
				r, err = after(run, r, err)
			}
			return r, err
		}
		return h
	}
}

// defectSource and defectSink stand between the engine and the suite.
type defectSource struct {
	stream.Source[Item]
	context func(*stream.EnumeratorContext)
	give    func(e stream.Enumerator, lane int, splits []stream.Split)
	reader  func(stream.Reader[Item]) stream.Reader[Item]
}

func (s defectSource) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	if s.context != nil {
		s.context(&ec)
	}
	e, err := s.Source.NewEnumerator(ctx, ec)
	if err != nil || s.give == nil {
		return e, err
	}
	return defectEnumerator{e, s.give}, nil
}

func (s defectSource) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[Item], error) {
	r, err := s.Source.NewReader(ctx, rc)
	if err != nil || s.reader == nil {
		return r, err
	}
	return s.reader(r), nil
}

type defectEnumerator struct {
	stream.Enumerator
	give func(e stream.Enumerator, lane int, splits []stream.Split)
}

func (e defectEnumerator) Return(lane int, splits []stream.Split) { e.give(e.Enumerator, lane, splits) }

// hastyReader acknowledges at the barrier.
type hastyReader struct {
	stream.Reader[Item]
	a stream.Acknowledger
}

func (r hastyReader) Barrier(checkpoint, consumed int64) {
	r.a.Barrier(checkpoint, consumed)
	_ = r.a.Acknowledge(context.Background(), checkpoint)
}

func (r hastyReader) Acknowledge(context.Context, int64) error { return nil }

type defectSink struct {
	stream.Sink[Item]
	states func([]stream.State) []stream.State
	writer func(stream.Writer[Item]) stream.Writer[Item]
}

func (s defectSink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	if s.states != nil {
		wc.States = s.states(wc.States)
	}
	w, err := s.Sink.NewWriter(ctx, wc)
	if err != nil || s.writer == nil {
		return w, err
	}
	return s.writer(w), nil
}

type defectTwoPhase struct {
	defectSink
	stream.TwoPhase
}

// keep puts a defect around a sink, which stays what it is.
func keep(inner stream.Sink[Item], d defectSink) stream.Sink[Item] {
	d.Sink = inner
	if two, ok := inner.(stream.TwoPhase); ok {
		return defectTwoPhase{d, two}
	}
	return d
}

type perLane struct {
	stream.Sink[Item]
	stream.TwoPhase
}

func (perLane) CommitScope() stream.CommitScope { return stream.PerLane }

// defectWriter overrides one method. It has no tally.
type defectWriter struct {
	stream.Writer[Item]
	flush    func(w stream.Writer[Item], ctx context.Context, final bool) error
	prepare  func(w stream.Writer[Item], ctx context.Context) ([]stream.Committable, error)
	snapshot func(w stream.Writer[Item], ctx context.Context, checkpoint int64) ([]stream.State, error)
}

func (w defectWriter) Flush(ctx context.Context, final bool) error {
	if w.flush != nil {
		return w.flush(w.Writer, ctx, final)
	}
	return w.Writer.Flush(ctx, final)
}

func (w defectWriter) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	if w.prepare != nil {
		return w.prepare(w.Writer, ctx)
	}
	return w.Writer.Prepare(ctx, checkpoint)
}

func (w defectWriter) Snapshot(ctx context.Context, checkpoint int64) ([]stream.State, error) {
	if w.snapshot != nil {
		return w.snapshot(w.Writer, ctx, checkpoint)
	}
	return w.Writer.Snapshot(ctx, checkpoint)
}

// hasty commits what it prepares, before any checkpoint is stored.
func hasty(run *EngineRun) {
	two := run.Sink.(stream.TwoPhase)
	run.Sink = keep(run.Sink, defectSink{writer: func(w stream.Writer[Item]) stream.Writer[Item] {
		return defectWriter{Writer: w, prepare: func(w stream.Writer[Item], ctx context.Context) ([]stream.Committable, error) {
			cs, err := w.Prepare(ctx, 0)
			if err != nil {
				return nil, err
			}
			c, err := two.NewCommitter(ctx, stream.CommitterContext{})
			if err != nil {
				return nil, err
			}
			return cs, c.Commit(ctx, cs)
		}}
	}})
}

func twoPhases(run *EngineRun) stream.TwoPhase {
	two, _ := run.Sink.(stream.TwoPhase)
	return two
}

func TestEngineChecks(t *testing.T) {
	faults := []broken[EngineHarness]{
		{name: "loses a record", fails: []string{"moves_every_record_once"}, make: defect(func(run *EngineRun) {
			if run.Func != nil {
				return
			}
			run.Func = func(_ context.Context, in *stream.Record[Item], emit func(*stream.Record[Item]) error) error {
				if in.Value.Row == 199 {
					return nil
				}
				return emit(in)
			}
		}, nil)},

		{name: "does not listen to wakes", fails: []string{"waits_for_splits"}, make: defect(func(run *EngineRun) {
			run.Source = defectSource{Source: run.Source, context: func(ec *stream.EnumeratorContext) { ec.Wake = func() {} }}
		}, nil)},

		{name: "takes two snapshots", fails: []string{"calls_keep_their_order"}, make: defect(func(run *EngineRun) {
			run.Sink = keep(run.Sink, defectSink{writer: func(w stream.Writer[Item]) stream.Writer[Item] {
				return counting(defectWriter{Writer: w, snapshot: func(w stream.Writer[Item], ctx context.Context, checkpoint int64) ([]stream.State, error) {
					if _, err := w.Snapshot(ctx, checkpoint); err != nil {
						return nil, err
					}
					return w.Snapshot(ctx, checkpoint)
				}})
			}})
		}, nil)},

		{name: "never says final", fails: []string{"says_what_flush_is_final"}, make: defect(func(run *EngineRun) {
			run.Sink = keep(run.Sink, defectSink{writer: func(w stream.Writer[Item]) stream.Writer[Item] {
				return counting(defectWriter{Writer: w, flush: func(w stream.Writer[Item], ctx context.Context, _ bool) error {
					return w.Flush(ctx, false)
				}})
			}})
		}, nil)},

		{name: "commits lane by lane always", fails: []string{"commits_as_the_sink_wants"}, make: defect(func(run *EngineRun) {
			if two := twoPhases(run); two != nil {
				run.Sink = perLane{run.Sink, two}
			}
		}, nil)},

		{name: "commits before it stores", fails: []string{"exactly_once_whenever_the_process_dies"}, make: defect(func(run *EngineRun) {
			if two := twoPhases(run); two != nil && two.CommitScope() == stream.Global && run.Every > 0 {
				hasty(run)
			}
		}, nil)},
		{name: "commits before it stores at the end", fails: []string{"one_checkpoint_at_the_end_is_enough"}, make: defect(func(run *EngineRun) {
			if twoPhases(run) != nil && run.Every == 0 && run.Lanes == 2 {
				hasty(run)
			}
		}, nil)},

		{name: "stores before it flushes", fails: []string{"at_least_once_whenever_the_process_dies"}, make: defect(func(run *EngineRun) {
			if twoPhases(run) != nil || run.Every == 0 || run.Lanes != 3 {
				return
			}
			run.Sink = keep(run.Sink, defectSink{writer: func(w stream.Writer[Item]) stream.Writer[Item] {
				return defectWriter{Writer: w, flush: func(w stream.Writer[Item], ctx context.Context, final bool) error {
					if final {
						return w.Flush(ctx, final)
					}
					return nil
				}}
			}})
		}, nil)},

		{name: "forgets lanes there are no more", fails: []string{"goes_on_with_another_number_of_lanes"}, make: defect(func(run *EngineRun) {
			lanes := run.Lanes
			run.Source = defectSource{Source: run.Source, give: func(e stream.Enumerator, lane int, splits []stream.Split) {
				if lane < lanes {
					e.Return(lane, splits)
				}
			}}
		}, nil)},

		{name: "one state for each destination", fails: []string{"states_of_a_destination_stay_together"}, make: defect(func(run *EngineRun) {
			run.Sink = keep(run.Sink, defectSink{states: func(states []stream.State) []stream.State {
				return slices.CompactFunc(slices.SortedFunc(slices.Values(states), byDestination), func(a, b stream.State) bool { return byDestination(a, b) == 0 })
			}})
		}, nil)},

		{name: "takes the first record of a Func", fails: []string{"funcs_give_none_one_or_many"}, make: defect(func(run *EngineRun) {
			inner := run.Func
			if inner == nil {
				return
			}
			run.Func = func(ctx context.Context, in *stream.Record[Item], emit func(*stream.Record[Item]) error) error {
				n := 0
				return inner(ctx, in, func(r *stream.Record[Item]) error {
					if n++; n > 1 {
						return nil
					}
					return emit(r)
				})
			}
		}, nil)},

		{name: "drops failed records", fails: []string{"failed_records_are_dead_letters"}, make: defect(func(run *EngineRun) {
			if run.Failures != nil {
				run.Failures = stream.LogAndDrop()
			}
		}, nil)},

		{name: "acknowledges at the barrier", fails: []string{"acknowledges_what_is_safe"}, make: defect(func(run *EngineRun) {
			run.Source = defectSource{Source: run.Source, reader: func(r stream.Reader[Item]) stream.Reader[Item] {
				if a, ok := r.(stream.Acknowledger); ok {
					return hastyReader{r, a}
				}
				return r
			}}
		}, nil)},
		{name: "never acknowledges", fails: []string{"acknowledges_what_is_safe"}, make: defect(func(run *EngineRun) {
			run.Source = defectSource{Source: run.Source, reader: func(r stream.Reader[Item]) stream.Reader[Item] {
				return struct{ stream.Reader[Item] }{r}
			}}
		}, nil)},

		{name: "does not say that it was stopped", fails: []string{"stops_gracefully_and_goes_on"}, make: defect(nil,
			func(_ EngineRun, r EngineResult, err error) (EngineResult, error) {
				r.Stopped = false
				return r, err
			})},
		{name: "stops without a checkpoint", fails: []string{"says_what_flush_is_final", "stops_gracefully_and_goes_on"},
			make: func(*testing.T) EngineHarness {
				h := embedded()
				h.Run = func(ctx context.Context, run EngineRun) (EngineResult, error) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					stop := run.Stop
					run.Stop = nil
					go func() {
						select {
						case <-stop:
							cancel()
						case <-ctx.Done():
						}
					}()
					r, err := runEmbedded(ctx, run)
					select {
					case <-stop:
						return EngineResult{Stopped: true}, nil
					default:
						return r, err
					}
				}
				return h
			}},

		{name: "does not try again", fails: []string{"tries_again_after_a_failure"}, make: defect(func(run *EngineRun) { run.Restarts = 0 }, nil)},

		{name: "errors without a place", fails: []string{"ends_with_the_error_and_its_place"}, make: defect(nil,
			func(_ EngineRun, r EngineResult, err error) (EngineResult, error) {
				if errors.Is(err, errNow) {
					err = fmt.Errorf("the job failed: %w", errNow)
				}
				return r, err
			})},

		{name: "counts only the last process", fails: []string{"tally_accounts_for_every_record"}, make: func(t *testing.T) EngineHarness {
			lives := map[any]int64{}
			return defect(nil, func(run EngineRun, r EngineResult, err error) (EngineResult, error) {
				before := lives[run.Store]
				lives[run.Store] = r.Tally.Read
				r.Tally.Read -= before
				return r, err
			})(t)
		}},
	}
	for i := range faults {
		faults[i].tune = func(h EngineHarness, mustFail bool) EngineHarness {
			if !mustFail {
				h.stride = 43
			}
			return h
		}
	}
	proveChecks(t, engineChecks(), faults)
}

func byDestination(a, b stream.State) int {
	switch {
	case a.Destination < b.Destination:
		return -1
	case a.Destination > b.Destination:
		return 1
	}
	return 0
}

// counting is d with the tally of its writer, where that keeps one.
func counting(d defectWriter) stream.Writer[Item] {
	t, ok := d.Writer.(stream.Tallier)
	if !ok {
		return d
	}
	return struct {
		defectWriter
		stream.Tallier
	}{d, t}
}
