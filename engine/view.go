package engine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// view is what a run shows of itself.
type view struct {
	state       RunState
	lanes       []*lane      // of the attempt under way
	base        stream.Tally // of the checkpoint the attempt began with
	baseBytes   int64
	last        stream.Tally // of the newest checkpoint
	lastBytes   int64
	totalBytes  int64
	checkpoint  CheckpointStatus
	recent      []CheckpointStatus // replaced as a whole
	published   int
	failed      int
	resumedFrom int64
	startedAnew bool
	restarts    int
	lastFailure error

	lastFailureAt time.Time
}

// restore shows the state of the checkpoint to go on from; nil is the start.
func (v *view) restore(c *Checkpoint) {
	if c == nil {
		c = &Checkpoint{}
	}
	v.base, v.baseBytes, v.last, v.lastBytes = c.Tally, c.InputBytes, c.Tally, c.InputBytes
	v.checkpoint = CheckpointStatus{ID: c.ID, Taken: c.Taken, Savepoint: c.Savepoint}
}

func (r *run) show(f func(*view)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.view)
}

// attempting shows the lanes of an attempt, or, with nil, that there is none.
func (r *run) attempting(a *attempt) {
	var lanes []*lane
	if a != nil {
		lanes = a.lanes
	}
	r.ins.lanes.Set(int64(len(lanes)))
	r.show(func(v *view) {
		if v.lanes = lanes; a != nil {
			v.state = Running
		}
	})
	if a == nil {
		r.ins.lanesBusy.Set(0)
	}
}

// restarted shows that another attempt begins.
func (r *run) restarted(from *Checkpoint) {
	r.ins.restarts.Add(1)
	r.show(func(v *view) {
		v.restarts++
		v.state = Starting
		v.restore(from)
	})
}

// published shows a checkpoint that has been stored.
func (r *run) published(p *pending, size int) {
	c := p.checkpoint
	s := CheckpointStatus{ID: c.ID, Taken: c.Taken, Savepoint: c.Savepoint, Bytes: size, Aligned: p.aligned, Duration: time.Since(p.begun)}
	r.show(func(v *view) {
		v.checkpoint = s
		v.recent = append(slices.Clone(v.recent[max(0, len(v.recent)+1-recentCheckpoints):]), s)
		v.last, v.lastBytes = c.Tally, c.InputBytes
		v.published++
	})
	r.ins.checkpoints.Add(1)
	r.ins.checkpointID.Set(s.ID)
	r.ins.checkpointBytes.Set(int64(size))
	r.ins.checkpointAlign.Set(p.aligned.Milliseconds())
	r.ins.checkpointDuration.Set(s.Duration.Milliseconds())
	level := slog.LevelDebug
	if c.Savepoint || c.Finished || c.Stopped {
		level = slog.LevelInfo
	}
	r.log.Log(context.Background(), level, "checkpoint stored", "checkpoint", s.ID, "bytes", size, "duration", s.Duration,
		"savepoint", c.Savepoint, "stopped", c.Stopped, "finished", c.Finished)
}

// recentCheckpoints is how many a Status lists: a screenful, and ten minutes of them at an interval of half a minute.
const recentCheckpoints = 20

func (r *run) notPublished() {
	r.ins.checkpointsFailed.Add(1)
	r.show(func(v *view) { v.failed++ })
}

func (r *run) status() Status {
	r.mu.Lock()
	v := r.view
	r.mu.Unlock()
	s := Status{
		Job: r.name, State: v.state, Started: r.begun,
		Tally: v.last, InputBytes: v.lastBytes, TotalBytes: v.totalBytes,
		Checkpoint: v.checkpoint, Checkpoints: v.published, FailedCheckpoints: v.failed,
		ResumedFrom: v.resumedFrom, StartedAnew: v.startedAnew, Restarts: v.restarts, LastFailure: v.lastFailure,
		LastFailureAt: v.lastFailureAt, Recent: slices.Clone(v.recent),
		Splits: SplitStatus{Assigned: r.ins.splitsAssigned.n.Load(), Finished: r.ins.splitsFinished.n.Load()},
	}
	if v.lanes == nil {
		return s
	}
	s.Tally, s.InputBytes = v.base, v.baseBytes
	for _, l := range v.lanes {
		live := l.seen()
		s.Tally.Add(live.tally)
		s.InputBytes += live.inputBytes
		s.Lanes = append(s.Lanes, LaneStatus{l.index, live.doing, live.split, live.position, live.tally})
	}
	return s
}

func (r *run) result(o Outcome) Result {
	r.mu.Lock()
	v := r.view
	r.mu.Unlock()
	return Result{
		Job: r.name, Outcome: o,
		ResumedFrom: v.resumedFrom, StartedAnew: v.startedAnew,
		Checkpoint: v.checkpoint.ID, Checkpoints: v.published, Restarts: v.restarts,
		Tally: v.last, InputBytes: v.lastBytes,
		Duration: time.Since(r.begun),
	}
}
