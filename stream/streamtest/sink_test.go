package streamtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

type worldHarness = SinkHarness[Item]

// marked makes records that the sinks of these tests treat as bad or skip.
const (
	badPart  = 7
	skipPart = 8
)

func isBad(i Item) bool  { return i.Part == badPart }
func isSkip(i Item) bool { return i.Part == skipPart }

// onWorld makes a harness of what newSink makes of a world.
func onWorld(newSink func(*World, SinkOptions) stream.Sink[Item]) worldHarness {
	return worldHarness{Open: func(TB) SinkTarget[Item] {
		w := NewWorld()
		return SinkTarget[Item]{
			Sink: func(f stream.FailurePolicy) stream.Sink[Item] {
				return newSink(w, SinkOptions{Bad: isBad, Skip: isSkip, Failures: f})
			},
			Record: func(i int) Item { return Item{Row: int64(i)} },
			Bad:    func(i int) Item { return Item{int64(i), badPart} },
			Skip:   func(i int) Item { return Item{int64(i), skipPart} },
			Visible: func() (rows []int) {
				for _, i := range w.Items() {
					rows = append(rows, int(i.Row))
				}
				return rows
			},
		}
	}}
}

func TestWorldSinks(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		TestSink(t, onWorld(func(w *World, o SinkOptions) stream.Sink[Item] { return Direct{w, o} }))
	})
	t.Run("buffered", func(t *testing.T) {
		TestSink(t, onWorld(func(w *World, o SinkOptions) stream.Sink[Item] { return Buffered{w, o} }))
	})
	t.Run("global", func(t *testing.T) {
		TestSink(t, onWorld(func(w *World, o SinkOptions) stream.Sink[Item] {
			o.Scope = stream.Global
			return Buffered{w, o}
		}))
	})
}

// badSink is Buffered with parts replaced.
type badSink struct {
	Buffered
	newWriter func(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error)
	writer    func(w *bufferedWriter, wc stream.WriterContext) stream.Writer[Item]
	commit    func(c bufferedCommitter, cs []stream.Committable) error
	committer func(c bufferedCommitter) stream.Committer
	encoder   func(e *itemEncoder) stream.Encoder[Item]
}

func (s badSink) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	if s.newWriter != nil {
		return s.newWriter(ctx, wc)
	}
	w, err := s.Buffered.NewWriter(ctx, wc)
	if err != nil || s.writer == nil {
		return w, err
	}
	return s.writer(w.(*bufferedWriter), wc), nil
}

func (s badSink) NewCommitter(ctx context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	c := bufferedCommitter{s.World}
	if s.committer != nil {
		return s.committer(c), nil
	}
	return badCommitter{c, s.commit}, nil
}

func (s badSink) NewEncoder(ctx context.Context, wc stream.WriterContext) (stream.Encoder[Item], error) {
	e, err := s.Buffered.NewEncoder(ctx, wc)
	if err != nil || s.encoder == nil {
		return e, err
	}
	return s.encoder(e.(*itemEncoder)), nil
}

type badCommitter struct {
	bufferedCommitter
	commit func(c bufferedCommitter, cs []stream.Committable) error
}

func (c badCommitter) Commit(ctx context.Context, cs []stream.Committable) error {
	if c.commit != nil {
		return c.commit(c.bufferedCommitter, cs)
	}
	return c.bufferedCommitter.Commit(ctx, cs)
}

// badWriter overrides one method.
type badWriter struct {
	*bufferedWriter
	write    func(ctx context.Context, r *stream.Record[Item]) error
	flush    func(ctx context.Context, final bool) error
	prepare  func(ctx context.Context) ([]stream.Committable, error)
	snapshot func(ctx context.Context, id int64) ([]stream.State, error)
	tally    func() stream.Tally
	encoded  func(ctx context.Context, b stream.EncodedBatch) error
	close    func() error
}

func (w *badWriter) Write(ctx context.Context, r *stream.Record[Item]) error {
	if w.write != nil {
		return w.write(ctx, r)
	}
	return w.bufferedWriter.Write(ctx, r)
}

func (w *badWriter) Flush(ctx context.Context, final bool) error {
	if w.flush != nil {
		return w.flush(ctx, final)
	}
	return w.bufferedWriter.Flush(ctx, final)
}

func (w *badWriter) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	if w.prepare != nil {
		return w.prepare(ctx)
	}
	return w.bufferedWriter.Prepare(ctx, checkpoint)
}

func (w *badWriter) Snapshot(ctx context.Context, id int64) ([]stream.State, error) {
	if w.snapshot != nil {
		return w.snapshot(ctx, id)
	}
	return w.bufferedWriter.Snapshot(ctx, id)
}

func (w *badWriter) Tally() stream.Tally {
	if w.tally != nil {
		return w.tally()
	}
	return w.bufferedWriter.Tally()
}

func (w *badWriter) WriteEncoded(ctx context.Context, b stream.EncodedBatch) error {
	if w.encoded != nil {
		return w.encoded(ctx, b)
	}
	return w.bufferedWriter.WriteEncoded(ctx, b)
}

func (w *badWriter) Close() error {
	if w.close != nil {
		return w.close()
	}
	return w.bufferedWriter.Close()
}

// withWriter makes a harness of Buffered whose writers have a fault.
func withWriter(fault func(w *badWriter, wc stream.WriterContext)) func(*testing.T) worldHarness {
	return withSink(func(s *badSink) {
		s.writer = func(w *bufferedWriter, wc stream.WriterContext) stream.Writer[Item] {
			bad := &badWriter{bufferedWriter: w}
			fault(bad, wc)
			return bad
		}
	})
}

func withSink(fault func(s *badSink)) func(*testing.T) worldHarness {
	return func(*testing.T) worldHarness {
		return onWorld(func(w *World, o SinkOptions) stream.Sink[Item] {
			s := &badSink{Buffered: Buffered{w, o}}
			fault(s)
			return *s
		})
	}
}

// count says how many checkpoints a writer has flushed for, the one under way included, and how many records it got.
func count(w *badWriter) (flushes, written *int) {
	flushes, written = new(int), new(int)
	w.write = func(ctx context.Context, r *stream.Record[Item]) error {
		*written++
		return w.bufferedWriter.Write(ctx, r)
	}
	w.flush = func(ctx context.Context, final bool) error {
		*flushes++
		return w.bufferedWriter.Flush(ctx, final)
	}
	return flushes, written
}

// noSend lets a flush leave the rows where they are.
func noSend(w *badWriter) error { return w.handler.Flush(context.Background()) }

// show makes everything visible that was sent.
func show(w *badWriter) {
	for _, t := range w.tables {
		w.world.flush(t.mark.Stream, t.mark.End)
	}
}

// handlerFault is a handler of which one method is replaced.
type handlerFault struct {
	stream.FailureHandler
	handle func(*stream.FailedRecord) error
	flush  func() error
}

func (h handlerFault) Handle(ctx context.Context, f *stream.FailedRecord) error {
	if h.handle != nil {
		return h.handle(f)
	}
	return h.FailureHandler.Handle(ctx, f)
}

func (h handlerFault) Flush(ctx context.Context) error {
	if h.flush != nil {
		return h.flush()
	}
	return h.FailureHandler.Flush(ctx)
}

// lossyBulk is Direct, and loses a record of long runs.
type lossyBulk struct{ Direct }

func (d lossyBulk) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	w, err := d.Direct.NewWriter(ctx, wc)
	if err != nil {
		return nil, err
	}
	return lossyBulkWriter{w.(*directWriter)}, nil
}

type lossyBulkWriter struct{ *directWriter }

func (w lossyBulkWriter) WriteRecords(ctx context.Context, rs []stream.Record[Item]) (int, error) {
	if len(rs) > 10 {
		_, err := w.directWriter.WriteRecords(ctx, rs[1:])
		return len(rs), err
	}
	return w.directWriter.WriteRecords(ctx, rs)
}

type badEncoder struct {
	*itemEncoder
	flush func(ctx context.Context, emit func(stream.EncodedBatch) error) error
}

func (e badEncoder) Flush(ctx context.Context, emit func(stream.EncodedBatch) error) error {
	return e.flush(ctx, emit)
}

type closesOnce struct {
	bufferedCommitter
	close func() error
}

func (c closesOnce) Close() error { return c.close() }

func TestSinkChecks(t *testing.T) {
	type sw = stream.WriterContext
	proveChecks(t, sinkChecks[Item](), []broken[worldHarness]{
		{"a lonely row waits for company", withWriter(func(w *badWriter, _ sw) {
			_, written := count(w)
			w.flush = func(ctx context.Context, final bool) error {
				if *written == 1 {
					return noSend(w)
				}
				return w.bufferedWriter.Flush(ctx, final)
			}
		}), []string{"flushed_rows_outlive_the_writer"}, nil},

		{"a first flush that is final does nothing", withWriter(func(w *badWriter, _ sw) {
			flushes := 0
			w.flush = func(ctx context.Context, final bool) error {
				if flushes++; flushes == 1 && final {
					return noSend(w)
				}
				return w.bufferedWriter.Flush(ctx, final)
			}
		}), []string{"final_flush_is_a_flush"}, nil},

		{"prepares again what it has prepared", withWriter(func(w *badWriter, _ sw) {
			w.prepare = func(context.Context) (cs []stream.Committable, _ error) {
				for _, d := range sortedKeys(w.tables) {
					m := w.tables[d].mark
					cs = append(cs, stream.Committable{Key: m.Stream, Data: m.encode()})
				}
				return cs, nil
			}
		}), []string{"empty_checkpoints_do_nothing"}, nil},

		{"prepares four times only", withWriter(func(w *badWriter, _ sw) {
			flushes, _ := count(w)
			w.prepare = func(ctx context.Context) ([]stream.Committable, error) {
				if *flushes > 4 {
					return nil, nil
				}
				return w.bufferedWriter.Prepare(ctx, 0)
			}
		}), []string{"checkpoints_follow_one_another"}, nil},

		{"shows the rows of a final flush", withWriter(func(w *badWriter, _ sw) {
			flushes := 0
			w.flush = func(ctx context.Context, final bool) error {
				err := w.bufferedWriter.Flush(ctx, final)
				if flushes++; flushes == 4 && final {
					show(w)
				}
				return err
			}
		}), []string{"nothing_is_visible_before_its_commit"}, nil},

		{"close shows what was buffered", withWriter(func(w *badWriter, _ sw) {
			flushes, written := count(w)
			w.close = func() error {
				if *flushes == 1 && *written == 40 {
					w.bufferedWriter.Flush(context.Background(), true)
					show(w)
				}
				return w.bufferedWriter.Close()
			}
		}), []string{"close_commits_nothing"}, nil},
		{"a commit shows all that was appended", withSink(func(s *badSink) {
			s.commit = func(c bufferedCommitter, cs []stream.Committable) error {
				for _, one := range cs {
					m, _ := decodeMark(one.Data)
					if err := c.world.flush(m.Stream, len(c.world.streams[m.Stream].items)); err != nil {
						return err
					}
				}
				return nil
			}
		}), []string{"checkpoints_follow_one_another", "close_commits_nothing", "commits_repeat", "goes_on_from_any_state", "goes_on_beside_a_zombie"}, nil},

		{"a third commit of the same is an error", func(*testing.T) worldHarness {
			type done struct {
				w    *World
				data string
			}
			times := map[done]int{}
			return withSink(func(s *badSink) {
				s.commit = func(c bufferedCommitter, cs []stream.Committable) error {
					for _, one := range cs {
						d := done{c.world, string(one.Data)}
						if times[d]++; times[d] > 2 {
							return errFault
						}
					}
					return c.Commit(context.Background(), cs)
				}
			})(nil)
		}, []string{"commits_repeat"}, nil},

		{"commits must come in order", func(*testing.T) worldHarness {
			type where struct {
				w      *World
				stream string
			}
			prepared, committed := map[where][]int{}, map[where]map[int]bool{}
			return withSink(func(s *badSink) {
				s.writer = func(w *bufferedWriter, _ sw) stream.Writer[Item] {
					bad := &badWriter{bufferedWriter: w}
					bad.prepare = func(ctx context.Context) ([]stream.Committable, error) {
						cs, err := w.Prepare(ctx, 0)
						for _, one := range cs {
							m, _ := decodeMark(one.Data)
							at := where{w.world, m.Stream}
							prepared[at] = append(prepared[at], m.End)
						}
						return cs, err
					}
					return bad
				}
				s.commit = func(c bufferedCommitter, cs []stream.Committable) error {
					for _, one := range cs {
						m, _ := decodeMark(one.Data)
						at := where{c.world, m.Stream}
						if committed[at] == nil {
							committed[at] = map[int]bool{}
						}
						for _, end := range prepared[at] {
							if end < m.End && !committed[at][end] {
								return errFault
							}
						}
						committed[at][m.End] = true
					}
					return c.Commit(context.Background(), cs)
				}
			})(nil)
		}, []string{"commits_come_in_any_order"}, nil},
		{"a commit hides what a later one showed", withSink(func(s *badSink) {
			s.commit = func(c bufferedCommitter, cs []stream.Committable) error {
				for _, one := range cs {
					m, _ := decodeMark(one.Data)
					c.world.streams[m.Stream].visible = m.End
				}
				return nil
			}
		}), []string{"commits_come_in_any_order", "goes_on_beside_a_zombie"}, nil},

		{"one buffer for all states", withWriter(func(w *badWriter, _ sw) {
			buffers := map[string][]byte{}
			w.snapshot = func(ctx context.Context, id int64) ([]stream.State, error) {
				states, err := w.bufferedWriter.Snapshot(ctx, id)
				for i, s := range states {
					buffers[s.Destination] = append(buffers[s.Destination][:0], s.Data...)
					states[i].Data = buffers[s.Destination]
				}
				return states, err
			}
		}), []string{"promises_do_not_change"}, nil},
		{"one buffer for all committables", withWriter(func(w *badWriter, _ sw) {
			buffers := map[string][]byte{}
			w.prepare = func(ctx context.Context) ([]stream.Committable, error) {
				cs, err := w.bufferedWriter.Prepare(ctx, 0)
				for i, c := range cs {
					buffers[c.Key] = append(buffers[c.Key][:0], c.Data...)
					cs[i].Data = buffers[c.Key]
				}
				return cs, err
			}
		}), []string{"promises_do_not_change"}, nil},

		{"prepares two times only after a restore", withWriter(func(w *badWriter, wc sw) {
			flushes, _ := count(w)
			w.prepare = func(ctx context.Context) ([]stream.Committable, error) {
				if *flushes > 2 && wc.States != nil {
					return nil, nil
				}
				return w.bufferedWriter.Prepare(ctx, 0)
			}
		}), []string{"goes_on_from_any_state"}, nil},
		{"takes rows of others for its own", withWriter(func(w *badWriter, _ sw) {
			w.send = func(d string, items []Item) error {
				t := w.tables[d]
				if t != nil && t.probe && t.mark.End < len(w.world.streams[t.mark.Stream].items) {
					t.mark.End += len(items)
					t.probe = false
					return nil
				}
				return w.append(d, items)
			}
		}), []string{"goes_on_from_any_state", "goes_on_beside_a_zombie"}, nil},

		{"takes many rows of others for its own", withWriter(func(w *badWriter, _ sw) {
			w.send = func(d string, items []Item) error {
				t := w.tables[d]
				if t != nil && t.probe && t.mark.End+6 <= len(w.world.streams[t.mark.Stream].items) {
					t.mark.End += len(items)
					t.probe = false
					return nil
				}
				return w.append(d, items)
			}
		}), []string{"goes_on_beside_a_zombie"}, nil},

		{"prepares rows that it only remembers", withWriter(func(w *badWriter, _ sw) {
			w.prepare = func(ctx context.Context) ([]stream.Committable, error) {
				cs, err := w.bufferedWriter.Prepare(ctx, 0)
				for _, d := range sortedKeys(w.tables) {
					if t := w.tables[d]; t.probe {
						ahead := t.mark
						ahead.End++
						cs = append(cs, stream.Committable{Key: ahead.Stream, Data: ahead.encode()})
					}
				}
				return cs, err
			}
		}), []string{"goes_on_from_a_quiet_state"}, nil},

		{"one state for each destination", withSink(func(s *badSink) {
			s.newWriter = func(ctx context.Context, wc sw) (stream.Writer[Item], error) {
				seen := map[string]bool{}
				for _, state := range wc.States {
					if seen[state.Destination] {
						return nil, errFault
					}
					seen[state.Destination] = true
				}
				return s.Buffered.NewWriter(ctx, wc)
			}
		}), []string{"goes_on_from_states_of_several_lanes"}, nil},

		{"large states", withWriter(func(w *badWriter, _ sw) {
			w.snapshot = func(ctx context.Context, id int64) ([]stream.State, error) {
				states, err := w.bufferedWriter.Snapshot(ctx, id)
				for i := range states {
					states[i].Data = append(states[i].Data, strings.Repeat(" ", 200)...)
				}
				return states, err
			}
		}), []string{"states_are_small_and_named"}, nil},
		{"states twice", withWriter(func(w *badWriter, _ sw) {
			w.snapshot = func(ctx context.Context, id int64) ([]stream.State, error) {
				states, err := w.bufferedWriter.Snapshot(ctx, id)
				return append(states, states...), err
			}
		}), []string{"states_are_small_and_named"}, nil},

		{"keeps the records until the flush", withWriter(func(w *badWriter, _ sw) {
			var kept []*stream.Record[Item]
			w.write = func(_ context.Context, r *stream.Record[Item]) error {
				kept = append(kept, r)
				return nil
			}
			w.flush = func(ctx context.Context, final bool) error {
				for _, r := range kept {
					if err := w.bufferedWriter.Write(ctx, r); err != nil {
						return err
					}
				}
				kept = nil
				return w.bufferedWriter.Flush(ctx, final)
			}
		}), []string{"keeps_nothing_of_a_record"}, nil},

		{"counts skipped records as written", withWriter(func(w *badWriter, _ sw) {
			w.tally = func() stream.Tally {
				t := w.bufferedWriter.Tally()
				t.Written, t.Skipped = t.Written+t.Skipped, 0
				return t
			}
		}), []string{"tally_accounts_for_every_record"}, nil},

		{"failed records without a place", withWriter(func(w *badWriter, _ sw) {
			inner := w.handler
			w.handler = handlerFault{FailureHandler: inner, handle: func(f *stream.FailedRecord) error {
				f.At = stream.Location{}
				return inner.Handle(context.Background(), f)
			}}
		}), []string{"bad_records_go_to_the_handler"}, nil},
		{"ignores the handler", withWriter(func(w *badWriter, _ sw) {
			inner := w.handler
			w.handler = handlerFault{FailureHandler: inner, handle: func(f *stream.FailedRecord) error {
				_ = inner.Handle(context.Background(), f)
				return nil
			}}
		}), []string{"refusal_of_the_handler_is_an_error"}, nil},
		{"does not flush the handler", withWriter(func(w *badWriter, _ sw) {
			w.handler = handlerFault{FailureHandler: w.handler, flush: func() error { return nil }}
		}), []string{"handler_is_flushed_last"}, nil},
		{"closes the handler twice", withWriter(func(w *badWriter, _ sw) {
			w.close = func() error {
				w.handler.Close()
				return w.bufferedWriter.Close()
			}
		}), []string{"handler_is_closed_once"}, nil},

		{"loses a record of a long run", func(*testing.T) worldHarness {
			return onWorld(func(w *World, o SinkOptions) stream.Sink[Item] { return lossyBulk{Direct{w, o}} })
		}, []string{"records_in_bulk_are_the_same"}, nil},

		{"an encoder that keeps rows across bundles", withSink(func(s *badSink) {
			s.encoder = func(e *itemEncoder) stream.Encoder[Item] {
				return badEncoder{e, func(ctx context.Context, emit func(stream.EncodedBatch) error) error {
					held := e.in.pending["table-0"]
					e.in.pending["table-0"] = nil
					err := e.Flush(ctx, emit)
					e.in.pending["table-0"] = held
					return err
				}}
			}
		}), []string{"encoded_records_are_the_same"}, nil},

		{"a committer that closes once", withSink(func(s *badSink) {
			s.committer = func(c bufferedCommitter) stream.Committer { return closesOnce{c, once(c.Close)} }
		}), []string{"committer_closes_twice"}, nil},

		{"a goroutine for each writer", withWriter(func(w *badWriter, _ sw) {
			go pass(time.Hour)
		}), []string{"nothing_is_left_running"}, nil},
	})
}
