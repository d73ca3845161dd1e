package pubsubqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/stream"
)

// Queue is the failure policy that publishes failed records to a topic.
type Queue struct {
	topic, project string
	o              Options
	more           []option.ClientOption
}

// New makes the policy of a topic, named projects/PROJECT/topics/TOPIC. Nothing is opened or read: that is done when a lane's
// handler is made.
func New(topic string, o Options) (*Queue, error) {
	o, err := o.resolve(topic)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Queue{topic: topic, project: topicName.FindStringSubmatch(topic)[1], o: o}, nil
}

// NewHandler opens a client for one lane.
func (q *Queue) NewHandler(ctx context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	opts, err := q.o.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dead letters to %s: %w", q.topic, err)
	}
	// The client outlives this call.
	client, err := pubsub.NewClient(context.WithoutCancel(ctx), q.project, append(opts, q.more...)...)
	if err != nil {
		return nil, fmt.Errorf("dead letters to %s: %w", q.topic, err)
	}
	p := client.Publisher(q.topic)
	p.PublishSettings.Timeout = max(p.PublishSettings.Timeout, q.o.FlushTimeout)
	if q.o.MaxInFlightMessages == Synchronous {
		p.PublishSettings.CountThreshold = 1 // nobody comes whom a message could wait for
	}
	if hc.Log == nil {
		hc.Log = slog.New(slog.DiscardHandler)
	}
	return &handler{q: q, hc: hc, client: client, publisher: p, meters: deadletter.NewMeters(hc, "pubsub")}, nil
}

// handler publishes the letters of one lane.
type handler struct {
	q         *Queue
	hc        stream.HandlerContext
	client    *pubsub.Client
	publisher *pubsub.Publisher
	meters    *deadletter.Meters

	inFlight []*pubsub.PublishResult
	bytes    int // of their data
	closed   bool
}

// maxInFlightBytes bounds what messages in flight hold, unless they are unbounded by choice.
const maxInFlightBytes = 64 << 20

// maxMessageBytes is what data and attributes may have together: a request has 10,000,000 bytes
// (https://cloud.google.com/pubsub/quotas), the topic's name and framing among them.
const maxMessageBytes = 10_000_000 - 2_000

// Handle publishes the letter of a record, and waits when enough are in flight.
func (h *handler) Handle(ctx context.Context, f *stream.FailedRecord) error {
	l := deadletter.Of(f, h.hc, time.Now())
	_, payload := l.Payload()
	m := &pubsub.Message{Data: append([]byte(nil), payload...), Attributes: attributes(&l)}
	if n := size(m); n > maxMessageBytes {
		return tooLarge{fmt.Errorf("dead letter of %s: %d bytes do not fit a message of Pub/Sub, which has at most %d: use a file or fail the job", f.At, n, maxMessageBytes)}
	}
	h.inFlight = append(h.inFlight, h.publisher.Publish(context.WithoutCancel(ctx), m))
	h.bytes += len(m.Data)
	h.meters.Offered()
	switch bound := h.q.o.MaxInFlightMessages; {
	case bound == Unbounded:
		return nil
	case bound == Synchronous || len(h.inFlight) >= bound || h.bytes >= maxInFlightBytes:
		return h.wait(ctx)
	}
	return nil
}

// tooLarge is an error that comes back at the next attempt.
type tooLarge struct{ error }

func (e tooLarge) Unwrap() error { return e.error }

// Permanent is true: see engine.Restart.
func (tooLarge) Permanent() bool { return true }

func size(m *pubsub.Message) int {
	n := len(m.Data)
	for name, value := range m.Attributes {
		n += len(name) + len(value) + 16
	}
	return n
}

// Flush waits for every message that is in flight.
func (h *handler) Flush(ctx context.Context) error { return h.wait(ctx) }

// wait waits for all messages in flight, within one deadline. None is waited for again, whatever became of it, and none is
// cancelled: one that arrives late is there twice, since its record is offered again.
func (h *handler) wait(ctx context.Context) error {
	if len(h.inFlight) == 0 {
		return nil
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, h.q.o.FlushTimeout)
	defer cancel()
	var safe, unresolved int
	var failed error
	for _, r := range h.inFlight {
		switch _, err := result(bounded, r); {
		case errors.Is(err, errUnresolved):
			unresolved++
		case err != nil && failed == nil:
			failed = err
		case err == nil:
			safe++
		}
	}
	all := len(h.inFlight)
	clear(h.inFlight)
	h.inFlight, h.bytes = h.inFlight[:0], 0
	h.meters.Waited(began, int64(safe))
	switch {
	case failed != nil:
		return fmt.Errorf("dead letters: publish to %s: %d of %d failed or are unresolved; they are offered again: %w", h.q.topic, all-safe, all, failed)
	case unresolved > 0 && ctx.Err() != nil:
		return context.Cause(ctx)
	case unresolved > 0:
		return fmt.Errorf("dead letters: publish to %s: %d of %d were unresolved after %v; nothing is dropped: they are offered again",
			h.q.topic, unresolved, all, h.q.o.FlushTimeout)
	}
	return nil
}

var errUnresolved = errors.New("unresolved")

// result is what became of a message, errUnresolved when nothing did before the end of ctx.
func result(ctx context.Context, r *pubsub.PublishResult) (string, error) {
	select {
	case <-r.Ready():
	case <-ctx.Done():
		select {
		case <-r.Ready():
		default:
			return "", errUnresolved
		}
	}
	return r.Get(context.Background()) // it is ready
}

// Close stops the publisher, which sends what it holds, within its time.
func (h *handler) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	h.meters.Closed()
	stopped := make(chan struct{})
	// Owned by this call. Where it is left behind, it ends with the client that is closed below.
	go func() {
		defer close(stopped)
		h.publisher.Stop()
	}()
	timer := time.NewTimer(h.q.o.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		h.meters.Abandoned()
		h.hc.Log.Warn("the publisher of dead letters did not stop in its time and was left behind", "topic", h.q.topic, "timeout", h.q.o.ShutdownTimeout)
	}
	if err := h.client.Close(); err != nil {
		return fmt.Errorf("dead letters: close the client of %s: %w", h.q.topic, err)
	}
	return nil
}
