package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// commitsAtOnce is how many streams one committer flushes at a time.
const commitsAtOnce = 8

// CommitterConfig is what a committer needs, resolved.
type CommitterConfig struct {
	Connection gcp.Connection
	// CreateNever says that tables are not made by the sink: a denial is then no news that has yet to spread.
	CreateNever bool
	Recovery    retry.Schedule
	Pacer       retry.Pacer
	Log         *slog.Logger
}

// flusher is what a committer asks of the service.
type flusher interface {
	flushRows(ctx context.Context, stream string, offset int64) (int64, error)
	release() error
}

// Committer makes the rows of streams visible up to what was promised. It keeps nothing from one Commit to the next.
type Committer struct {
	cfg     CommitterConfig
	service flusher
	closed  bool
}

// NewCommitter makes a committer. It opens nothing before its first commit.
func NewCommitter(cfg CommitterConfig) *Committer {
	return &Committer{cfg: cfg, service: acquire(cfg.Connection)}
}

// Commit keeps all promises. Streams are independent: what can be kept is, whatever becomes of the others.
func (c *Committer) Commit(ctx context.Context, cs []stream.Committable) error {
	promises, err := fold(cs)
	if err != nil {
		return err
	}
	errs := make([]error, len(promises))
	sideBySide(commitsAtOnce, len(promises), func(i int) { errs[i] = c.keep(ctx, promises[i]) })
	err = errors.Join(errs...)
	if err == nil && len(promises) > 0 {
		c.cfg.Log.InfoContext(ctx, "rows of streams are visible", "streams", len(promises))
	}
	return err
}

// fold leaves one promise for each stream: flushing up to an offset flushes everything before it.
func fold(cs []stream.Committable) ([]promise, error) {
	var out []promise
	at := map[string]int{}
	for _, c := range cs {
		p, err := parsePromise(c)
		if err != nil {
			return nil, err
		}
		i, seen := at[p.stream]
		if !seen {
			at[p.stream] = len(out)
			out = append(out, p)
		} else if out[i].offset < p.offset {
			out[i] = p
		}
	}
	return out, nil
}

// keep flushes one stream.
func (c *Committer) keep(ctx context.Context, p promise) error {
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		offset, err := c.service.flushRows(ctx, p.stream, p.offset)
		switch {
		case err == nil && offset == p.offset:
			return nil
		case err == nil:
			return c.broken(p, attempt, &verdict{kind: KindInconsistent}, fmt.Errorf("%w: rows are visible up to offset %d", ErrInconsistentStream, offset))
		}
		if err := hopeless(ctx, err); err != nil {
			return err
		}
		v := classifyError(err)
		switch c.decide(v) {
		case commitDone:
			return nil
		case commitFail:
			return c.broken(p, attempt, v, err)
		}
		if c.cfg.Recovery.Spent(attempt) {
			return c.broken(p, attempt, v, fmt.Errorf("%w: %w", retry.ErrBudgetSpent, err))
		}
		delay := c.cfg.Pacer.Delay(c.cfg.Recovery, attempt)
		c.cfg.Log.InfoContext(ctx, "flush of a stream failed: trying again", "stream", p.stream, "offset", p.offset, "attempt", attempt,
			"of", c.cfg.Recovery.Attempts, "backoff", delay, "code", v.codeName(), "cause", err)
		if err := c.cfg.Pacer.Pause(ctx, delay, "flush stream "+p.stream+" again"); err != nil {
			return err
		}
	}
}

// commitAction is what the failure of a flush asks for.
type commitAction uint8

const (
	commitFail commitAction = iota
	commitDone
	commitAgain
)

// decide judges the failure of a flush. A table that was just created denies for a while (11 of 140 flushes did, measured
// 2026-08-08); NOT_FOUND names a stream, which may be gone for good.
func (c *Committer) decide(v *verdict) commitAction {
	switch {
	case v.coded && v.code == codes.AlreadyExists, v.exists():
		return commitDone // by an earlier commit
	case v.kind == KindTransient:
		return commitAgain
	case v.coded && v.code == codes.PermissionDenied && !c.cfg.CreateNever:
		return commitAgain
	}
	return commitFail
}

// broken is a promise that could not be kept.
func (c *Committer) broken(p promise, attempts int, v *verdict, cause error) error {
	dst, _ := streamTable(p.stream) // checked when it was parsed
	e := &AppendError{Op: opFlushRows, Destination: dst, Stream: p.stream, Offset: p.offset, Attempts: attempts, Code: v.codeName(),
		Verdict: v.kind, err: cause}
	switch {
	case v.coded && v.code == codes.NotFound, v.kind == KindStaleStream:
		e.Hint = "rows that were taken can not be made visible any more: the stream or its table is gone, or the stream is older than " +
			"a week; " + startBefore
	case v.coded && v.code == codes.PermissionDenied:
		e.Hint = deniedHint + "; if the table was dropped, the rows that were taken for it went with it: " + startBefore
	}
	return e
}

const startBefore = "start the job from a checkpoint or a place in the input before these rows"

// Close is idempotent.
func (c *Committer) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	return c.service.release()
}

func flushRequest(name string, offset int64) *storagepb.FlushRowsRequest {
	return &storagepb.FlushRowsRequest{WriteStream: name, Offset: wrapperspb.Int64(offset)}
}
