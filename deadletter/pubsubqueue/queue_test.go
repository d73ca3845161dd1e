package pubsubqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
	"github.com/millrace-dev/millrace/stream"
)

const (
	topic        = "projects/p/topics/dead"
	subscription = "projects/p/subscriptions/look"
)

// world is the official fake with a topic and a subscription, and a place between it and the queue where messages can be held.
type world struct {
	*pstest.Server
	held    chan struct{}          // publishing what is held goes on when it is closed
	hold    func(data []byte) bool // called from several goroutines; nil holds nothing
	arrived chan string            // data of requests that are held
	meter   *meter
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{Server: pstest.NewServer(), held: make(chan struct{}), arrived: make(chan string, 100), meter: &meter{}}
	t.Cleanup(func() { w.Server.Close() })
	conn, err := grpc.NewClient(w.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pubsub.NewClient(t.Context(), "p", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: subscription, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	return w
}

// queue makes a queue over the world, each message in a request of its own.
func (w *world) queue(t *testing.T, o pubsubqueue.Options) *pubsubqueue.Queue {
	t.Helper()
	o.Endpoint = w.Addr
	q, err := pubsubqueue.New(topic, o)
	if err != nil {
		t.Fatal(err)
	}
	return q.With(option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(w.between)))
}

func (w *world) between(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if p, ok := req.(*pubsubpb.PublishRequest); ok && w.hold != nil && w.hold(p.Messages[0].Data) {
		w.arrived <- string(p.Messages[0].Data[:min(4, len(p.Messages[0].Data))])
		select {
		case <-w.held:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return call(ctx, method, req, reply, cc, opts...)
}

func (w *world) handler(t *testing.T, o pubsubqueue.Options) stream.FailureHandler {
	t.Helper()
	h, err := w.queue(t, o).NewHandler(t.Context(), stream.HandlerContext{Job: "j", Lane: 3, Meter: w.meter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// alone is a record whose message shares no request: the client bundles up to 1 MB.
func alone(name string) *stream.FailedRecord {
	return &stream.FailedRecord{Connector: "bigquery", Destination: "p.d.t", Reason: name, Original: append([]byte(name), bytes.Repeat([]byte{'.'}, 1<<20)...)}
}

func TestEnvelope(t *testing.T) {
	w := start(t)
	h := w.handler(t, pubsubqueue.Options{})
	long := strings.Repeat("é", 1000)
	for _, f := range []stream.FailedRecord{
		{Connector: "bigquery", Destination: "p.d.t", Reason: "wrong", Original: []byte("a,1\x00\xff"), Split: "f[0:9]", At: stream.Location{Name: "f", Line: 7, Row: 100, Context: "x,y"}},
		{Connector: "bigquery", Destination: stream.Unresolved, Reason: "no place", Original: []byte{}},
		{Connector: "bigquery", Destination: long, Reason: long, Row: []byte{1, 2}, At: stream.Location{Context: long}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "long", Original: []byte("beg"), Err: stream.ErrCut},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "bad \xff\n\x00"},
	} {
		if err := h.Handle(t.Context(), &f); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	byReason := map[string]*pstest.Message{}
	for _, m := range w.Messages() {
		byReason[m.Attributes["dlq-error"]] = m
		at, err := time.Parse(time.RFC3339Nano, m.Attributes["dlq-timestamp"])
		if err != nil || time.Since(at) > time.Hour || at.Location() != time.UTC {
			t.Errorf("dlq-timestamp %q", m.Attributes["dlq-timestamp"])
		}
		delete(m.Attributes, "dlq-timestamp")
	}
	first := byReason["wrong"]
	if diff := cmp.Diff(map[string]string{"dlq-connector": "bigquery", "dlq-destination": "p.d.t", "dlq-error": "wrong", "dlq-subtask": "3", "dlq-job": "j",
		"dlq-file": "f", "dlq-split": "f[0:9]", "dlq-line": "7", "dlq-position": "100", "dlq-payload": "record", "dlq-context": "x,y"}, first.Attributes); diff != "" {
		t.Error(diff)
	}
	if string(first.Data) != "a,1\x00\xff" {
		t.Errorf("data %q", first.Data)
	}
	if m := byReason["no place"]; m == nil || len(m.Data) > 0 || m.Attributes["dlq-destination"] != "unresolved" || m.Attributes["dlq-payload"] != "record" {
		t.Errorf("an empty record: %+v", m)
	}
	cut := strings.Repeat("é", 510) + "..."
	if m := byReason[cut]; m == nil || m.Attributes["dlq-destination"] != cut || m.Attributes["dlq-payload"] != "row" || m.Attributes["dlq-context"] != "" {
		t.Errorf("long text: %v", slices.Collect(maps.Keys(byReason)))
	}
	if m := byReason["long"]; m == nil || m.Attributes["dlq-payload"] != "cut" {
		t.Errorf("a record that was cut: %+v", m)
	}
	if m := byReason["bad \ufffd\n\x00"]; m == nil || m.Attributes["dlq-payload"] != "none" {
		t.Errorf("text that is no UTF-8: %v", slices.Collect(maps.Keys(byReason)))
	}
}

func TestAttributesFit(t *testing.T) {
	t.Run("SW-145 1024 bytes are kept, more are cut between characters, invalid UTF-8 is replaced", func(t *testing.T) {
		exact := strings.Repeat("x", 1024)
		if pubsubqueue.Fit(exact) != exact {
			t.Error("1024 bytes were cut")
		}
		if got := pubsubqueue.Fit(exact + "x"); got != exact[:1021]+"..." {
			t.Errorf("1025 bytes became %d, ending %q", len(got), got[len(got)-5:])
		}
		for shift := range 4 {
			got := pubsubqueue.Fit(strings.Repeat("x", shift) + strings.Repeat("𝄞", 300))
			if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasSuffix(got, "𝄞...") {
				t.Errorf("a cut inside a character: %d bytes, ending %q", len(got), got[len(got)-8:])
			}
		}
		if got := pubsubqueue.Fit("a\xffb"); got != "a\ufffdb" {
			t.Errorf("invalid UTF-8 became %q", got)
		}
		if got := pubsubqueue.Fit(strings.Repeat("\xff.", 800)); len(got) > 1024 || !utf8.ValidString(got) {
			t.Errorf("much invalid UTF-8 became %d bytes", len(got))
		}
	})
}

// returns runs Handle, which returns although the message is held.
func returns(t *testing.T, w *world, h stream.FailureHandler, f *stream.FailedRecord) {
	t.Helper()
	if err := h.Handle(t.Context(), f); err != nil { // the test's deadline ends one that waits
		t.Fatal(err)
	}
	<-w.arrived
}

// waits runs Handle and requires that it does not return before the messages that are held are let go.
func waits(t *testing.T, w *world, h stream.FailureHandler, f *stream.FailedRecord) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- h.Handle(t.Context(), f) }() // joined below
	<-w.arrived                                      // it is on its way now, so that whoever does not wait has no reason to
	select {
	case <-done:
		t.Error("the offer did not wait")
		return
	case <-time.After(100 * time.Millisecond):
	}
	close(w.held)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBoundOfMessagesInFlight(t *testing.T) {
	all := func([]byte) bool { return true }
	t.Run("SW-146 bound 0: each offer waits", func(t *testing.T) {
		w := start(t)
		w.hold = all
		waits(t, w, w.handler(t, pubsubqueue.Options{MaxInFlightMessages: pubsubqueue.Synchronous}), alone("a"))
		if n := len(w.Messages()); n != 1 || w.meter.value("published") != 1 {
			t.Errorf("%d messages, %d published", n, w.meter.value("published"))
		}
	})
	t.Run("SW-146 bound 2: the second offer waits", func(t *testing.T) {
		w := start(t)
		w.hold = all
		h := w.handler(t, pubsubqueue.Options{MaxInFlightMessages: 2})
		returns(t, w, h, alone("a"))
		if n := w.meter.value("in_flight"); n != 1 {
			t.Errorf("%d in flight", n)
		}
		waits(t, w, h, alone("b"))
		if n := w.meter.value("in_flight"); n != 0 || w.meter.value("published") != 2 {
			t.Errorf("%d in flight, %d published", n, w.meter.value("published"))
		}
	})
	t.Run("SW-146 bound -1: only the flush waits", func(t *testing.T) {
		w := start(t)
		w.hold = all
		h := w.handler(t, pubsubqueue.Options{MaxInFlightMessages: pubsubqueue.Unbounded})
		for i := range 80 { // more than the bytes that any other bound allows
			if err := h.Handle(t.Context(), alone(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.meter.value("published"); n != 0 {
			t.Errorf("%d published before the flush", n)
		}
		go func() { <-w.arrived; close(w.held) }() // ends with the first message, which the flush waits for
		if err := h.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Messages()); n != 80 {
			t.Errorf("%d messages", n)
		}
	})
	t.Run("bytes bound what is in flight too", func(t *testing.T) {
		w := start(t)
		h := w.handler(t, pubsubqueue.Options{})
		for i := range 70 {
			if err := h.Handle(t.Context(), alone(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.meter.value("published"); n < 60 {
			t.Errorf("%d of 70 MiB were waited for", n)
		}
	})
}

func TestFlushTimeout(t *testing.T) {
	t.Run("SW-147 one of three is unresolved", func(t *testing.T) {
		w := start(t)
		stuck := func(data []byte) bool { return bytes.HasPrefix(data, []byte("stuck")) }
		w.hold = stuck
		h := w.handler(t, pubsubqueue.Options{FlushTimeout: 300 * time.Millisecond})
		for _, name := range []string{"a", "stuck", "b"} {
			if err := h.Handle(t.Context(), alone(name)); err != nil {
				t.Fatal(err)
			}
		}
		<-w.arrived
		err := h.Flush(t.Context())
		if err == nil || !strings.Contains(err.Error(), "1 of 3 were unresolved after 300ms; nothing is dropped") || !strings.Contains(err.Error(), topic) {
			t.Errorf("the flush says %v", err)
		}
		if n := w.meter.value("published"); n != 2 || w.meter.value("in_flight") != 0 {
			t.Errorf("%d published, %d in flight", n, w.meter.value("in_flight"))
		}
		if ms := w.meter.value("flush_ms"); ms < 300 || ms != w.meter.value("longest_flush_ms") {
			t.Errorf("the wait took %d ms, the longest %d", ms, w.meter.value("longest_flush_ms"))
		}
		// The list is cleared: the next flush has nothing to wait for. Nothing was cancelled: the message arrives late.
		if err := h.Flush(t.Context()); err != nil {
			t.Errorf("the next flush: %v", err)
		}
		close(w.held)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if n := len(w.Messages()); n != 3 {
			t.Errorf("%d messages in the end", n)
		}
	})
	t.Run("SW-148 a flush of nothing changes no gauge", func(t *testing.T) {
		w := start(t)
		h := w.handler(t, pubsubqueue.Options{})
		if err := errors.Join(h.Handle(t.Context(), alone("a")), h.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		w.meter.set("flush_ms", -7)
		w.meter.set("longest_flush_ms", -7)
		if err := h.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.meter.value("flush_ms") != -7 || w.meter.value("longest_flush_ms") != -7 || w.meter.value("published") != 1 {
			t.Errorf("gauges moved: %v", w.meter.values)
		}
	})
	t.Run("the end of the context ends the wait", func(t *testing.T) {
		w := start(t)
		w.hold = func([]byte) bool { return true }
		h := w.handler(t, pubsubqueue.Options{})
		if err := h.Handle(t.Context(), alone("a")); err != nil {
			t.Fatal(err)
		}
		<-w.arrived
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := h.Flush(ctx); !errors.Is(err, gone) {
			t.Errorf("the flush says %v", err)
		}
		close(w.held)
	})
}

func TestPublishFails(t *testing.T) {
	w := start(t)
	q, err := pubsubqueue.New("projects/p/topics/nowhere", pubsubqueue.Options{Endpoint: w.Addr})
	if err != nil {
		t.Fatal(err)
	}
	h, err := q.NewHandler(t.Context(), stream.HandlerContext{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Handle(t.Context(), alone("a")); err != nil {
		t.Fatal(err)
	}
	if err := h.Flush(t.Context()); status.Code(errors.Unwrap(err)) != codes.NotFound || !strings.Contains(err.Error(), "1 of 1 failed") {
		t.Errorf("a topic that is not there: %v", err)
	}
	// What no message can hold ends the job, and is not tried again.
	err = h.Handle(t.Context(), &stream.FailedRecord{Connector: "c", Original: make([]byte, 10_000_000), At: stream.Location{Name: "f", Line: 7}})
	var lasting interface{ Permanent() bool }
	if !errors.As(err, &lasting) || !lasting.Permanent() || !strings.Contains(err.Error(), "dead letter of f:7: ") {
		t.Errorf("a record that is too large: %v", err)
	}
}

// A publisher that does not stop is left behind, and nothing of it stays.
func TestShutdownTimeout(t *testing.T) {
	w := start(t)
	w.hold = func([]byte) bool { return true }
	h := w.handler(t, pubsubqueue.Options{ShutdownTimeout: 50 * time.Millisecond})
	if err := h.Handle(t.Context(), alone("a")); err != nil {
		t.Fatal(err)
	}
	<-w.arrived
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if n := w.meter.value("shutdowns_abandoned"); n != 1 {
		t.Errorf("%d shutdowns abandoned", n)
	}
	close(w.held)
	if err := h.Close(); err != nil || w.meter.value("shutdowns_abandoned") != 1 {
		t.Errorf("closed twice: %v", err)
	}
}

func TestPeek(t *testing.T) {
	w := start(t)
	h := w.handler(t, pubsubqueue.Options{})
	want := map[string]bool{}
	for i := range 250 {
		f := stream.FailedRecord{Connector: "c", Destination: "d", Reason: "r\x1b", Original: fmt.Appendf(nil, "record %d", i), At: stream.Location{Name: "f", Row: int64(i)}}
		if err := h.Handle(t.Context(), &f); err != nil {
			t.Fatal(err)
		}
		want[string(f.Original)] = true
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Publish(topic, []byte("foreign"), nil)
	for range 2 { // they are all there the second time
		left, foreign := maps.Clone(want), 0
		for l, err := range pubsubqueue.Peek(t.Context(), subscription, pubsubqueue.Options{Endpoint: w.Addr}) {
			var no *pubsubqueue.Foreign
			if errors.As(err, &no) {
				foreign++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			kind, payload := l.Payload()
			if !left[string(payload)] || kind != deadletter.Record || l.Time.IsZero() || l.Job != "j" || l.Reason != "r\x1b" {
				t.Errorf("letter %+v", l)
			}
			delete(left, string(payload))
		}
		if len(left) > 0 || foreign != 1 {
			t.Errorf("%d letters were not seen, %d foreign messages", len(left), foreign)
		}
	}
	for range pubsubqueue.Peek(t.Context(), subscription, pubsubqueue.Options{Endpoint: w.Addr}) {
		break
	}
	for _, err := range pubsubqueue.Peek(t.Context(), "projects/p/subscriptions/none", pubsubqueue.Options{Endpoint: w.Addr}) {
		if err == nil || !strings.Contains(err.Error(), "projects/p/subscriptions/none") {
			t.Errorf("a subscription that is not there: %v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		topic string
		o     pubsubqueue.Options
		want  string
	}{
		"no topic":          {" ", pubsubqueue.Options{}, "dead-letter topic is required"},
		"a bare name":       {"dead", pubsubqueue.Options{}, `dead-letter topic "dead": expected projects/PROJECT/topics/TOPIC`},
		"a hostile name":    {"projects/p/topics/a/../../x\n", pubsubqueue.Options{}, "expected projects/PROJECT/topics/TOPIC"},
		"in flight":         {topic, pubsubqueue.Options{MaxInFlightMessages: -3}, "MaxInFlightMessages -3"},
		"flush timeout":     {topic, pubsubqueue.Options{FlushTimeout: -time.Second}, "FlushTimeout must be at least 1ms: -1s"},
		"shutdown timeout":  {topic, pubsubqueue.Options{ShutdownTimeout: time.Microsecond}, "ShutdownTimeout must be at least 1ms: 1µs"},
		"endpoint":          {topic, pubsubqueue.Options{Endpoint: "localhost"}, "Endpoint must be host:port, was 'localhost'"},
		"blank key":         {topic, pubsubqueue.Options{KeyFile: " "}, "KeyFile must not be blank"},
		"key with emulator": {topic, pubsubqueue.Options{KeyFile: "k", Endpoint: "localhost:1"}, "KeyFile cannot be combined with Endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pubsubqueue.New(c.topic, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := pubsubqueue.New("", pubsubqueue.Options{MaxInFlightMessages: -9, Endpoint: "x"}); strings.Count(fmt.Sprint(err), "\n") != 2 {
		t.Errorf("not every fault at once: %v", err)
	}
}

// The key file is read when a handler is made, and what is wrong with it quotes nothing.
func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret-path")
	if err := os.WriteFile(path, []byte(`{"type":"authorized_user","private_key":"SECRET"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := pubsubqueue.New(topic, pubsubqueue.Options{KeyFile: path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.NewHandler(t.Context(), stream.HandlerContext{})
	if err == nil || !strings.HasSuffix(err.Error(), "cannot load the service account key file given for the dead-letter topic") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// meter keeps the values of the queue's instruments.
type meter struct {
	mu     sync.Mutex
	values map[string]int64
}

func (m *meter) set(name string, v int64) { m.add(name, func(int64) int64 { return v }) }

func (m *meter) add(name string, change func(int64) int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]int64{}
	}
	m.values[name] = change(m.values[name])
}

func (m *meter) value(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name]
}

func (m *meter) Counter(in stream.Instrument, _ ...stream.Label) stream.Counter {
	return instrument{m, strings.TrimPrefix(in.Name, "millrace.deadletter.")}
}

func (m *meter) Gauge(in stream.Instrument, _ ...stream.Label) stream.Gauge {
	return instrument{m, strings.TrimPrefix(in.Name, "millrace.deadletter.")}
}

type instrument struct {
	m    *meter
	name string
}

func (i instrument) Add(n int64) { i.m.add(i.name, func(v int64) int64 { return v + n }) }
func (i instrument) Set(v int64) { i.m.set(i.name, v) }
