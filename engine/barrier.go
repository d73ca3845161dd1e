package engine

import (
	"errors"
	"fmt"
	"time"
)

// alignment is a barrier on its way through the lanes. There is at most one.
type alignment struct {
	id      int64
	purpose purpose
	begun   time.Time
	reports []*report // by lane
	missing int
	replies []chan<- savepointAnswer
}

// purpose is why a checkpoint is taken.
type purpose uint8

const (
	ordinary purpose = iota
	savepoint
	endOfInput   // every split is read
	gracefulStop // somebody asked
	finished     // endOfInput, and everything is committed: no barrier, the state of endOfInput again
)

func (p purpose) final() bool { return p == endOfInput || p == gracefulStop }

// pending is a checkpoint on its way into the store.
type pending struct {
	checkpoint *Checkpoint
	barrier    int64 // the id that lanes know it by: a final one may be stored under another
	purpose    purpose
	begun      time.Time
	aligned    time.Duration
	end        int // in the ledger, of the committables it holds
	replies    []chan<- savepointAnswer
}

// begin sends a barrier to all lanes.
func (a *attempt) begin(p purpose) {
	al := &alignment{id: a.run.history.nextID(), purpose: p, begun: time.Now(),
		reports: make([]*report, len(a.lanes)), missing: len(a.lanes)}
	if !p.final() {
		a.due = false
	}
	// A final checkpoint serves as a savepoint for those who asked for one.
	al.replies, a.savepoints = a.savepoints, nil
	a.aligning = al
	a.run.log.Debug("checkpoint begins", "checkpoint", al.id)
	a.order(order{what: barrier, checkpoint: al.id, final: p.final()})
}

// reportedBy is called when a lane has taken its part; the lane goes on meanwhile.
func (a *attempt) reportedBy(r *report) error {
	al := a.aligning
	al.reports[r.lane] = r
	if al.missing--; al.missing > 0 {
		return nil
	}
	p, err := a.capture(al)
	if err != nil {
		return err
	}
	a.aligning = nil
	if p.purpose.final() {
		a.final = p
		a.timer.Stop()
	}
	a.store(p)
	return a.serve()
}

// capture joins the reports and the enumerator's snapshot. It comes before any split is handed out again.
func (a *attempt) capture(al *alignment) (*pending, error) {
	c := &Checkpoint{
		Job: a.run.name, ID: al.id, Run: a.run.id, Taken: al.begun.UTC(), Lanes: len(a.lanes),
		Savepoint: len(al.replies) > 0,
		Stopped:   al.purpose == gracefulStop,
	}
	if a.restored != nil {
		c.Tally, c.InputBytes = a.restored.Tally, a.restored.InputBytes
	}
	err := guarded(func() (err error) {
		c.Enumerator, err = a.enumerator.Snapshot()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: snapshot of the enumerator: %w", al.id, err)
	}
	for _, r := range al.reports {
		if err := a.captureLane(c, r); err != nil {
			return nil, err
		}
	}
	p := &pending{checkpoint: c, barrier: al.id, purpose: al.purpose, begun: al.begun, aligned: time.Since(al.begun), replies: al.replies}
	c.Committables, p.end = a.ledger.all()
	c.Finished = al.purpose == endOfInput && len(c.Committables) == 0
	return p, nil
}

func (a *attempt) captureLane(c *Checkpoint, r *report) error {
	if len(r.committables) > 0 && a.committers == nil {
		return brokenContract("lane %d: the writer prepared %d committables, and its sink has no committer", r.lane, len(r.committables))
	}
	a.ledger.prepare(r.lane, c.ID, r.committables)
	if r.split != nil {
		c.Splits = append(c.Splits, HeldSplit{r.lane, *r.split})
	}
	c.States = append(c.States, r.states...)
	c.Tally.Add(r.tally)
	c.InputBytes += r.inputBytes
	return nil
}

// store publishes the checkpoint, and tells the coordinator how it went. Then it deletes old ones.
func (a *attempt) store(p *pending) {
	a.storing = p
	a.aside.Go(func() {
		size, ids, err := a.run.history.publish(a.ctx, p.checkpoint)
		a.tell(a.ctx, func(a *attempt) error { return a.stored(p, size, err) })
		a.run.history.prune(a.ctx, ids)
	})
}

func (a *attempt) stored(p *pending, size int, err error) error {
	a.storing = nil
	if a.final == nil {
		a.armTimer(time.Since(p.begun))
	}
	if err != nil {
		return a.notStored(p, err)
	}
	a.failures = 0
	a.newest = p
	a.run.published(p, size)
	a.answerSavepoints(p.replies, savepointAnswer{id: p.checkpoint.ID})
	a.ledger.published(p.end)
	return a.commitDue()
}

// notStored is called when a checkpoint could not be stored, as far as is known. What it would have committed stays in
// the ledger for the next one.
func (a *attempt) notStored(p *pending, err error) error {
	a.failures++
	a.run.notPublished()
	err = fmt.Errorf("checkpoint %d: %w", p.checkpoint.ID, err)
	a.answerSavepoints(p.replies, savepointAnswer{err: err})
	if permanent(err) || a.failures > a.run.opts.Checkpoint.Tolerate {
		return err
	}
	a.run.log.Warn("checkpoint not stored", "checkpoint", p.checkpoint.ID, "failures", a.failures, "error", err)
	if a.final != nil {
		a.timer.Reset(finalRetry)
	}
	return nil
}

// finalRetry is how long a final checkpoint that could not be stored waits for its next try. No other one will follow to
// catch up, and beginning again from the one before may mean the whole input.
const finalRetry = time.Second

// storeFinalAgain tries once more, under another id: the first may have been stored after all.
func (a *attempt) storeFinalAgain() {
	c := *a.final.checkpoint
	c.ID = a.run.history.nextID()
	again := *a.final
	again.checkpoint, again.replies = &c, nil
	a.final = &again
	a.store(a.final)
}

// armTimer sets the timer for the next checkpoint, after one that took so long. A checkpoint that took longer than the
// interval is followed by a quarter of it, so that lanes get something done between two.
func (a *attempt) armTimer(took time.Duration) {
	if every := a.run.opts.Checkpoint.Every; every > 0 {
		a.timer.Reset(max(every-took, every/4))
	}
}

// commitDue commits what is stored and not committed, off the coordinator's goroutine, one commit at a time.
func (a *attempt) commitDue() error {
	if a.committing {
		return nil
	}
	held, end := a.ledger.due()
	upTo := a.newest
	if len(held) == 0 {
		return a.settled(upTo)
	}
	a.committing = true
	a.aside.Go(func() {
		err := a.commit(held)
		a.tell(a.ctx, func(a *attempt) error {
			if err != nil {
				return err
			}
			a.committing = false
			a.ledger.committed(end)
			return errors.Join(a.settled(upTo), a.commitMore(upTo))
		})
	})
	return nil
}

// commitMore goes on with checkpoints that were stored while a commit ran.
func (a *attempt) commitMore(done *pending) error {
	if a.newest == done {
		return nil
	}
	return a.commitDue()
}

func (a *attempt) commit(held []HeldCommittable) error {
	begun := time.Now()
	if err := a.committers.commit(a.ctx, held); err != nil {
		return err
	}
	a.run.ins.committables.Add(int64(len(held)))
	a.run.ins.commitTime.Set(time.Since(begun).Milliseconds())
	return nil
}

// settled is called when everything up to a checkpoint is stored and committed.
func (a *attempt) settled(upTo *pending) error {
	if upTo.purpose != finished {
		a.order(order{what: acknowledge, checkpoint: upTo.barrier})
	}
	switch {
	case upTo != a.final:
		return nil
	case upTo.checkpoint.Finished:
		a.outcome = Finished
	case upTo.checkpoint.Stopped:
		a.outcome = Stopped
	default:
		a.storeFinished()
		return nil
	}
	a.order(order{what: leave})
	return nil
}

func (a *attempt) order(o order) {
	for _, l := range a.lanes {
		l.post(o)
	}
}

// storeFinished stores that the input has ended and everything is committed. The checkpoint before could not say so:
// a process that ended between storing and committing it would have been taken for finished, and its rows be lost.
func (a *attempt) storeFinished() {
	c := *a.final.checkpoint
	c.ID, c.Taken = a.run.history.nextID(), time.Now().UTC()
	c.Finished, c.Savepoint, c.Committables = true, false, nil
	a.final = &pending{checkpoint: &c, purpose: finished, begun: time.Now(), end: a.final.end}
	a.store(a.final)
}

// refuseSavepoints: a sink that makes everything visible at once would make a part of it so.
func (a *attempt) refuseSavepoints() {
	a.answerSavepoints(a.savepoints, savepointAnswer{err: errors.New("no savepoint: the sink makes all rows visible at once when the input has ended")})
	a.savepoints = nil
}

func (a *attempt) answerSavepoints(to []chan<- savepointAnswer, answer savepointAnswer) {
	for _, reply := range to {
		reply <- answer // has room for it
	}
}
