package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/stream"
)

// committers are a sink's committers: one for each lane, or one for all. They are used from one goroutine at a time.
type committers struct {
	of     []stream.Committer
	global bool
}

func newCommitters(ctx context.Context, two stream.TwoPhase, cc stream.CommitterContext, lanes int) (*committers, error) {
	c := &committers{global: two.CommitScope() != stream.PerLane}
	if c.global {
		lanes = 1
	}
	for cc.Lane = range lanes {
		one, err := two.NewCommitter(ctx, cc)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make committer %d: %w", cc.Lane, err), c.close())
		}
		c.of = append(c.of, one)
	}
	return c, nil
}

func (c *committers) commit(ctx context.Context, held []HeldCommittable) error {
	commit := c.commitLanes
	if c.global {
		commit = c.commitCheckpoints
	}
	if err := commit(ctx, held); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// commitCheckpoints commits one checkpoint's part after another's.
func (c *committers) commitCheckpoints(ctx context.Context, held []HeldCommittable) error {
	for len(held) > 0 {
		n := 1
		for n < len(held) && held[n].Checkpoint == held[0].Checkpoint {
			n++
		}
		part := make([]stream.Committable, n)
		for i := range part {
			part[i] = held[i].Committable
		}
		if err := guarded(func() error { return c.of[0].Commit(ctx, part) }); err != nil {
			return err
		}
		held = held[n:]
	}
	return nil
}

// commitLanes commits each lane's part on its own, all at once. Lanes of a run with more lanes are dealt out.
func (c *committers) commitLanes(ctx context.Context, held []HeldCommittable) error {
	parts := make([][]stream.Committable, len(c.of))
	for _, h := range held {
		i := h.Lane % len(c.of)
		parts[i] = append(parts[i], h.Committable)
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		if len(part) == 0 {
			continue
		}
		// Owned by this call, which waits for it.
		wg.Go(func() {
			errs[i] = guarded(func() error { return c.of[i].Commit(ctx, part) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *committers) close() error {
	var errs []error
	for _, one := range slices.Backward(c.of) {
		errs = append(errs, guarded(one.Close))
	}
	return errors.Join(errs...)
}
