package streamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Item is the record of the sources and sinks of this package: part of a numbered row.
type Item struct {
	Row  int64 // from 0, counted over all splits
	Part int   // a row may give several records
}

func (i Item) String() string {
	if i.Part == 0 {
		return strconv.FormatInt(i.Row, 10)
	}
	return fmt.Sprintf("%d.%d", i.Row, i.Part)
}

// Ranges is a source of numbers: split s holds the rows s*Rows to (s+1)*Rows-1. Positions leave gaps, as they may.
type Ranges struct {
	Splits, Rows int
	// Batch is how many rows a fetch gives at most; 0 is 3, a number that leaves the splits' ends uneven.
	Batch int
	// Endless sources wait for more after their last row.
	Endless bool
	// Late is how long it takes to find each split; 0 knows all at once.
	Late time.Duration
	// Pace is how long a fetch takes.
	Pace time.Duration
	// Parts is how many records a row gives; nil is one.
	Parts func(row int64) int
}

const (
	rangeStep  = 10 // positions of rows are 0, 10, 20
	rangeKind  = "ranges/1"
	splitTitle = "range-"
)

// Items are all records of the source, in order.
func (r Ranges) Items() (all []Item) {
	for row := range int64(r.Splits * r.Rows) {
		for part := range r.parts(row) {
			all = append(all, Item{row, part})
		}
	}
	return all
}

func (r Ranges) parts(row int64) int {
	if r.Parts == nil {
		return 1
	}
	return r.Parts(row)
}

// Bounded implements stream.Source.
func (r Ranges) Bounded() bool { return !r.Endless }

// NewEnumerator implements stream.Source.
func (r Ranges) NewEnumerator(_ context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e := &rangeEnumerator{r: r, wake: ec.Wake, closed: make(chan struct{})}
	if ec.State != nil {
		if err := e.restore(ec.State); err != nil {
			return nil, err
		}
	}
	if e.found = r.Splits; r.Late > 0 {
		e.found = e.state.Next
		e.finding.Go(e.find)
	}
	return e, nil
}

type rangeEnumerator struct {
	r       Ranges
	wake    func()
	state   rangeState
	closed  chan struct{}
	once    sync.Once
	finding sync.WaitGroup

	mu    sync.Mutex // guards found
	found int        // splits below are known
}

// rangeState is the enumerator's snapshot.
type rangeState struct {
	Kind     string
	Next     int // splits below have been handed out
	Returned []stream.Split
}

func (e *rangeEnumerator) restore(data []byte) error {
	if err := json.Unmarshal(data, &e.state); err != nil {
		return err
	}
	if e.state.Kind != rangeKind {
		return fmt.Errorf("the state has kind %q, want %q", e.state.Kind, rangeKind)
	}
	return nil
}

// find stands for planning that takes time. It ends when all is found or the enumerator is closed.
func (e *rangeEnumerator) find() {
	for e.known() < e.r.Splits {
		select {
		case <-e.closed:
			return
		case <-time.After(e.r.Late):
		}
		e.mu.Lock()
		e.found++
		e.mu.Unlock()
		e.wake()
	}
}

func (e *rangeEnumerator) known() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.found
}

func (e *rangeEnumerator) Next(int) (stream.Split, error) {
	switch {
	case len(e.state.Returned) > 0:
		s := e.state.Returned[0]
		e.state.Returned = e.state.Returned[1:]
		return s, nil
	case e.state.Next < e.known():
		s := e.r.split(e.state.Next)
		e.state.Next++
		return s, nil
	case e.state.Next < e.r.Splits || e.r.Endless:
		return stream.Split{}, stream.ErrNoSplitYet
	}
	return stream.Split{}, io.EOF
}

func (r Ranges) split(n int) stream.Split {
	id := splitTitle + strconv.Itoa(n)
	return stream.Split{ID: id, Data: []byte(rangeKind + ":" + strconv.Itoa(n))}
}

func (e *rangeEnumerator) Return(_ int, splits []stream.Split) {
	e.state.Returned = append(e.state.Returned, splits...)
}

func (e *rangeEnumerator) Snapshot() ([]byte, error) {
	e.state.Kind = rangeKind
	return json.Marshal(e.state)
}

func (e *rangeEnumerator) Close() error {
	e.once.Do(func() { close(e.closed) })
	e.finding.Wait()
	return nil
}

// NewReader implements stream.Source.
func (r Ranges) NewReader(context.Context, stream.ReaderContext) (stream.Reader[Item], error) {
	return &rangeReader{r: r}, nil
}

type rangeReader struct {
	r    Ranges
	open bool
	id   string
	base int64 // the split's first row
	row  int64 // within the split
	pace pacer
}

func (r *rangeReader) Open(_ context.Context, s stream.Split) error {
	if r.open {
		return fmt.Errorf("split %s is opened while %s is open", s.ID, r.id)
	}
	number, ok := strings.CutPrefix(string(s.Data), rangeKind+":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return fmt.Errorf("split %s has data %q", s.ID, s.Data)
	}
	r.open, r.id, r.base = true, s.ID, int64(n*r.r.Rows)
	r.row = (s.Position + rangeStep - 1) / rangeStep
	return nil
}

func (r *rangeReader) Fetch(ctx context.Context, b *stream.Batch[Item]) error {
	b.Reset()
	if !r.open {
		return errors.New("no split is open")
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	if r.row == int64(r.r.Rows) {
		r.open = false
		return io.EOF
	}
	batch := r.r.Batch
	if batch == 0 {
		batch = 3
	}
	for ; batch > 0 && r.row < int64(r.r.Rows); batch-- {
		r.emit(b)
	}
	return nil
}

// wait takes the time that a fetch takes, or for ever at the end of an endless split.
func (r *rangeReader) wait(ctx context.Context) error {
	if r.r.Endless && r.row == int64(r.r.Rows) {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.pace.wait(ctx, r.r.Pace)
}

// pacer makes fetches take time. One that is cancelled goes on waiting where it left off: a source that began anew each
// time would get nowhere when barriers come quicker than its rows.
type pacer struct{ ready time.Time }

func (p *pacer) wait(ctx context.Context, pace time.Duration) error {
	if err := ctx.Err(); err != nil || pace == 0 {
		return err
	}
	if p.ready.IsZero() {
		p.ready = time.Now().Add(pace)
	}
	timer := time.NewTimer(time.Until(p.ready))
	defer timer.Stop()
	select {
	case <-timer.C:
		p.ready = time.Time{}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *rangeReader) emit(b *stream.Batch[Item]) {
	at, row := r.row*rangeStep, r.base+r.row
	b.Row(at, at+1)
	for part := range r.r.parts(row) {
		b.Emit(stream.Record[Item]{Value: Item{row, part}, At: stream.Position{Split: r.id, Row: at}})
	}
	b.Bytes += 8
	r.row++
}

func (r *rangeReader) Close() error { return nil }
