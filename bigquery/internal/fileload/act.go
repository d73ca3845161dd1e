package fileload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// faults are what went wrong in a step, on whichever goroutine.
type faults struct {
	mu   sync.Mutex // guards list
	list []fault
}

// fault is why a part could not go on.
type fault struct {
	part *partRun
	err  error
}

// add notes an error, if it is one.
func (f *faults) add(p *partRun, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fault{p, err})
}

func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list) > 0
}

// maxTold is how many destinations an error speaks of; what befalls all of them is told often enough.
const maxTold = 10

// failed is the error of a step: of all destinations that failed, the first in the order of the plan before the others.
func (r *run) failed(ctx context.Context, f *faults) error {
	var checkpoint *int64
	if r.plan.Checkpoint.Set {
		checkpoint = &r.plan.Checkpoint.ID
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("commit %s: %w", ofCheckpoint(checkpoint), context.Cause(ctx))
	case len(f.list) == 0:
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b fault) int { return cmp.Compare(a.part.index, b.part.index) })
	var errs []error
	for _, one := range f.list[:min(maxTold, len(f.list))] {
		errs = append(errs, &LoadError{Destination: one.part.Destination, Checkpoint: checkpoint, Hint: hint(one.err), err: one.err})
	}
	if more := len(f.list) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// act calls do for so many destinations, at most MaxDestinations at once.
func (r *run) act(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	c := crowd{meters: &r.meters, queued: n}
	c.show()
	inParallel(ctx, n, r.cfg.Options.MaxDestinations, func(ctx context.Context, i int) {
		c.count(-1, 1)
		defer c.count(0, -1)
		do(ctx, i)
	})
}

// crowd is how many destinations wait and act.
type crowd struct {
	mu             sync.Mutex // guards what follows, so that what is shown last is true
	meters         *commitMeters
	queued, active int
}

func (c *crowd) count(queued, active int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued += queued
	c.active += active
	c.show()
}

func (c *crowd) show() {
	c.meters.queued.Set(int64(c.queued))
	c.meters.active.Set(int64(c.active))
}
