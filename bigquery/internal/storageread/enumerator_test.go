package storageread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/stream"
)

// fakeService creates sessions.
type fakeService struct {
	streams int
	err     error
	hangs   bool
	gate    chan struct{} // nil answers at once

	dialed, closed, created atomic.Int32
	request                 *storagepb.CreateReadSessionRequest
}

func (s *fakeService) dial(context.Context) (*client, error) {
	s.dialed.Add(1)
	return &client{create: s.create, close: func() error {
		s.closed.Add(1)
		return nil
	}}, nil
}

func (s *fakeService) create(ctx context.Context, req *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error) {
	s.created.Add(1)
	s.request = req
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.gate != nil {
		<-s.gate
	}
	if s.err != nil {
		return nil, s.err
	}
	out := &storagepb.ReadSession{
		Name:                       "projects/p/locations/us/sessions/x",
		ExpireTime:                 timestamppb.New(time.Now().Add(6 * time.Hour)),
		Schema:                     &storagepb.ReadSession_AvroSchema{AvroSchema: &storagepb.AvroSchema{Schema: textRows}},
		EstimatedTotalBytesScanned: 1000,
	}
	for i := range s.streams {
		out.Streams = append(out.Streams, &storagepb.ReadStream{Name: fmt.Sprintf("s%d", i)})
	}
	return out, nil
}

type enumeratorTest struct {
	*Enumerator
	meter *testMeter
	log   *testLog
	woken int
}

// enumerate makes an enumerator and lets its plan come as far as it can.
func enumerate(t *testing.T, s *fakeService, lanes int, restored []byte) *enumeratorTest {
	t.Helper()
	return enumerateFrom(t, testConfig(s.dial), lanes, restored)
}

func enumerateFrom(t *testing.T, c *Config, lanes int, restored []byte) *enumeratorTest {
	t.Helper()
	e := &enumeratorTest{meter: newMeter()}
	var log *slog.Logger
	log, e.log = newLog()
	var err error
	e.Enumerator, err = c.NewEnumerator(t.Context(), stream.EnumeratorContext{
		Job: "j", Lanes: lanes, State: restored, Wake: func() { e.woken++ }, Meter: e.meter, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	synctest.Wait()
	return e
}

func (e *enumeratorTest) next(t *testing.T, lane int, want string) stream.Split {
	t.Helper()
	s, err := e.Next(lane)
	got := fmt.Sprintf("%s@%d", s.ID, s.Position)
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Fatalf("lane %d got %s, want %s", lane, got, want)
	}
	return s
}

func (e *enumeratorTest) snapshot(t *testing.T) []byte {
	t.Helper()
	b, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bubble is a test with virtual time.
func bubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

func TestEnumerator(t *testing.T) {
	t.Parallel()
	t.Run("SRC-14 SRC-21 fresh start", bubble(func(t *testing.T) {
		s := &fakeService{streams: 3}
		e := enumerate(t, s, 4, nil)
		if e.woken != 1 {
			t.Errorf("woken %d times, want once", e.woken)
		}
		if n, known := e.Size(); n != 1000 || !known {
			t.Errorf("size %d, known: %v", n, known)
		}
		e.meter.is(t, map[stream.Instrument]int64{ReadSessionsCreated: 1, UnassignedSplits: 3})
		for i := range 3 {
			e.next(t, i, fmt.Sprintf("s%d@0", i))
		}
		e.next(t, 3, io.EOF.Error())
		e.meter.is(t, map[stream.Instrument]int64{SplitsAssigned: 3, UnassignedSplits: 0, ReadSessionsCreated: 1,
			QueryJobsSubmitted: 0, QueryJobsReattached: 0}) // SRC-89
		if s.created.Load() != 1 || s.dialed.Load() != 1 || s.closed.Load() != 1 {
			t.Errorf("%d sessions, %d connections, %d of them closed", s.created.Load(), s.dialed.Load(), s.closed.Load())
		}
	}))
	t.Run("SRC-15 restored with splits", bubble(func(t *testing.T) {
		first := enumerate(t, &fakeService{streams: 3}, 1, nil)
		first.next(t, 0, "s0@0")
		state := first.snapshot(t)
		s := &fakeService{}
		e := enumerate(t, s, 1, state)
		e.meter.is(t, map[stream.Instrument]int64{ReadSessionsCreated: 0, UnassignedSplits: 2})
		e.next(t, 0, "s1@0")
		e.next(t, 0, "s2@0")
		e.next(t, 0, io.EOF.Error())
		if n, known := e.Size(); n != 1000 || !known || s.dialed.Load() != 0 {
			t.Errorf("size %d (known: %v) after %d connections", n, known, s.dialed.Load())
		}
		if log := e.log.at(slog.LevelWarn); log != "" {
			t.Error(log)
		}
	}))
	t.Run("SRC-16 restored with none left", bubble(func(t *testing.T) {
		first := enumerate(t, &fakeService{streams: 1}, 1, nil)
		first.next(t, 0, "s0@0")
		s := &fakeService{streams: 1}
		e := enumerate(t, s, 1, first.snapshot(t))
		e.next(t, 0, io.EOF.Error())
		if s.dialed.Load() != 0 {
			t.Error("a plan that was handed out was made again")
		}
	}))
	t.Run("SRC-17 restored before the plan", bubble(func(t *testing.T) {
		first := enumerate(t, &fakeService{hangs: true}, 1, nil)
		e := enumerate(t, &fakeService{streams: 1}, 1, first.snapshot(t))
		e.next(t, 0, "s0@0")
	}))
	t.Run("a plan nobody asked for yet is in the snapshot", bubble(func(t *testing.T) {
		first := enumerate(t, &fakeService{streams: 1}, 1, nil)
		e := enumerate(t, &fakeService{}, 1, first.snapshot(t))
		e.next(t, 0, "s0@0")
	}))
	t.Run("SRC-18 restored after the end of the session", bubble(func(t *testing.T) {
		first := enumerate(t, &fakeService{streams: 1}, 1, nil)
		state := first.snapshot(t)
		<-time.After(6*time.Hour + 1) // virtual
		e := enumerate(t, &fakeService{}, 1, state)
		if log := e.log.at(slog.LevelWarn); !strings.Contains(log, "expired") || strings.Contains(log, "\n") {
			t.Errorf("warned %q, want one line", log)
		}
		e.next(t, 0, "s0@0")
	}))
	t.Run("SRC-19 SRC-20 asked before the plan", bubble(func(t *testing.T) {
		s := &fakeService{streams: 3, gate: make(chan struct{})}
		e := enumerate(t, s, 3, nil)
		// Lanes 2, 1 and 0 ask; lane 1 is gone when the plan is there, and no split is kept for it.
		for _, lane := range []int{2, 1, 0} {
			e.next(t, lane, stream.ErrNoSplitYet.Error())
		}
		if e.woken != 0 {
			t.Error("woken before the plan")
		}
		close(s.gate)
		synctest.Wait()
		if e.woken != 1 {
			t.Errorf("woken %d times", e.woken)
		}
		e.next(t, 2, "s0@0")
		e.next(t, 0, "s1@0")
		e.meter.is(t, map[stream.Instrument]int64{SplitsAssigned: 2, UnassignedSplits: 1})
		enumerate(t, &fakeService{}, 1, e.snapshot(t)).next(t, 0, "s2@0")
	}))
	t.Run("SRC-22 returned", bubble(func(t *testing.T) {
		e := enumerate(t, &fakeService{streams: 2}, 1, nil)
		s := e.next(t, 0, "s0@0")
		s.Position = 4
		e.Return(0, []stream.Split{s})
		e.meter.is(t, map[stream.Instrument]int64{SplitsReturned: 1, UnassignedSplits: 2})
		restored := enumerate(t, &fakeService{}, 1, e.snapshot(t))
		for _, e := range []*enumeratorTest{e, restored} {
			e.next(t, 1, "s1@0")
			if got := e.next(t, 1, "s0@4"); string(got.Data) != string(s.Data) {
				t.Error("the split's bytes have changed")
			}
		}
	}))
	t.Run("returned bytes that are no split", bubble(func(t *testing.T) {
		e := enumerate(t, &fakeService{streams: 1}, 1, nil)
		e.Return(0, []stream.Split{{ID: "s0", Data: []byte("?")}})
		_, err := e.Next(0)
		_, err2 := e.Snapshot()
		if err == nil || err2 == nil {
			t.Errorf("got %v and %v", err, err2)
		}
	}))
	t.Run("SRC-23 the plan fails", bubble(func(t *testing.T) {
		boom := errors.New("boom")
		s := &fakeService{err: boom}
		e := enumerate(t, s, 1, nil)
		_, err := e.Next(0)
		if p, ok := errors.AsType[*PlanError](err); !ok || p.What != "p.d.t" || !errors.Is(err, boom) ||
			!strings.HasPrefix(err.Error(), "failed to plan the BigQuery read of p.d.t: ") {
			t.Errorf("got %v", err)
		}
		if _, err := e.Snapshot(); err == nil {
			t.Error("a plan that failed was remembered")
		}
		e.meter.is(t, map[stream.Instrument]int64{ReadSessionsCreated: 0})
		if s.closed.Load() != 1 {
			t.Error("the connection is still open")
		}
	}))
	t.Run("SRC-24 closed while planning", bubble(func(t *testing.T) {
		s := &fakeService{hangs: true}
		e := enumerate(t, s, 1, nil)
		for range 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if s.created.Load() != 1 || s.closed.Load() != 1 || e.woken != 1 || e.planned || len(e.pending) != 0 {
			t.Errorf("%d sessions, %d connections closed, planned: %v", s.created.Load(), s.closed.Load(), e.planned)
		}
		if log := e.log.at(slog.LevelError) + e.log.at(slog.LevelWarn); log != "" {
			t.Error(log)
		}
	}))
	for name, c := range map[string]error{"SRC-24 the session comes after Close": nil, "SRC-23 the plan fails after Close": errors.New("boom")} {
		t.Run(name, bubble(func(t *testing.T) {
			s := &fakeService{streams: 2, gate: make(chan struct{}), err: c}
			e := enumerate(t, s, 1, nil)
			ended := make(chan error)
			go func() { ended <- e.Close() }()
			synctest.Wait()
			close(s.gate) // the service answers all the same
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if s.created.Load() != 1 || s.closed.Load() != 1 || e.planned || len(e.pending) != 0 {
				t.Errorf("%d sessions, %d connections closed, planned: %v", s.created.Load(), s.closed.Load(), e.planned)
			}
			e.meter.is(t, map[stream.Instrument]int64{ReadSessionsCreated: 0, UnassignedSplits: 0})
			if log := e.log.at(slog.LevelError) + e.log.at(slog.LevelWarn) + e.log.at(slog.LevelInfo); log != "" {
				t.Error(log)
			}
		}))
	}
	t.Run("SRC-25 two enumerators of one source", bubble(func(t *testing.T) {
		s := &fakeService{streams: 1, gate: make(chan struct{})}
		c := testConfig(s.dial) // which is all that a source hands to its enumerators
		first, second := enumerateFrom(t, c, 1, nil), enumerateFrom(t, c, 1, nil)
		go first.Close() // ends once the gate is open
		synctest.Wait()
		close(s.gate)
		synctest.Wait()
		second.next(t, 0, "s0@0")
		if s.dialed.Load() != 2 || s.closed.Load() != 2 || first.planned {
			t.Errorf("%d connections, %d closed, the first planned: %v", s.dialed.Load(), s.closed.Load(), first.planned)
		}
	}))
	for _, c := range []struct {
		streams, warnings int
	}{{1, 1}, {4, 0}, {0, 0}} {
		t.Run(fmt.Sprintf("SRC-26 %d streams for 4 lanes", c.streams), bubble(func(t *testing.T) {
			e := enumerate(t, &fakeService{streams: c.streams}, 4, nil)
			for i := range c.streams {
				e.next(t, i, fmt.Sprintf("s%d@0", i))
			}
			e.next(t, 0, io.EOF.Error())
			log := e.log.at(slog.LevelWarn)
			if got := strings.Count(log, "fewer read streams than there are lanes"); got != c.warnings || c.warnings == 0 && log != "" {
				t.Errorf("warned %q", log)
			}
		}))
	}
}
