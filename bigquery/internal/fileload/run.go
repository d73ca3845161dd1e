package fileload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
)

// run is one commit under way.
type run struct {
	*Committer
	plan    *loadplan.Plan
	written fileSchemas
	parts   map[*loadplan.Part]*partRun
	pending atomic.Int64 // jobs that are not known to have ended
}

func (c *Committer) newRun(plan *loadplan.Plan, written fileSchemas) *run {
	r := &run{Committer: c, plan: plan, written: written, parts: map[*loadplan.Part]*partRun{}}
	log := c.log
	if plan.Checkpoint.Set {
		log = log.With("checkpoint", plan.Checkpoint.ID)
	}
	for i := range plan.Parts {
		p := &plan.Parts[i]
		r.parts[p] = &partRun{Part: p, index: i, log: log.With("destination", p.Destination.String())}
	}
	return r
}

// execute runs the plan, phase by phase. After an error nothing of it has been cleaned up.
func (r *run) execute(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, phase := range r.plan.Phases(r.cfg.Options.Limits) {
		for _, wave := range phase.Waves {
			if err := r.wave(ctx, wave); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare finds out where jobs are, and looks for the final action of each part that has one: once that has succeeded the part is
// complete, even though its files and temporary tables are gone by now.
func (r *run) prepare(ctx context.Context) error {
	var f faults
	r.act(ctx, len(r.plan.Parts), func(ctx context.Context, i int) {
		p := r.parts[&r.plan.Parts[i]]
		if f.any() {
			return
		}
		if p.Direct() {
			_, err := r.locations.of(ctx, p.Destination)
			f.add(p, err)
			return
		}
		err := r.locations.together(ctx, p.Part)
		if err == nil {
			err = r.lookForFinal(ctx, p)
		}
		f.add(p, err)
	})
	return r.failed(ctx, &f)
}

// lookForFinal goes along the ids of the final action up to one that is there and has not failed, or is not there.
func (r *run) lookForFinal(ctx context.Context, p *partRun) error {
	final, err := r.newJob(ctx, p.FinalAction())
	if err != nil {
		return err
	}
	for final.step == look {
		r.look(ctx, p, final)
	}
	switch final.step {
	case giveUp:
		return final.err
	case await:
		if err := r.ofTheseFiles(ctx, p, final); err != nil {
			return err
		}
		p.complete = final.status.done
	case submit:
		final.step = look // somebody else may have submitted it by the time that it is its turn
	}
	p.final = final
	return nil
}

// ofTheseFiles makes sure that the final action that is there brings in the rows of these files. Its id depends on the names of
// temporary tables, which those of another commit of the same run and checkpoint would have too: there must not be one, and its rows
// must not pass for these.
func (r *run) ofTheseFiles(ctx context.Context, p *partRun, final *jobRun) error {
	for _, load := range []*loadplan.Job{&p.Loads[0], &p.Loads[len(p.Loads)-1]} {
		j, err := r.newJob(ctx, load)
		if err != nil {
			return err
		}
		if _, err = r.jobs.get(ctx, j.ref(p)); errors.Is(err, restcall.ErrAbsent) {
			return misconfiguration{fmt.Errorf("%w: job %s is there, and %s, which loads the files it is to bring in, is not: another commit of run %s has made it",
				loadplan.ErrMixedCommit, final.id(), j.id(), r.plan.Run)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) newJob(ctx context.Context, job *loadplan.Job) (*jobRun, error) {
	location, err := r.locations.of(ctx, job.Target)
	if err != nil {
		return nil, err
	}
	return &jobRun{Job: job, chain: newChain(job.ID, r.cfg.Options.RetryIDLimit), location: location}, nil
}

// wave submits all jobs, up to the first that cannot be, and awaits all that were submitted, whatever becomes of others.
func (r *run) wave(ctx context.Context, wave loadplan.Wave) error {
	var f faults
	submitted := make([][]*jobRun, len(wave))
	r.act(ctx, len(wave), func(ctx context.Context, i int) {
		p := r.parts[wave[i].Part]
		var err error
		submitted[i], err = r.submitShare(ctx, p, wave[i].Jobs, &f)
		f.add(p, r.unlessComplete(ctx, p, err))
	})
	r.act(ctx, len(wave), func(ctx context.Context, i int) {
		if len(submitted[i]) == 0 {
			return
		}
		p := r.parts[wave[i].Part]
		f.add(p, r.unlessComplete(ctx, p, r.awaitShare(ctx, p, submitted[i])))
	})
	return r.failed(ctx, &f)
}

// submitShare submits what a wave has for one destination, and answers what there is to await, also with an error.
func (r *run) submitShare(ctx context.Context, p *partRun, jobs []*loadplan.Job, f *faults) (submitted []*jobRun, err error) {
	for _, job := range jobs {
		j := p.final
		switch isFinal := job == p.FinalAction(); {
		case p.complete, f.any():
			return submitted, nil
		case isFinal && j != nil:
		case p.following():
			continue
		default:
			if j, err = r.newJob(ctx, job); err != nil {
				return submitted, err
			}
		}
		there, err := r.submit(ctx, p, j)
		if err != nil {
			return submitted, err
		}
		if there {
			submitted = append(submitted, j)
		}
	}
	return submitted, nil
}

// submit drives a job until it is there to be awaited, or somebody else turns out to be further.
func (r *run) submit(ctx context.Context, p *partRun, j *jobRun) (there bool, err error) {
	for {
		switch j.step {
		case look, lookAgain:
			r.look(ctx, p, j)
		case submit:
			if err := r.insert(ctx, p, j); err != nil {
				return false, err
			}
		case giveUp:
			return false, j.err
		case await:
			gone, err := r.tableGone(ctx, j)
			if err != nil {
				return false, err
			}
			if !gone {
				r.started(j)
				return true, nil
			}
			// Somebody else who commits the same may have deleted it, behind a final action that succeeded.
			if err := r.lookForFinal(ctx, p); err != nil || p.complete || p.following() {
				return false, err
			}
			p.log.WarnContext(ctx, "the temporary table of a job is gone: running it again", "job_id", j.id(), "temporary", j.Target.String())
			j.burnt(fmt.Errorf("job %s succeeded, and its table %s is gone", j.id(), j.Target))
		}
	}
}

// look asks for the job of the id in hand.
func (r *run) look(ctx context.Context, p *partRun, j *jobRun) {
	status, err := r.jobs.get(ctx, j.ref(p))
	switch {
	case errors.Is(err, restcall.ErrAbsent):
		j.absent()
	case err != nil:
		j.unanswered(err)
	case status.failed != nil:
		p.log.WarnContext(ctx, "a job of an earlier try has failed", "job_id", j.id(), "state", status.state, "cause", status.failed)
		j.found(status.failed)
	case status.isOf(j) != nil:
		j.unanswered(status.isOf(j))
	default:
		p.log.InfoContext(ctx, "a job of an earlier try is there", "job_id", j.id(), "state", status.state)
		j.status = status
		j.found(nil)
	}
}

// insert submits a job, once the destination is as it must be.
func (r *run) insert(ctx context.Context, p *partRun, j *jobRun) error {
	if p.target == nil {
		t, err := r.settle(ctx, p.Destination, r.written[p.Destination])
		if err != nil {
			return err
		}
		p.target = &t
	}
	r.count(j)
	status, met, err := r.jobs.insert(ctx, j.ref(p), r.cfg.configure(j.Job, p.target.columns, p.target.layout))
	switch {
	case met:
		j.met(err)
	case err != nil:
		j.fail(err)
	default:
		p.log.InfoContext(ctx, "submitted a job", "job_id", j.id(), "state", status.state)
		j.status = status
		j.submitted()
	}
	return nil
}

// count counts a load job of the plan, once.
func (r *run) count(j *jobRun) {
	if j.Kind == loadplan.LoadJob && !j.counted {
		j.counted = true
		r.meters.loads.Add(1)
	}
}

// tableGone says whether the temporary table of an earlier try's job is not there any more: deleted, or expired.
func (r *run) tableGone(ctx context.Context, j *jobRun) (bool, error) {
	if !j.attached || !j.status.done || !j.Temp {
		return false, nil
	}
	there, err := r.admin.Exists(ctx, j.Target)
	return err == nil && !there, err
}

// unlessComplete is the error of a part, unless somebody else who commits the same has brought it to its end meanwhile, and taken away
// what this one worked with.
func (r *run) unlessComplete(ctx context.Context, p *partRun, err error) error {
	if err == nil || ctx.Err() != nil || p.complete {
		return nil
	}
	if p.Direct() || p.following() || r.lookForFinal(ctx, p) != nil || !p.following() {
		return err
	}
	p.log.InfoContext(ctx, "somebody else brings the rows in", "job_id", p.final.id(), "cause", err)
	return nil
}

// started counts a job that is to be awaited.
func (r *run) started(j *jobRun) {
	r.count(j)
	if !j.status.done && !j.pending {
		j.pending = true
		r.meters.pending.Set(r.pending.Add(1))
	}
}

func (r *run) ended(j *jobRun) {
	if j.pending {
		j.pending = false
		r.meters.pending.Set(r.pending.Add(-1))
	}
}

// awaitShare awaits all jobs, and answers the first error.
func (r *run) awaitShare(ctx context.Context, p *partRun, jobs []*jobRun) (first error) {
	failed := 0
	for _, j := range jobs {
		err := r.await(ctx, p, j)
		r.ended(j)
		if ctx.Err() != nil {
			return err
		}
		if err != nil && first == nil {
			first = err
		} else if err != nil {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%w; and %d more jobs have failed", first, failed)
	}
	return first
}

// await polls until a job is done.
func (r *run) await(ctx context.Context, p *partRun, j *jobRun) error {
	for attempt := 1; !j.status.done; attempt++ {
		if attempt > 1 {
			if err := r.cfg.Pacer.Wait(ctx, r.cfg.Options.Poll, attempt-1, "look at job "+j.id()+" again"); err != nil {
				return err
			}
		}
		status, err := r.jobs.get(ctx, j.ref(p))
		if errors.Is(err, restcall.ErrAbsent) {
			return fmt.Errorf("job %s: %w: it was there before: %w", j.id(), ErrJobVanished, err)
		}
		if err != nil {
			return err
		}
		j.status = status
	}
	failed := j.status.failed
	if failed == nil {
		return j.wroteAll()
	}
	if j.attached || !passingReasons[failed.Reason] || j.again == r.cfg.Options.InlineRetries {
		return r.explain(ctx, j, failed)
	}
	j.again++
	p.log.WarnContext(ctx, "a job has failed in passing: running it again", "job_id", j.id(), "attempt", j.again,
		"of", r.cfg.Options.InlineRetries, "cause", failed)
	j.burnt(failed)
	if there, err := r.submit(ctx, p, j); !there {
		return err
	}
	return r.await(ctx, p, j)
}

// wroteAll holds a load job that has succeeded to the rows that its files were staged with. The service reads whatever has a file's name
// by then, and an object can be replaced, or cut to a part that is a file too.
func (j *jobRun) wroteAll() error {
	if j.Kind != loadplan.LoadJob || !j.status.counted || j.status.rows == j.Rows {
		return nil
	}
	return fmt.Errorf("%w: job %s has written %d rows to %s, and its %d files were staged with %d", ErrRowsDiffer, j.id(), j.status.rows, j.Target, len(j.URIs), j.Rows)
}
