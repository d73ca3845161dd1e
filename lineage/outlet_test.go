package lineage

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a transport that answers as it is told, the last answer for ever.
type script struct {
	answers []error
	hang    bool // until the context ends

	mu     sync.Mutex // guards got
	got    []string
	closed bool
}

func (s *script) send(ctx context.Context, body []byte) error {
	s.mu.Lock()
	s.got = append(s.got, string(body))
	s.mu.Unlock()
	if s.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if len(s.answers) == 0 {
		return nil
	}
	err := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return err
}

func (s *script) close() error {
	s.closed = true
	return nil
}

type count struct{ n atomic.Int64 }

func (c *count) Add(n int64) { c.n.Add(n) }

// scripted is an outlet over a script.
func scripted(s *script) (o *outlet, sent, lost *count, log *strings.Builder) {
	sent, lost, log = &count{}, &count{}, &strings.Builder{}
	return newOutlet(s, outletConfig{schedule: sending, pacer: retry.Pacer{Rand: func() float64 { return 0.5 }},
		log: slog.New(slog.NewTextHandler(log, nil)), sent: sent, lost: lost}), sent, lost, log
}

func put(o *outlet, events ...string) {
	for _, e := range events {
		event, _, _ := strings.Cut(e, " ")
		o.put(item{EventType(event), "r", []byte(e)})
	}
}

var errBusy = errors.New("busy")

func TestOutlet(t *testing.T) {
	for name, c := range map[string]struct {
		answers    []error
		events     []string
		want       []string
		sent, lost int64
		took       time.Duration
	}{
		"in order": {nil, []string{"START", "RUNNING 1", "COMPLETE"}, []string{"START", "RUNNING 1", "COMPLETE"}, 3, 0, 0},
		"the newest of those under way": {[]error{errBusy, nil}, []string{"START", "RUNNING 1", "RUNNING 2", "RUNNING 3", "COMPLETE"},
			[]string{"START", "START", "RUNNING 3", "COMPLETE"}, 3, 0, time.Second},
		"again in passing": {[]error{errBusy, errBusy, nil}, []string{"START"}, []string{"START", "START", "START"}, 1, 0, 3 * time.Second},
		"given up": {[]error{errBusy}, []string{"START"}, slices.Repeat([]string{"START"}, 6), 0, 1,
			(1 + 2 + 4 + 8 + 15) * time.Second},
		"final": {[]error{final{errBusy}, nil}, []string{"START", "FAIL"}, []string{"START", "FAIL"}, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				o, sent, lost, _ := scripted(s)
				begun := time.Now()
				put(o, c.events[0])
				synctest.Wait() // it is on its way, or waits for its next try
				put(o, c.events[1:]...)
				for o.waiting() || sent.n.Load()+lost.n.Load() < c.sent+c.lost {
					time.Sleep(time.Millisecond)
					synctest.Wait()
				}
				if got := time.Since(begun).Truncate(time.Second); got != c.took {
					t.Errorf("took %v, want %v", got, c.took)
				}
				o.finish()
				if err := o.close(CloseTimeout); err != nil || !s.closed {
					t.Errorf("closed %v: %v", s.closed, err)
				}
				if !slices.Equal(s.got, c.want) || sent.n.Load() != c.sent || lost.n.Load() != c.lost {
					t.Errorf("sent %q, %d sent and %d lost", s.got, sent.n.Load(), lost.n.Load())
				}
			})
		})
	}
}

// A transport that hangs holds nobody up: neither who adds events, nor for longer than CloseTimeout the end.
func TestOutletNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{hang: true}
		o, sent, lost, log := scripted(s)
		begun := time.Now()
		put(o, "START")
		for range 10_000 {
			put(o, "RUNNING")
		}
		for range 2 * maxQueued {
			put(o, "COMPLETE")
		}
		if time.Since(begun) != 0 {
			t.Errorf("adding took %v", time.Since(begun))
		}
		o.finish()
		if err := o.close(CloseTimeout); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != CloseTimeout {
			t.Errorf("the end took %v", took)
		}
		if sent.n.Load() != 0 || lost.n.Load() != int64(1+1+2*maxQueued) || !strings.Contains(log.String(), "level=WARN msg=\"lineage event given up\"") {
			t.Errorf("%d sent, %d lost: %s", sent.n.Load(), lost.n.Load(), log)
		}
		put(o, "FAIL") // after the end it is lost, and nothing else happens
	})
}

// A write that no context can end is left behind.
func TestOutletLeavesAStuckWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o, _, _, _ := scripted(&script{})
		o.transport = stuck{release}
		begun := time.Now()
		put(o, "START")
		o.finish()
		if err := o.close(CloseTimeout); err == nil || time.Since(begun) != CloseTimeout+time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		close(release)
		<-o.done
	})
}

type stuck struct{ release chan struct{} }

func (s stuck) send(context.Context, []byte) error { <-s.release; return nil }
func (s stuck) close() error                       { return nil }

var _ stream.Counter = (*count)(nil)
