package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

type rangesHarness = SourceHarness[Item]

func harness(r Ranges) rangesHarness {
	h := rangesHarness{New: func(TB) stream.Source[Item] { return r }}
	for _, i := range r.Items() {
		h.Want = append(h.Want, i.String())
	}
	return h
}

func TestRanges(t *testing.T) {
	for name, r := range map[string]Ranges{
		"plain":   {Splits: 3, Rows: 8},
		"late":    {Splits: 3, Rows: 4, Late: time.Second},
		"endless": {Splits: 3, Rows: 4, Endless: true},
		"paced":   {Splits: 2, Rows: 4, Pace: time.Millisecond},
		"parts":   {Splits: 3, Rows: 8, Parts: func(row int64) int { return int(row % 3) }},
		"single":  {Splits: 2, Rows: 3, Batch: 1},
		"at once": {Splits: 2, Rows: 9, Batch: 100},
	} {
		t.Run(name, func(t *testing.T) { TestSource(t, harness(r)) })
	}
}

// hooked is Ranges with parts replaced.
type hooked struct {
	Ranges
	enumerator func(stream.EnumeratorContext, *rangeEnumerator) stream.Enumerator
	reader     func(*rangeReader) stream.Reader[Item]
}

func (h hooked) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := h.Ranges.NewEnumerator(ctx, ec)
	if err != nil || h.enumerator == nil {
		return e, err
	}
	return h.enumerator(ec, e.(*rangeEnumerator)), nil
}

func (h hooked) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[Item], error) {
	r, err := h.Ranges.NewReader(ctx, rc)
	if err != nil || h.reader == nil {
		return r, err
	}
	return h.reader(r.(*rangeReader)), nil
}

var plain = Ranges{Splits: 3, Rows: 8}

// badEnumerator and badReader override one method each.
type badEnumerator struct {
	*rangeEnumerator
	next     func(lane int) (stream.Split, error)
	give     func(lane int, splits []stream.Split)
	snapshot func() ([]byte, error)
	close    func() error
}

func (e *badEnumerator) Next(lane int) (stream.Split, error) {
	if e.next != nil {
		return e.next(lane)
	}
	return e.rangeEnumerator.Next(lane)
}

func (e *badEnumerator) Return(lane int, splits []stream.Split) {
	if e.give != nil {
		e.give(lane, splits)
		return
	}
	e.rangeEnumerator.Return(lane, splits)
}

func (e *badEnumerator) Snapshot() ([]byte, error) {
	if e.snapshot != nil {
		return e.snapshot()
	}
	return e.rangeEnumerator.Snapshot()
}

func (e *badEnumerator) Close() error {
	if e.close != nil {
		return e.close()
	}
	return e.rangeEnumerator.Close()
}

type badReader struct {
	*rangeReader
	open  func(ctx context.Context, s stream.Split) error
	fetch func(ctx context.Context, b *stream.Batch[Item]) error
	close func() error
}

func (r *badReader) Open(ctx context.Context, s stream.Split) error {
	if r.open != nil {
		return r.open(ctx, s)
	}
	return r.rangeReader.Open(ctx, s)
}

func (r *badReader) Fetch(ctx context.Context, b *stream.Batch[Item]) error {
	if r.fetch != nil {
		return r.fetch(ctx, b)
	}
	return r.rangeReader.Fetch(ctx, b)
}

func (r *badReader) Close() error {
	if r.close != nil {
		return r.close()
	}
	return r.rangeReader.Close()
}

// withReader and withEnumerator make a harness of Ranges with a fault.
func withReader(base Ranges, fault func(r *badReader)) func(*testing.T) rangesHarness {
	return func(*testing.T) rangesHarness {
		h := harness(base)
		h.New = func(TB) stream.Source[Item] {
			return hooked{Ranges: base, reader: func(r *rangeReader) stream.Reader[Item] {
				bad := &badReader{rangeReader: r}
				fault(bad)
				return bad
			}}
		}
		return h
	}
}

func withEnumerator(base Ranges, fault func(ec stream.EnumeratorContext, e *badEnumerator)) func(*testing.T) rangesHarness {
	return func(*testing.T) rangesHarness {
		h := harness(base)
		h.New = func(TB) stream.Source[Item] {
			return hooked{Ranges: base, enumerator: func(ec stream.EnumeratorContext, e *rangeEnumerator) stream.Enumerator {
				bad := &badEnumerator{rangeEnumerator: e}
				fault(ec, bad)
				return bad
			}}
		}
		return h
	}
}

// rebuilt fetches the batch of a good reader and lets f write the rows of a worse one.
func rebuilt(r *badReader, f func(b *stream.Batch[Item], records []stream.Record[Item], at, next int64)) {
	var good stream.Batch[Item]
	r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
		b.Reset()
		if err := r.rangeReader.Fetch(ctx, &good); err != nil {
			return err
		}
		for i := range good.Len() {
			records, at, next := good.At(i)
			f(b, records, at, next)
		}
		return nil
	}
}

func put(b *stream.Batch[Item], records []stream.Record[Item], at, next int64) {
	b.Row(at, next)
	for _, r := range records {
		b.Emit(r)
	}
}

var errFault = errors.New("fault of the test")

func TestSourceChecks(t *testing.T) {
	proveChecks(t, sourceChecks[Item](), []broken[rangesHarness]{
		{"loses a record", withReader(plain, func(r *badReader) {
			rebuilt(r, func(b *stream.Batch[Item], records []stream.Record[Item], at, next int64) {
				if records[0].Value.Row == 4 {
					records = nil
				}
				put(b, records, at, next)
			})
		}), []string{"reads_every_record"}, nil},

		{"one id for all", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.next = func(lane int) (stream.Split, error) {
				s, err := e.rangeEnumerator.Next(lane)
				s.ID = "split"
				return s, err
			}
		}), []string{"split_ids_are_distinct"}, nil},
		{"id with a line break", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.next = func(lane int) (stream.Split, error) {
				s, err := e.rangeEnumerator.Next(lane)
				s.ID = strings.TrimSpace(s.ID) + "\n"
				return s, err
			}
		}), []string{"split_ids_are_distinct"}, nil},

		{"a split for lane 0 only", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.next = func(lane int) (stream.Split, error) {
				if lane == 1 && e.state.Next == 1 {
					e.state.Next++ // lost
				}
				return e.rangeEnumerator.Next(lane)
			}
		}), []string{"lanes_share_the_splits", "returned_splits_come_again"}, nil},
		{"splits twice for lane 2", withEnumerator(plain, func(ec stream.EnumeratorContext, e *badEnumerator) {
			again := ec.State != nil
			e.give = func(lane int, splits []stream.Split) {
				again = true // another check's
				e.rangeEnumerator.Return(lane, splits)
			}
			e.next = func(lane int) (stream.Split, error) {
				if lane == 2 && !again && e.state.Next == 2 {
					again = true
					return e.r.split(0), nil
				}
				return e.rangeEnumerator.Next(lane)
			}
		}), []string{"lanes_share_the_splits"}, nil},

		{"a position too large", withReader(plain, func(r *badReader) {
			r.open = func(ctx context.Context, s stream.Split) error {
				if s.Position > stream.MaxPosition {
					s.Position = int64(r.r.Rows) * rangeStep
				}
				return r.rangeReader.Open(ctx, s)
			}
			rebuilt(r, func(b *stream.Batch[Item], records []stream.Record[Item], at, next int64) {
				if next > int64(r.r.Rows-1)*rangeStep {
					next = stream.MaxPosition + 1
				}
				put(b, records, at, next)
			})
		}), []string{"positions_grow"}, nil},

		{"other rows each time", func(*testing.T) rangesHarness {
			n := 0
			h := harness(plain)
			h.Want = nil
			h.New = func(TB) stream.Source[Item] {
				return hooked{Ranges: plain, reader: func(r *rangeReader) stream.Reader[Item] {
					bad := &badReader{rangeReader: r}
					n++
					salt := n
					rebuilt(bad, func(b *stream.Batch[Item], records []stream.Record[Item], at, next int64) {
						records[0].Value.Part = salt
						put(b, records, at, next)
					})
					return bad
				}}
			}
			return h
		}, []string{"reads_alike_twice", "resumes_after_any_row", "fetch_empties_the_batch", "cancelled_fetch_loses_nothing", "splits_follow_one_another"}, nil},
		{"another row on the second reading", func(*testing.T) rangesHarness {
			read := 0
			return withReader(plain, func(r *badReader) {
				opened := false
				r.open = func(ctx context.Context, s stream.Split) error {
					if err := r.rangeReader.Open(ctx, s); err != nil {
						return err
					}
					if s.ID == "range-2" && s.Position == 0 && !opened {
						if read++; read == 2 {
							r.row = 1
						}
					}
					opened = true
					return nil
				}
			})(nil)
		}, []string{"reads_alike_twice"}, nil},

		{"resumes at the start of a batch", withReader(plain, func(r *badReader) {
			r.open = func(ctx context.Context, s stream.Split) error {
				err := r.rangeReader.Open(ctx, s)
				r.row -= r.row % 3
				return err
			}
		}), []string{"resumes_after_any_row"}, nil},

		{"adds to the batch", withReader(plain, func(r *badReader) {
			var good stream.Batch[Item]
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				if b.Len() > 0 {
					if _, at, _ := b.At(0); at != 1 {
						b.Reset() // only what others put in stays
					}
				}
				if err := r.rangeReader.Fetch(ctx, &good); err != nil {
					b.Reset()
					return err
				}
				b.Bytes += good.Bytes
				if b.Len() > 0 {
					return nil
				}
				for i := range good.Len() {
					put(b, first(good.At(i)), at(good.At(i)), next(good.At(i)))
				}
				return nil
			}
		}), []string{"fetch_empties_the_batch"}, nil},

		{"an empty fetch", withReader(plain, func(r *badReader) {
			empty := false
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				if empty = !empty; empty && r.row == 6 && r.id == "range-1" {
					b.Reset()
					return nil
				}
				return r.rangeReader.Fetch(ctx, b)
			}
		}), []string{"fetch_gives_rows"}, nil},

		{"rows with the end", withReader(plain, func(r *badReader) {
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				err := r.rangeReader.Fetch(ctx, b)
				if err == io.EOF {
					put(b, nil, 1000, 1001)
				}
				return err
			}
		}), []string{"end_has_no_rows"}, nil},
		{"an end of its own", withReader(plain, func(r *badReader) {
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				err := r.rangeReader.Fetch(ctx, b)
				if err == io.EOF {
					return fmt.Errorf("read: %w", err)
				}
				return err
			}
		}), []string{"end_has_no_rows"}, nil},

		{"a cancelled fetch drops its rows", withReader(plain, func(r *badReader) {
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				if ctx.Err() == nil {
					return r.rangeReader.Fetch(ctx, b)
				}
				r.rangeReader.Fetch(context.Background(), b)
				b.Reset()
				return ctx.Err()
			}
		}), []string{"cancelled_fetch_loses_nothing"}, nil},
		{"a cancelled fetch ends with something else", withReader(plain, func(r *badReader) {
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				if ctx.Err() != nil {
					b.Reset()
					return errFault
				}
				return r.rangeReader.Fetch(ctx, b)
			}
		}), []string{"cancelled_fetch_loses_nothing"}, nil},

		{"a fetch that cannot be woken", withReader(Ranges{Splits: 2, Rows: 4, Endless: true}, func(r *badReader) {
			r.fetch = func(ctx context.Context, b *stream.Batch[Item]) error {
				b.Reset()
				if _, timed := ctx.Deadline(); r.row == int64(r.r.Rows) && !timed && ctx.Err() == nil {
					pass(time.Hour)
				}
				return r.rangeReader.Fetch(ctx, b)
			}
		}), []string{"cancel_wakes_a_fetch"}, nil},

		{"a reader for one split", withReader(plain, func(r *badReader) {
			used := false
			r.open = func(ctx context.Context, s stream.Split) error {
				if used {
					return errFault
				}
				used = true
				return r.rangeReader.Open(ctx, s)
			}
		}), []string{"splits_follow_one_another"}, nil},

		{"reading changes the split", func(*testing.T) rangesHarness {
			h := harness(plain)
			h.New = func(TB) stream.Source[Item] {
				return hooked{Ranges: plain,
					enumerator: func(_ stream.EnumeratorContext, e *rangeEnumerator) stream.Enumerator {
						bad := &badEnumerator{rangeEnumerator: e}
						bad.next = func(lane int) (stream.Split, error) {
							s, err := e.Next(lane)
							if err == nil && !strings.HasSuffix(string(s.Data), "\n") {
								s.Data = append(s.Data, '\n')
							}
							return s, err
						}
						return bad
					},
					reader: func(r *rangeReader) stream.Reader[Item] {
						bad := &badReader{rangeReader: r}
						bad.open = func(ctx context.Context, s stream.Split) error {
							clean := s
							clean.Data = s.Data[:len(s.Data)-1]
							if s.ID == "range-2" {
								s.Data[len(s.Data)-1] = '!'
							}
							return r.Open(ctx, clean)
						}
						return bad
					}}
			}
			return h
		}, []string{"splits_do_not_change"}, nil},

		{"records without a place", withReader(plain, func(r *badReader) {
			rebuilt(r, func(b *stream.Batch[Item], records []stream.Record[Item], at, next int64) {
				records[0].At = stream.Position{}
				put(b, records, at, next)
			})
		}), []string{"records_say_where_they_were_read"}, nil},

		{"a snapshot without the splits handed out", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.snapshot = func() ([]byte, error) {
				last := e.state.Next
				defer func() { e.state.Next = last }()
				if last == 1 && len(e.state.Returned) == 0 {
					e.state.Next = 0
				}
				return e.rangeEnumerator.Snapshot()
			}
		}), []string{"snapshot_holds_the_rest"}, nil},
		{"no snapshot at the end", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			returned := false
			e.give = func(lane int, splits []stream.Split) {
				returned = true // another check's
				e.rangeEnumerator.Return(lane, splits)
			}
			e.snapshot = func() ([]byte, error) {
				if e.state.Next == 3 && !returned {
					return nil, nil
				}
				return e.rangeEnumerator.Snapshot()
			}
		}), []string{"snapshot_holds_the_rest"}, nil},

		{"a snapshot takes a split", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			taken := 0
			e.snapshot = func() ([]byte, error) {
				if taken++; taken == 2 && len(e.state.Returned) == 0 {
					e.state.Next++
				}
				return e.rangeEnumerator.Snapshot()
			}
		}), []string{"snapshot_changes_nothing"}, nil},

		{"one buffer for all snapshots", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			buffer := make([]byte, 0, 1000)
			e.snapshot = func() ([]byte, error) {
				data, err := e.rangeEnumerator.Snapshot()
				buffer = append(buffer[:0], data...)
				return buffer, err
			}
		}), []string{"snapshot_stays_as_it_was"}, nil},

		{"returned splits start over", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.give = func(lane int, splits []stream.Split) {
				for _, s := range splits {
					if e.state.Next > 1 {
						s.Position = 0
					}
					e.rangeEnumerator.Return(lane, []stream.Split{s})
				}
			}
		}), []string{"returned_splits_come_again"}, nil},
		{"splits of lanes there are not", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.give = func(lane int, splits []stream.Split) {
				if lane < 3 {
					e.rangeEnumerator.Return(lane, splits)
				}
			}
		}), []string{"returned_splits_come_again"}, nil},

		{"returned splits are not in the snapshot", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.snapshot = func() ([]byte, error) {
				held := e.state.Returned
				e.state.Returned = nil
				defer func() { e.state.Returned = held }()
				return e.rangeEnumerator.Snapshot()
			}
		}), []string{"returned_splits_are_in_the_snapshot"}, nil},

		{"waits after the end", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			ended := map[int]bool{}
			e.next = func(lane int) (stream.Split, error) {
				s, err := e.rangeEnumerator.Next(lane)
				if err == io.EOF && ended[lane] {
					return s, stream.ErrNoSplitYet
				}
				ended[lane] = err == io.EOF
				return s, err
			}
		}), []string{"end_of_a_lane_is_final"}, nil},

		{"state in the source", func(*testing.T) rangesHarness {
			h := harness(plain)
			h.New = func(TB) stream.Source[Item] {
				made := 0
				return hooked{Ranges: plain, enumerator: func(_ stream.EnumeratorContext, e *rangeEnumerator) stream.Enumerator {
					if made++; made > 1 {
						e.state.Next = 1
					}
					return e
				}}
			}
			return h
		}, []string{"one_source_serves_several_attempts"}, nil},

		{"next waits for the plan", withEnumerator(Ranges{Splits: 3, Rows: 8, Late: time.Millisecond}, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.next = func(lane int) (stream.Split, error) {
				pass(time.Minute)
				return e.rangeEnumerator.Next(lane)
			}
		}), []string{"enumerator_never_blocks"}, nil},

		{"an enumerator that closes once", withEnumerator(plain, func(_ stream.EnumeratorContext, e *badEnumerator) {
			e.close = once(e.rangeEnumerator.Close)
		}), []string{"enumerator_closes_twice"}, nil},
		{"a reader that closes once", withReader(plain, func(r *badReader) {
			r.close = once(r.rangeReader.Close)
		}), []string{"reader_closes_twice"}, nil},

		{"a goroutine for each reader", withReader(plain, func(r *badReader) {
			r.open = func(ctx context.Context, s stream.Split) error {
				go pass(time.Hour) // long enough to be noticed
				return r.rangeReader.Open(ctx, s)
			}
		}), []string{"nothing_is_left_running"}, nil},
	})
}

func first[A, B, C any](a A, _ B, _ C) A { return a }
func at[A, B, C any](_ A, b B, _ C) B    { return b }
func next[A, B, C any](_ A, _ B, c C) C  { return c }

// once fails the second time.
func once(f func() error) func() error {
	done := false
	return func() error {
		if done {
			return errFault
		}
		done = true
		return f()
	}
}
