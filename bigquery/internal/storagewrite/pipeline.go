package storagewrite

import (
	"errors"
	"io"
	"slices"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/internal/retry"
)

// pipeline decides what a connection sends, and what its answers and losses mean. It does no I/O, reads no clock and
// takes no lock; its owner does.
type pipeline struct {
	resend           retry.Schedule // delays after RESOURCE_EXHAUSTED; its attempts are the sends of one append
	maxRetryDuration time.Duration  // retry.NoLimit never gives up
	rand             func() float64

	queue  []*call // to be sent on the current stream, in order
	sent   []*call // on the current stream, unanswered, in order of sending
	paused []*call // to be sent at their due times
	seq    int64

	losses    int       // without an answer in between
	lostSince time.Time // the first of them
}

// resendable are the codes after which the same append may succeed on the same or another stream: in an answer it is
// sent again, as the end of a stream the stream is opened again.
func resendable(c codes.Code) bool {
	switch c {
	case codes.Aborted, codes.Unavailable, codes.Canceled, codes.Internal, codes.DeadlineExceeded:
		return true
	}
	return false
}

// add accepts a call.
func (p *pipeline) add(c *call) {
	p.seq++
	c.seq = p.seq
	p.queue = append(p.queue, c)
}

// next returns the call to send now, and when there is none, how long until a paused one is due: 0 is never.
func (p *pipeline) next(now time.Time) (*call, time.Duration) {
	var wait time.Duration
	for i, c := range p.paused {
		d := c.due.Sub(now)
		if d <= 0 {
			p.paused = slices.Delete(p.paused, i, i+1)
			return p.send(c, now), 0
		}
		if wait == 0 || d < wait {
			wait = d
		}
	}
	if len(p.queue) == 0 {
		return nil, wait
	}
	c := p.queue[0]
	p.queue = p.queue[1:]
	return p.send(c, now), 0
}

func (p *pipeline) send(c *call, now time.Time) *call {
	c.sentAt = now
	if c.sends > 0 {
		c.resends.Add(1)
	}
	c.sends++
	p.sent = append(p.sent, c)
	return c
}

// reply is what an answer means.
type reply uint8

const (
	replyDone       reply = iota // the call is finished
	replyAgain                   // the call is in the pipeline again
	replyReset                   // the stream has to be opened again, everything unanswered is sent again in order
	replyUnexpected              // nobody asked
)

// answered takes the answer to the oldest sent call. Answers arrive in the order of the requests
// (storage.proto, AppendRows).
func (p *pipeline) answered(a *storagepb.AppendRowsResponse, now time.Time) (*call, reply) {
	if len(p.sent) == 0 {
		return nil, replyUnexpected
	}
	c := p.sent[0]
	p.sent = p.sent[1:]
	p.losses = 0
	code := codes.Code(a.GetError().GetCode())
	exhausted := code == codes.ResourceExhausted
	if !exhausted && !resendable(code) || p.resend.Spent(c.resent+1) {
		return c, replyDone
	}
	c.resent++
	if exhausted {
		c.due = now.Add(p.resend.Delay(c.resent, p.rand()))
		p.paused = append(p.paused, c)
	} else {
		p.queue = append(p.queue, c)
	}
	if c.offset != noOffset {
		// Whatever was sent behind it meets a gap. A new stream sends all of it again, in order.
		return c, replyReset
	}
	return c, replyAgain
}

// unanswered is every call in the pipeline, in order of acceptance.
func (p *pipeline) unanswered() []*call {
	all := slices.Concat(p.sent, p.paused, p.queue)
	slices.SortFunc(all, func(a, b *call) int { return int(a.seq - b.seq) })
	return all
}

// rewind puts every unanswered call back in line for a new stream, and returns how long the longest pause among them
// still has to last.
func (p *pipeline) rewind(now time.Time) time.Duration {
	var wait time.Duration
	for _, c := range p.paused {
		wait = max(wait, c.due.Sub(now))
	}
	p.queue = p.unanswered()
	p.sent, p.paused = nil, nil
	return wait
}

// lost takes the end of a stream. It answers how long to wait before opening the next one, or false when the
// connection is beyond hope.
func (p *pipeline) lost(err error, now time.Time) (time.Duration, bool) {
	p.rewind(now)
	if len(p.queue) == 0 {
		// Nobody was waiting: services close streams that are idle. The next append opens another one.
		return 0, true
	}
	if s, ok := status.FromError(err); !errors.Is(err, io.EOF) && !(ok && resendable(s.Code())) {
		return 0, false
	}
	if p.losses == 0 {
		p.lostSince = now
	}
	p.losses++
	if p.maxRetryDuration != retry.NoLimit && now.Sub(p.lostSince) >= p.maxRetryDuration {
		return 0, false
	}
	return retry.Reconnect.Delay(p.losses, 0), true
}

// oldest is when the oldest unanswered call was sent last; false when nothing is unanswered.
func (p *pipeline) oldest() (time.Time, bool) {
	if len(p.sent) == 0 {
		return time.Time{}, false
	}
	return p.sent[0].sentAt, true
}

// waits is how long the next call has been waiting for the ones before it to be sent.
func (p *pipeline) waits(now time.Time) time.Duration {
	if len(p.queue) == 0 || p.queue[0].sends > 0 {
		return 0
	}
	return now.Sub(p.queue[0].since)
}

// drain empties the pipeline.
func (p *pipeline) drain() []*call {
	all := p.unanswered()
	p.queue, p.sent, p.paused = nil, nil, nil
	return all
}
