package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/stream"
)

// SourceHarness says how to make a source and what is in it. The input is small: checks read it many times.
type SourceHarness[T any] struct {
	// New makes the source as another process would, over the same input.
	New func(t TB) stream.Source[T]

	// Want are the texts of all records, in any order; nil where the input is not known. There must be at least two
	// splits, and one with at least two rows.
	Want []string
	// Text makes a record's text; nil is fmt.Sprint of its value.
	Text func(stream.Record[T]) string

	// Stall makes a source over a world that does not answer until release is called, which the suite does in any case.
	// nil where that cannot be arranged; sources that ask nobody need not.
	Stall func(t TB) (source stream.Source[T], release func())

	// Idle is how long a source that never ends is quiet before the suite takes it that there is no more. 0 is a second,
	// which costs nothing in virtual time.
	Idle time.Duration

	// RealTime is for sources that cannot run in a testing/synctest bubble, such as those with sockets.
	RealTime bool

	// Leaks are goroutines that outlive what they were started for, on purpose.
	Leaks []goleak.Option
}

// TestSource runs the suite.
func TestSource[T any](t *testing.T, h SourceHarness[T]) {
	runAll(t, sourceChecks[T](), h, h.RealTime)
}

func sourceChecks[T any]() []check[SourceHarness[T]] {
	type H = SourceHarness[T]
	return []check[H]{
		{"reads_every_record", checkEveryRecord[T]},
		{"split_ids_are_distinct", checkSplitIDs[T]},
		{"lanes_share_the_splits", checkLanesShare[T]},
		{"positions_grow", checkPositionsGrow[T]},
		{"reads_alike_twice", checkReadsAlike[T]},
		{"resumes_after_any_row", checkResume[T]},
		{"fetch_empties_the_batch", checkFetchEmpties[T]},
		{"fetch_gives_rows", checkFetchGivesRows[T]},
		{"end_has_no_rows", checkEndHasNoRows[T]},
		{"cancelled_fetch_loses_nothing", checkCancelledFetch[T]},
		{"cancel_wakes_a_fetch", checkCancelWakes[T]},
		{"splits_follow_one_another", checkSplitsFollow[T]},
		{"splits_do_not_change", checkSplitsUnchanged[T]},
		{"records_say_where_they_were_read", checkRecordPositions[T]},
		{"snapshot_holds_the_rest", checkSnapshotRest[T]},
		{"snapshot_changes_nothing", checkSnapshotPure[T]},
		{"snapshot_stays_as_it_was", checkSnapshotFrozen[T]},
		{"returned_splits_come_again", checkReturn[T]},
		{"returned_splits_are_in_the_snapshot", checkReturnSnapshot[T]},
		{"end_of_a_lane_is_final", checkLaneEnd[T]},
		{"one_source_serves_several_attempts", checkAttempts[T]},
		{"enumerator_never_blocks", checkEnumeratorBlocks[T]},
		{"enumerator_closes_twice", checkEnumeratorClose[T]},
		{"reader_closes_twice", checkReaderClose[T]},
		{"nothing_is_left_running", checkSourceLeaks[T]},
	}
}

const testJob = "streamtest"

// plan is an enumerator with somebody who listens to its wakes.
type plan[T any] struct {
	t     TB
	h     SourceHarness[T]
	src   stream.Source[T]
	enum  stream.Enumerator
	woken chan struct{}
}

func (h SourceHarness[T]) plan(t TB, src stream.Source[T], state []byte) *plan[T] {
	t.Helper()
	p := &plan[T]{t: t, h: h, src: src, woken: make(chan struct{}, 1)}
	var err error
	p.enum, err = src.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: testJob, Lanes: 3, State: state, Wake: p.wake,
		Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatalf("NewEnumerator: %v", err)
	}
	return p
}

func (p *plan[T]) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (p *plan[T]) close() {
	p.t.Helper()
	if err := p.enum.Close(); err != nil {
		p.t.Errorf("Enumerator.Close: %v", err)
	}
}

// next asks for a split until there is one, or none will come.
func (p *plan[T]) next(lane int) (stream.Split, bool) {
	p.t.Helper()
	for {
		s, err := p.enum.Next(lane)
		switch {
		case err == nil:
			return s, true
		case errors.Is(err, io.EOF):
			return stream.Split{}, false
		case !errors.Is(err, stream.ErrNoSplitYet):
			p.t.Fatalf("Enumerator.Next: %v", err)
		}
		if !p.await() {
			return stream.Split{}, false
		}
	}
}

// await waits for a wake, and in vain where the source never ends.
func (p *plan[T]) await() bool {
	p.t.Helper()
	wait := patience
	if !p.src.Bounded() {
		wait = p.h.idle()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.woken:
		return true
	case <-timer.C:
		if p.src.Bounded() {
			p.t.Fatalf("Enumerator.Next answered ErrNoSplitYet, and Wake was not called within %v", wait)
		}
		return false
	}
}

func (h SourceHarness[T]) idle() time.Duration {
	if h.Idle == 0 {
		return time.Second
	}
	return h.Idle
}

// rest takes all splits that are left.
func (p *plan[T]) rest() (splits []stream.Split) {
	p.t.Helper()
	for {
		s, ok := p.next(0)
		if !ok {
			return splits
		}
		splits = append(splits, s)
	}
}

// splits plans anew and returns all splits.
func (h SourceHarness[T]) splits(t TB) []stream.Split {
	t.Helper()
	p := h.plan(t, h.New(t), nil)
	defer p.close()
	splits := p.rest()
	if len(splits) < 2 {
		t.Fatalf("the source of the harness has %d splits: the suite needs two", len(splits))
	}
	return splits
}

func (h SourceHarness[T]) reader(t TB, src stream.Source[T]) stream.Reader[T] {
	t.Helper()
	r, err := src.NewReader(t.Context(), stream.ReaderContext{Job: testJob, Lanes: 3, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatalf("NewReader: %v", err)
	}
	return r
}

// readRow is a row as it was read.
type readRow struct {
	at, next int64
	text     string // of its records
}

func (r readRow) String() string { return fmt.Sprintf("%d..%d %s", r.at, r.next, r.text) }

// opened is a reader with a split open.
type opened[T any] struct {
	t      TB
	h      SourceHarness[T]
	src    stream.Source[T]
	reader stream.Reader[T]
	batch  stream.Batch[T]
}

func (h SourceHarness[T]) open(t TB, s stream.Split) *opened[T] {
	t.Helper()
	src := h.New(t)
	o := &opened[T]{t: t, h: h, src: src, reader: h.reader(t, src)}
	o.open(s)
	return o
}

func (o *opened[T]) open(s stream.Split) {
	o.t.Helper()
	if err := o.reader.Open(o.t.Context(), s); err != nil {
		o.t.Fatalf("Open split %s at position %d: %v", s.ID, s.Position, err)
	}
}

func (o *opened[T]) close() {
	o.t.Helper()
	if err := o.reader.Close(); err != nil {
		o.t.Errorf("Reader.Close: %v", err)
	}
}

// fetch returns the next rows, none at the end.
func (o *opened[T]) fetch() []readRow {
	o.t.Helper()
	ctx, cancel := o.t.Context(), context.CancelFunc(func() {})
	if !o.src.Bounded() {
		ctx, cancel = context.WithTimeout(ctx, o.h.idle())
	}
	defer cancel()
	for range maxEmpty {
		switch err := o.reader.Fetch(ctx, &o.batch); {
		case err == nil && o.batch.Len() == 0:
			// Another check minds.
		case err == nil:
			return o.rows()
		case errors.Is(err, io.EOF), ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		default:
			o.t.Fatalf("Fetch: %v", err)
		}
	}
	o.t.Fatalf("Fetch gave no row %d times in a row", maxEmpty)
	return nil
}

const maxEmpty = 1000

func (o *opened[T]) rows() (rows []readRow) {
	for i := range o.batch.Len() {
		records, at, next := o.batch.At(i)
		text := ""
		for _, r := range records {
			text += "[" + o.h.text(r) + "]"
		}
		rows = append(rows, readRow{at, next, text})
	}
	return rows
}

func (h SourceHarness[T]) text(r stream.Record[T]) string {
	if h.Text == nil {
		return fmt.Sprint(r.Value)
	}
	return h.Text(r)
}

// maxRows is far more than a harness should have: a split that gives more has no end.
const maxRows = 100_000

// rest reads to the end.
func (o *opened[T]) rest() (rows []readRow) {
	o.t.Helper()
	for {
		more := o.fetch()
		if len(more) == 0 {
			return rows
		}
		if rows = append(rows, more...); len(rows) > maxRows {
			o.t.Fatalf("a split has no end: it gave more than %d rows", maxRows)
		}
	}
}

// read reads a split to its end, as another process would.
func (h SourceHarness[T]) read(t TB, s stream.Split) []readRow {
	t.Helper()
	o := h.open(t, s)
	defer o.close()
	return o.rest()
}
