package storagewrite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// farEnd is the service's end of append streams, under virtual time: what it answers, and when, is the test's. What
// the real protocol does is tested against the local service.
type farEnd struct {
	mu       sync.Mutex // guards what follows
	opened   int
	requests []*storagepb.AppendRowsRequest // of all streams
	at       []time.Time                    // when each arrived
	refuse   []error                        // openings to fail, in order
	// reply is called for every request, with its number over all streams; an error ends the stream.
	reply func(n int) (answers, error)
}

type answers []*storagepb.AppendRowsResponse

func (f *farEnd) open(ctx context.Context) (appendStream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	if len(f.refuse) > 0 {
		err := f.refuse[0]
		f.refuse = f.refuse[1:]
		if err != nil {
			return nil, err
		}
	}
	return &farStream{end: f, ctx: ctx, answers: make(chan func() (*storagepb.AppendRowsResponse, error), 1000)}, nil
}

type farStream struct {
	end     *farEnd
	ctx     context.Context
	answers chan func() (*storagepb.AppendRowsResponse, error)
	over    atomic.Bool
}

func (s *farStream) SendMsg(m any) error {
	if s.over.Load() || s.ctx.Err() != nil {
		return io.EOF
	}
	out, err := codec{}.Marshal(m)
	if err != nil {
		return err
	}
	r := new(storagepb.AppendRowsRequest)
	if err := proto.Unmarshal(out.Materialize(), r); err != nil {
		return err
	}
	out.Free()
	s.end.mu.Lock()
	n := len(s.end.requests)
	s.end.requests = append(s.end.requests, r)
	s.end.at = append(s.end.at, time.Now())
	s.end.mu.Unlock()
	as, err := s.end.reply(n)
	for _, a := range as {
		s.answers <- func() (*storagepb.AppendRowsResponse, error) { return a, nil }
	}
	if err != nil {
		s.answers <- func() (*storagepb.AppendRowsResponse, error) { return nil, err }
	}
	return nil
}

func (s *farStream) RecvMsg(m any) error {
	select {
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	case f := <-s.answers:
		a, err := f()
		if err != nil {
			s.over.Store(true)
			return err
		}
		proto.Merge(m.(proto.Message), a)
		return nil
	}
}

// rows are the rows of all requests that arrived, in order.
func (f *farEnd) rows() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []string
	for _, r := range f.requests {
		for _, b := range r.GetProtoRows().GetRows().GetSerializedRows() {
			rows = append(rows, string(b))
		}
	}
	return rows
}

func (f *farEnd) openings() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

var okAnswer = &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_AppendResult_{
	AppendResult: &storagepb.AppendRowsResponse_AppendResult{}}}

func takeAll(int) (answers, error) { return answers{okAnswer}, nil }

func silent(int) (answers, error) { return nil, nil }

// failing answers the first n requests with codes and then takes all.
func failing(codes ...codes.Code) func(int) (answers, error) {
	return func(n int) (answers, error) {
		if n < len(codes) {
			return answers{answer(status.New(codes[n], "scripted"))}, nil
		}
		return answers{okAnswer}, nil
	}
}

// rig is a connection with its far end.
type rig struct {
	t    *testing.T
	far  *farEnd
	conn *conn
	stop context.CancelFunc

	resends   tallyCounter
	attention atomic.Bool
	load      atomic.Int64
	cache     *bufferCache
}

type tallyCounter struct{ atomic.Int64 }

func (c *tallyCounter) Add(n int64) { c.Int64.Add(n) }

var _ stream.Counter = (*tallyCounter)(nil)

func testOptions() connOptions {
	return connOptions{
		resend:              retry.Schedule{Initial: 500 * time.Millisecond, Max: 30 * time.Second, Attempts: 6, Spread: retry.Below},
		maxRetryDuration:    5 * time.Minute,
		maxInflightRequests: 100,
		maxInflightBytes:    100 << 20,
		traceID:             "trace",
		rand:                func() float64 { return 0.999 },
		log:                 slog.New(slog.DiscardHandler),
	}
}

// connected runs a test against a connection, in a bubble of virtual time.
func connected(t *testing.T, far *farEnd, change func(*connOptions), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions()
		if change != nil {
			change(&o)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{t: t, far: far, conn: newConn(ctx, far.open, o), stop: cancel, cache: &bufferCache{bytes: 1 << 20}}
		defer func() {
			cancel()
			<-r.conn.ended
			requests, bytes := r.conn.window.load()
			if unsent := r.conn.window.unsent; requests != 0 || bytes != 0 || unsent != 0 || r.load.Load() != 0 {
				t.Errorf("permits were lost: %d requests, %d bytes, %d of them unsent, load %d", requests, bytes, unsent, r.load.Load())
			}
		}()
		test(r)
	})
}

func (r *rig) call(row string) *call {
	b := &batch{rows: r.cache.get(len(row) + 16), schema: &schema{encoded: []byte("\x0a\x03\x0a\x01A")}}
	b.push([]byte(row))
	return &call{batch: b, size: b.size(), stream: "s", offset: noOffset, resends: &r.resends,
		attention: &r.attention, load: &r.load, done: make(chan struct{})}
}

// append hands a row to the connection.
func (r *rig) append(row string) *call {
	r.t.Helper()
	c := r.call(row)
	if err := r.conn.append(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// result waits for a call and judges it.
func (r *rig) result(c *call) *verdict {
	r.t.Helper()
	if err := wait(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	return c.judge()
}

func (r *rig) ok(calls ...*call) {
	r.t.Helper()
	for _, c := range calls {
		if v := r.result(c); v != nil {
			r.t.Errorf("append failed: %v", v.err)
		}
	}
}

func TestInBandErrors(t *testing.T) {
	t.Parallel()
	t.Run("SW-134_RESOURCE_EXHAUSTED waits", func(t *testing.T) {
		far := &farEnd{reply: failing(codes.ResourceExhausted, codes.ResourceExhausted)}
		connected(t, far, nil, func(r *rig) {
			r.ok(r.append("a"))
			if got := r.resends.Load(); got != 2 {
				t.Errorf("%d resends", got)
			}
			first, second := far.at[1].Sub(far.at[0]), far.at[2].Sub(far.at[1])
			if first <= 0 || first >= 500*time.Millisecond || second <= 0 || second >= time.Second {
				t.Errorf("delays %v and %v", first, second)
			}
			if r.attention.Load() {
				t.Error("the writer was told")
			}
		})
	})
	t.Run("SW-135_UNAVAILABLE at once, six times at most", func(t *testing.T) {
		u := codes.Unavailable
		far := &farEnd{reply: failing(u, u, u, u, u, u)}
		connected(t, far, nil, func(r *rig) {
			start := time.Now()
			v := r.result(r.append("a"))
			if v == nil || v.kind != KindTransient || len(far.requests) != 6 || r.resends.Load() != 5 {
				t.Errorf("%+v after %d sends", v, len(far.requests))
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("it took %v", d)
			}
			r.ok(r.append("b"))
		})
	})
	t.Run("UNKNOWN surfaces", func(t *testing.T) {
		far := &farEnd{reply: failing(codes.Unknown)}
		connected(t, far, nil, func(r *rig) {
			if v := r.result(r.append("a")); v == nil || v.code != codes.Unknown || len(far.requests) != 1 {
				t.Errorf("%+v after %d sends", v, len(far.requests))
			}
			if !r.attention.Load() {
				t.Error("the writer was not told")
			}
		})
	})
	t.Run("a resend lets its neighbours pass", func(t *testing.T) {
		far := &farEnd{reply: failing(codes.ResourceExhausted)}
		connected(t, far, nil, func(r *rig) {
			a := r.append("a")
			synctest.Wait()
			r.ok(r.append("b"), a)
			if d := cmp.Diff([]string{"a", "b", "a"}, far.rows()); d != "" {
				t.Error(d)
			}
		})
	})
	t.Run("SW-136_offsets stay in order", func(t *testing.T) {
		far := &farEnd{reply: func(n int) (answers, error) {
			switch {
			case n < 3:
				return nil, nil // until all four are in flight
			case n == 3: // what follows the refused one meets a gap
				gap := answer(detailed(codes.OutOfRange, storagepb.StorageError_OFFSET_OUT_OF_RANGE))
				return answers{answer(status.New(codes.Internal, "scripted")), gap, gap, gap}, nil
			}
			return answers{okAnswer}, nil
		}}
		connected(t, far, nil, func(r *rig) {
			var calls []*call
			for i, row := range []string{"0", "1", "2", "3"} {
				c := r.call(row)
				c.offset = int64(i)
				if err := r.conn.append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				calls = append(calls, c)
			}
			r.ok(calls...)
			if d := cmp.Diff([]string{"0", "1", "2", "3", "0", "1", "2", "3"}, far.rows()); d != "" {
				t.Error(d)
			}
		})
	})
}

func TestConnectionLoss(t *testing.T) {
	t.Parallel()
	lose := func(err error) func(int) (answers, error) {
		return func(n int) (answers, error) {
			switch {
			case n < 2:
				return nil, nil
			case n == 2:
				return nil, err
			}
			return answers{okAnswer}, nil
		}
	}
	for name, err := range map[string]error{
		"SW-137_UNAVAILABLE": status.Error(codes.Unavailable, "gone"),
		"ABORTED":            status.Error(codes.Aborted, "idle too long"),
		"end of stream":      io.EOF,
	} {
		t.Run(name, func(t *testing.T) {
			far := &farEnd{reply: lose(err)}
			connected(t, far, nil, func(r *rig) {
				start := time.Now()
				r.ok(r.append("a"), r.append("b"), r.append("c"))
				if d := cmp.Diff([]string{"a", "b", "c", "a", "b", "c"}, far.rows()); d != "" {
					t.Error(d)
				}
				if d := time.Since(start); d != 50*time.Millisecond || far.openings() != 2 || r.resends.Load() != 3 {
					t.Errorf("reopened %d times after %v, %d resends", far.openings()-1, d, r.resends.Load())
				}
			})
		})
	}
	t.Run("SW-138_other statuses are final", func(t *testing.T) {
		far := &farEnd{reply: lose(status.Error(codes.InvalidArgument, "bad"))}
		connected(t, far, nil, func(r *rig) {
			a, b, c := r.append("a"), r.append("b"), r.append("c")
			if v := r.result(a); v == nil || v.code != codes.InvalidArgument || v.kind != KindTerminal {
				t.Errorf("oldest: %+v", v)
			}
			for _, c := range []*call{b, c, r.append("d")} {
				v := r.result(c)
				if v == nil || v.kind != KindDeadHandle || v.coded || !errors.Is(v.err, ErrConnClosed) {
					t.Fatalf("victim: %+v", v)
				}
				if _, is := status.FromError(v.err); is {
					t.Errorf("a victim has the status of somebody else's append: %v", v.err)
				}
			}
			if r.conn.alive() {
				t.Error("the connection lives")
			}
		})
	})
	t.Run("SW-139_down for too long", func(t *testing.T) {
		far := &farEnd{reply: func(int) (answers, error) {
			return nil, status.Error(codes.Unavailable, "down")
		}}
		connected(t, far, nil, func(r *rig) {
			start := time.Now()
			v := r.result(r.append("a"))
			if v == nil || v.code != codes.Unavailable {
				t.Errorf("%+v", v)
			}
			if d := time.Since(start); d < 5*time.Minute || d > 6*time.Minute+time.Second {
				t.Errorf("gave up after %v", d)
			}
		})
	})
	t.Run("SW-139_no limit", func(t *testing.T) {
		far := &farEnd{reply: takeAll}
		for range 700 { // about eleven hours of openings
			far.refuse = append(far.refuse, status.Error(codes.Unavailable, "down"))
		}
		connected(t, far, func(o *connOptions) { o.maxRetryDuration = retry.NoLimit }, func(r *rig) {
			r.ok(r.append("a"))
		})
	})
	t.Run("an answer in between starts the clock anew", func(t *testing.T) {
		far := &farEnd{reply: func(n int) (answers, error) {
			if n%2 == 0 {
				return nil, status.Error(codes.Unavailable, "flapping")
			}
			return answers{okAnswer}, nil
		}}
		connected(t, far, nil, func(r *rig) {
			start := time.Now()
			for range 10 {
				r.ok(r.append("a"))
			}
			if d := time.Since(start); d != 10*50*time.Millisecond {
				t.Errorf("took %v: the delay grew", d)
			}
		})
	})
	t.Run("idle streams are reopened by the next append", func(t *testing.T) {
		far := &farEnd{reply: takeAll}
		connected(t, far, nil, func(r *rig) {
			r.ok(r.append("a"))
			r.conn.mu.Lock()
			r.conn.reset(status.Error(codes.Aborted, "closed for being idle"))
			r.conn.mu.Unlock()
			synctest.Wait()
			start := time.Now()
			r.ok(r.append("b"))
			if d := time.Since(start); d != 0 || !r.conn.alive() {
				t.Errorf("took %v", d)
			}
		})
	})
	t.Run("SW-140_openings that fail for good lose no permit", func(t *testing.T) {
		far := &farEnd{refuse: []error{status.Error(codes.PermissionDenied, "no")}}
		connected(t, far, func(o *connOptions) { o.maxInflightRequests = 2 }, func(r *rig) {
			if v := r.result(r.append("a")); v == nil || v.code != codes.PermissionDenied {
				t.Errorf("%+v", v)
			}
			for range 5 { // more than the window
				if v := r.result(r.append("b")); v == nil || v.kind != KindDeadHandle {
					t.Errorf("%+v", v)
				}
			}
		})
	})
	t.Run("SW-144_ctx ends while the window is full", func(t *testing.T) {
		far := &farEnd{reply: silent}
		connected(t, far, func(o *connOptions) { o.maxInflightRequests = 1 }, func(r *rig) {
			r.append("a")
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
			defer cancel()
			if err := r.conn.append(ctx, r.call("b")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff([]string{"a"}, far.rows()); d != "" {
				t.Error(d)
			}
		})
	})
	t.Run("an answer nobody asked for", func(t *testing.T) {
		far := &farEnd{reply: func(n int) (answers, error) {
			if n == 0 {
				return answers{okAnswer, okAnswer}, nil
			}
			return answers{okAnswer}, nil
		}}
		connected(t, far, nil, func(r *rig) {
			r.ok(r.append("a"))
			synctest.Wait()
			r.ok(r.append("b"))
			if far.openings() != 2 {
				t.Errorf("%d streams", far.openings())
			}
		})
	})
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	t.Run("SW-141_no answer", func(t *testing.T) {
		connected(t, &farEnd{reply: silent}, nil, func(r *rig) {
			start := time.Now()
			a := r.append("a")
			time.Sleep(time.Minute)
			b := r.append("b")
			if v := r.result(a); v == nil || !errors.Is(v.err, ErrResponseTimeout) || v.kind != KindDeadHandle {
				t.Errorf("oldest: %+v", v)
			}
			if v := r.result(b); v == nil || !errors.Is(v.err, ErrConnClosed) {
				t.Errorf("other: %+v", v)
			}
			if d := time.Since(start); d != 5*time.Minute {
				t.Errorf("after %v", d)
			}
		})
	})
	t.Run("SW-141_a resend starts the clock anew", func(t *testing.T) {
		far := &farEnd{}
		far.reply = func(n int) (answers, error) {
			if n == 0 {
				time.Sleep(4 * time.Minute)
				return answers{answer(status.New(codes.Unavailable, "scripted"))}, nil
			}
			return nil, nil
		}
		connected(t, far, nil, func(r *rig) {
			start := time.Now()
			v := r.result(r.append("a"))
			if d := time.Since(start); v == nil || !errors.Is(v.err, ErrResponseTimeout) || d != 9*time.Minute {
				t.Errorf("%+v after %v", v, d)
			}
		})
	})
	t.Run("a sender that cannot send is freed", func(t *testing.T) {
		connected(t, &farEnd{}, nil, func(r *rig) {
			r.far.reply = func(int) (answers, error) {
				time.Sleep(time.Hour) // a service that reads nothing
				return nil, nil
			}
			v := r.result(r.append("a"))
			if v == nil || !errors.Is(v.err, ErrResponseTimeout) {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("idle connections are left alone", func(t *testing.T) {
		connected(t, &farEnd{reply: takeAll}, nil, func(r *rig) {
			r.ok(r.append("a"))
			time.Sleep(time.Hour)
			r.ok(r.append("b"))
			if r.far.openings() != 1 {
				t.Errorf("%d openings", r.far.openings())
			}
		})
	})
}

func TestElision(t *testing.T) {
	t.Parallel()
	t.Run("SW-142_tables alternate", func(t *testing.T) {
		far := &farEnd{reply: takeAll}
		connected(t, far, nil, func(r *rig) {
			other := &schema{encoded: []byte("\x0a\x03\x0a\x01B")}
			for i, name := range []string{"s", "s", "t", "s", "s"} {
				c := r.call("a")
				c.stream = name
				if name == "t" || i == 4 {
					c.batch.schema = other
				}
				if err := r.conn.append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				r.ok(c)
			}
			type seen struct{ stream, schema, trace string }
			var got []seen
			for _, q := range far.requests {
				got = append(got, seen{q.WriteStream, q.GetProtoRows().GetWriterSchema().GetProtoDescriptor().GetName(), q.TraceId})
			}
			want := []seen{{"s", "A", "trace"}, {"s", "", ""}, {"t", "B", ""}, {"s", "A", ""}, {"s", "B", ""}}
			if !cmp.Equal(want, got, cmp.AllowUnexported(seen{})) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	})
	t.Run("a refused request teaches nothing", func(t *testing.T) {
		far := &farEnd{reply: failing(codes.NotFound)}
		connected(t, far, nil, func(r *rig) {
			if v := r.result(r.append("a")); v == nil {
				t.Error("the request was not refused")
			}
			r.ok(r.append("b"))
			r.ok(r.append("c"))
			for i, want := range []bool{true, true, false} {
				if got := far.requests[i].GetProtoRows().GetWriterSchema() != nil; got != want {
					t.Errorf("request %d has a schema: %v", i, got)
				}
			}
		})
	})
	t.Run("a new stream is told everything", func(t *testing.T) {
		far := &farEnd{reply: func(n int) (answers, error) {
			if n == 1 {
				return nil, io.EOF
			}
			return answers{okAnswer}, nil
		}}
		connected(t, far, nil, func(r *rig) {
			r.ok(r.append("a"))
			r.ok(r.append("b"))
			q := far.requests[2]
			if q.GetProtoRows().GetWriterSchema() == nil || q.TraceId != "trace" {
				t.Errorf("resent as %v", q)
			}
		})
	})
}

func TestPool(t *testing.T) {
	t.Parallel()
	pooled := func(t *testing.T, minConns, maxConns int, far *farEnd, test func(*rig, *pool)) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(far.open, testOptions(), minConns, maxConns)
			defer p.close()
			test(&rig{t: t, far: far, cache: &bufferCache{bytes: 1 << 20}}, p)
		})
	}
	t.Run("opens the minimum before sharing", func(t *testing.T) {
		pooled(t, 2, 20, &farEnd{reply: takeAll}, func(r *rig, p *pool) {
			a, b, c := newHandle(p, "a"), newHandle(p, "b"), newHandle(p, "c")
			if a.conn == b.conn || c.conn != a.conn && c.conn != b.conn {
				t.Error("handles are spread wrongly")
			}
		})
	})
	t.Run("SW-143_a hot table gets more connections, up to the maximum", func(t *testing.T) {
		pooled(t, 1, 3, &farEnd{reply: silent}, func(r *rig, p *pool) {
			h := newHandle(p, "hot")
			first := h.conn
			for range 21 { // more than a fifth of 100
				if err := h.append(t.Context(), r.call("x")); err != nil {
					t.Fatal(err)
				}
			}
			if h.conn != first {
				t.Fatal("left a connection that was not busy")
			}
			if err := h.append(t.Context(), r.call("x")); err != nil {
				t.Fatal(err)
			}
			if h.conn == first {
				t.Error("stayed with a busy connection")
			}
			for range 100 {
				if err := h.append(t.Context(), r.call("x")); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(p.conns[formMessages]); n != 3 {
				t.Errorf("%d connections", n)
			}
		})
	})
	t.Run("messages and Arrow batches have connections of their own", func(t *testing.T) {
		pooled(t, 1, 20, &farEnd{reply: takeAll}, func(r *rig, p *pool) {
			h := newHandle(p, "t")
			for i := range 4 {
				c := r.call("x")
				c.batch.schema = &schema{encoded: encodeSchema(nil), arrow: i%2 == 1}
				if err := h.append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				r.ok(c)
			}
			if h.conn == h.arrow || len(p.conns[formMessages]) != 1 || len(p.conns[formArrow]) != 1 {
				t.Errorf("connections: %d and %d", len(p.conns[formMessages]), len(p.conns[formArrow]))
			}
		})
	})
	t.Run("an answer owed for 3 s makes busy", func(t *testing.T) {
		pooled(t, 1, 2, &farEnd{reply: silent}, func(r *rig, p *pool) {
			h := newHandle(p, "slow")
			if err := h.append(t.Context(), r.call("x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if h.conn.busy() {
				t.Error("busy after 3 s")
			}
			time.Sleep(time.Nanosecond)
			if !h.conn.busy() {
				t.Error("not busy after more than 3 s")
			}
		})
	})
	t.Run("an append that waits 100 ms to be sent makes busy", func(t *testing.T) {
		pooled(t, 1, 2, &farEnd{}, func(r *rig, p *pool) {
			taking := make(chan struct{})
			r.far.reply = func(int) (answers, error) { <-taking; return answers{okAnswer}, nil }
			h := newHandle(p, "t")
			first := h.conn
			calls := []*call{r.call("x"), r.call("x"), r.call("x")}
			add := func(i int) {
				t.Helper()
				if err := h.append(t.Context(), calls[i]); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			add(0)
			add(1)
			time.Sleep(slow)
			if h.conn.busy() {
				t.Error("busy after 100 ms")
			}
			time.Sleep(time.Nanosecond)
			if add(2); h.conn == first {
				t.Error("stayed with a connection that does not take what it has")
			}
			close(taking)
			r.ok(calls...)
		})
	})
	t.Run("a dead connection stays its handle's and nobody else's", func(t *testing.T) {
		far := &farEnd{refuse: []error{status.Error(codes.PermissionDenied, "no")}, reply: takeAll}
		pooled(t, 1, 20, far, func(r *rig, p *pool) {
			h := newHandle(p, "t")
			for range 2 {
				c := r.call("x")
				if err := h.append(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if r.result(c) == nil {
					t.Error("an append succeeded on a dead connection")
				}
			}
			c := r.call("x")
			if err := newHandle(p, "t").append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			r.ok(c)
		})
	})
	t.Run("SW-158_close ends what is in flight", func(t *testing.T) {
		pooled(t, 1, 20, &farEnd{reply: silent}, func(r *rig, p *pool) {
			c := r.call("x")
			if err := newHandle(p, "t").append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			p.close()
			if v := r.result(c); v == nil || !errors.Is(v.err, ErrConnClosed) {
				t.Errorf("%+v", v)
			}
		})
	})
}
