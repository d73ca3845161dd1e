package fileload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// TestEndedAnywhere ends a commit at every fifth call that it makes, as it arrives and behind its work, and each state that a job gets into; then
// it is made again. Rows are there once, and nothing is left.
func TestEndedAnywhere(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]loadplan.Disposition{"append": loadplan.Append, "truncate": loadplan.Truncate, "truncate data": loadplan.TruncateData} {
		t.Run("FL-78 "+name, func(t *testing.T) {
			t.Parallel()
			for n, ended := 1+len(name)%5, true; ended; n += 5 {
				for _, phase := range []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied} {
					ended = endedAt(t, d, n, phase)
				}
			}
		})
	}
}

func endedAt(t *testing.T, d loadplan.Disposition, n int, phase localbq.FaultPhase) (ended bool) {
	t.Helper()
	b := newQueryBench(t)
	b.cfg.Options.Plan.Disposition = d
	b.cfg.Options.Limits.FilesPerLoad, b.cfg.Options.Limits.SourcesPerCopy = 1, 2
	b.cfg.Update = table.UnionOptions{AllowNewFields: true}
	b.createTable(dst("t"), columns())
	for _, name := range []string{"t", "u"} {
		b.rows.of[dst(name)] = columns(field("more", table.String))
	}
	var cs []loadplan.Committable
	for i := range 3 {
		cs = append(cs, b.stage(dst("t"), fmt.Sprint(i), int64(i)).WithCheckpoint(3))
	}
	cs = append(cs, b.stage(dst("u"), "a", 9).WithCheckpoint(3))
	rule := localbq.Fault{Match: localbq.FaultMatch{Service: "rest", Nth: n}, Phase: phase, Action: localbq.FaultAction{Barrier: true}}
	b.arm(rule)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.commitWith(ctx, b.committer(), cs...) }()
	there, stop := context.WithCancel(t.Context())
	go func() {
		held, err := b.bq.Faults().NextBarrier(there)
		if err == nil {
			cancel()
			held.Release()
		}
	}()
	err := <-done
	ended = ctx.Err() != nil
	stop()
	cancel()
	if err != nil && (!ended || !errors.Is(err, context.Canceled)) {
		t.Errorf("call %d, %s: %v", n, phase, err)
	}
	b.bq.Faults().Clear()
	if len(b.calls("jobs.cancel")) > 0 {
		t.Errorf("call %d, %s: a job was cancelled", n, phase)
	}
	if err == nil && ended {
		// It was in its clean-up: what is left is the next one's.
		b.holds(dst("t"), 0, 1, 2)
	}
	if again := b.commit(cs...); again != nil {
		t.Errorf("call %d, %s: made again: %v", n, phase, again)
	}
	b.holds(dst("t"), 0, 1, 2)
	b.holds(dst("u"), 9)
	if tables, objects := b.temporary(), b.objects(); len(tables) > 0 || len(objects) > 0 {
		t.Errorf("call %d, %s: left are %v and %v", n, phase, tables, objects)
	}
	return ended
}
