package storageread

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Enumerator plans a read once and hands out its streams. All methods are called from one goroutine; only the plan runs
// in another, owned by the Enumerator, which ends when the plan does or at Close.
type Enumerator struct {
	state
	lanes int
	board *Board
	log   *slog.Logger
	count enumeratorMeter
	err   error // why there will be no splits

	// The plan that is under way, nil when there is none. outcome is written before done is closed, and joined closes
	// last.
	done    chan struct{}
	joined  chan struct{}
	cancel  context.CancelFunc
	outcome struct {
		session *Session
		err     error
	}
}

var (
	_ stream.Enumerator = (*Enumerator)(nil)
	_ stream.Sized      = (*Enumerator)(nil)
)

type enumeratorMeter struct {
	sessions, assigned, returned stream.Counter
	unassigned                   stream.Gauge
}

// NewEnumerator starts to plan. From a state that says the plan has been made it opens no connection and makes no call:
// a second session would read another instant.
func (c *Config) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (*Enumerator, error) {
	e := &Enumerator{lanes: ec.Lanes, board: c.Board, log: ec.Log, count: enumeratorMeter{
		sessions:   ec.Meter.Counter(ReadSessionsCreated),
		assigned:   ec.Meter.Counter(SplitsAssigned),
		returned:   ec.Meter.Counter(SplitsReturned),
		unassigned: ec.Meter.Gauge(UnassignedSplits),
	}}
	ec.Meter.Counter(QueryJobsSubmitted)
	ec.Meter.Counter(QueryJobsReattached)
	if ec.State != nil {
		s, err := decodeState(ec.State)
		if err != nil {
			return nil, err
		}
		e.state = *s
	}
	if e.planned {
		e.restored()
		return e, nil
	}
	e.plan(ctx, c, ec)
	return e, nil
}

func (e *Enumerator) restored() {
	e.board.planned(&e.state, 0)
	e.gauge()
	facts := []any{"session", e.session, "expires", e.expires, "splits", len(e.pending)}
	if !e.expires.IsZero() && time.Now().After(e.expires) {
		e.log.Warn("the read session of the checkpoint has expired: reading from it will fail, and the job must be started over", facts...)
		return
	}
	e.log.Info("going on with the read session of the checkpoint", facts...)
}

// plan starts the goroutine. ctx lends its values; it does not bound the plan's life.
func (e *Enumerator) plan(ctx context.Context, c *Config, ec stream.EnumeratorContext) {
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.done, e.joined = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(e.joined)
		e.outcome.session, e.outcome.err = c.Plan(ctx, Attempt{Job: ec.Job, Lanes: ec.Lanes, Meter: ec.Meter, Log: ec.Log})
		close(e.done)
		ec.Wake()
	}()
}

// adopt takes over what the plan came to, once.
func (e *Enumerator) adopt() {
	if e.planned || e.err != nil || e.done == nil {
		return
	}
	select {
	case <-e.done:
	default:
		return
	}
	if e.err = e.outcome.err; e.err != nil {
		return
	}
	s := e.outcome.session
	e.state = state{planned: true, session: s.Name, expires: s.Expires, bytes: s.Bytes}
	for _, name := range s.Streams {
		e.pending = append(e.pending, pendingSplit{Split: Split{Stream: name, Schema: s.Schema, Arrow: s.Arrow, Expires: s.Expires}})
	}
	e.outcome.session = nil
	e.count.sessions.Add(1)
	e.board.planned(&e.state, len(s.Streams))
	e.gauge()
	e.announce(len(s.Streams))
}

func (e *Enumerator) announce(streams int) {
	facts := []any{"session", e.session, "expires", e.expires, "streams", streams, "lanes", e.lanes}
	if streams > 0 && streams < e.lanes {
		e.log.Warn("BigQuery made fewer read streams than there are lanes, which is its choice: the other lanes have nothing to read", facts...)
		return
	}
	e.log.Info("created a read session", facts...)
}

func (e *Enumerator) gauge() {
	e.count.unassigned.Set(int64(len(e.pending)))
	e.board.queued(len(e.pending))
}

// Next hands out the split that waits longest. It keeps no record of who got it: one that does not come back is read.
func (e *Enumerator) Next(int) (stream.Split, error) {
	e.adopt()
	switch {
	case e.err != nil:
		return stream.Split{}, e.err
	case !e.planned:
		return stream.Split{}, stream.ErrNoSplitYet
	case len(e.pending) == 0:
		return stream.Split{}, io.EOF
	}
	p := e.pending[0]
	e.pending = e.pending[1:]
	e.count.assigned.Add(1)
	e.gauge()
	return p.at(p.position), nil
}

// Return queues splits behind those that wait.
func (e *Enumerator) Return(_ int, splits []stream.Split) {
	for _, in := range splits {
		p, err := returned(in)
		if err != nil {
			e.err = err // the next call answers it
			return
		}
		e.pending = append(e.pending, p)
	}
	e.count.returned.Add(int64(len(splits)))
	e.gauge()
}

// Snapshot is the plan, or that there is none yet.
func (e *Enumerator) Snapshot() ([]byte, error) {
	e.adopt()
	if e.err != nil {
		return nil, e.err
	}
	return e.state.encode(), nil
}

// Size is the service's estimate for the whole session. It makes none for anonymous query results.
func (e *Enumerator) Size() (bytes int64, known bool) {
	e.adopt()
	return e.bytes, e.bytes > 0
}

// Close ends a plan that is under way, whose outcome nobody hears of. The connection it used is closed when Close
// returns.
func (e *Enumerator) Close() error {
	if e.done != nil {
		e.cancel()
		<-e.joined
	}
	return nil
}
