package fileload

import (
	"log/slog"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// partRun is a part of a plan on its way. One goroutine at a time has it.
type partRun struct {
	*loadplan.Part
	index int // in the plan
	log   *slog.Logger

	// complete says that everything of it has been committed, now or before.
	complete bool
	// final is its final action where it has temporary tables: looked for before anything else is done.
	final *jobRun
	// target is what its loads are told, once something is to be submitted.
	target *target
}

// following says that the final action has been submitted before, and nothing is left but to wait for it.
func (p *partRun) following() bool { return p.final != nil && p.final.step == await }

// jobRun is a job of a plan on its way.
type jobRun struct {
	*loadplan.Job
	*chain
	location string
	status   jobStatus // the last that was seen
	again    int       // how often it was submitted again, of InlineRetries
	counted  bool      // in loadJobsSubmitted
	pending  bool      // counted in pendingJobs
}

// ref names the job of the id in hand.
func (j *jobRun) ref(p *partRun) jobRef { return jobRef{p.JobProject, j.location, j.id()} }

// decorated says that a destination is one partition of a table.
func decorated(dst table.Destination) bool { return strings.Contains(dst.Table, "$") }
