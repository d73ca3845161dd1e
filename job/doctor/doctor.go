package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/plan"
)

// Options say how to look.
type Options struct {
	// Now is the machine's clock; nil is time.Now.
	Now func() time.Time
}

// Examine looks at everything that a job depends on. An *job.InvalidError says that the job file is wrong, and nothing was
// looked at.
func Examine(ctx context.Context, p *job.Parsed, s job.Surroundings, o Options) (*Report, error) {
	e := &examination{job: p, surroundings: s, now: o.Now, report: &Report{Job: p.Job}}
	if e.now == nil {
		e.now = time.Now
	}
	var err error
	e.plan, err = plan.Of(ctx, p, s)
	if invalid := (*job.InvalidError)(nil); errors.As(err, &invalid) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		e.report.add(Error, "job "+p.Job, "cannot be planned: "+err.Error(), "see to that first: not all that the job would do is known")
		if e.plan, err = plan.WithoutInput(p, s); err != nil {
			return nil, err
		}
	} else {
		e.input()
	}
	e.store(ctx)
	e.service(ctx)
	e.quotas()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return e.report, nil
}

// examination is one look at a job.
type examination struct {
	job          *job.Parsed
	surroundings job.Surroundings
	plan         *plan.Plan
	now          func() time.Time
	report       *Report
}

// input tells about what is read.
func (e *examination) input() {
	in := e.plan.Source
	switch {
	case in.From != "":
		e.report.add(OK, "input", in.From+", which can be looked at", "")
	case len(in.Files) == 1 && in.Files[0] == "-":
		e.report.add(OK, "input", "standard input, which is left alone: what it holds is not known", "")
	case in.Lost > 0:
		level, do := Warn, "look at them first: millrace run says which they are"
		if e.plan.Failures == failsJob {
			level, do = Error, "the first of them ends the job: have them kept as dead letters (failures.policy: dead-letter), or mend the input"
		}
		e.report.add(level, "input", fmt.Sprintf("%s; %d of %d records that were looked at lead to no table", files(in), in.Lost, in.Looked), do)
	default:
		e.report.add(OK, "input", files(in), "")
	}
	for _, t := range e.plan.Tables {
		if t.Schema == nil && t.Records > 0 {
			e.report.add(Error, "table "+t.Name, "no schema: none of the records that were met for it can be read", "mend them, or give a schema file")
		}
	}
}

// failsJob is how a plan tells that the first failed record ends the job.
const failsJob = "the first one ends the job"

func files(s plan.Source) string {
	n := fmt.Sprintf("%d files", len(s.Files))
	if len(s.Files) == 1 {
		n = "1 file"
	}
	return fmt.Sprintf("%s of the format %s, %d bytes", n, s.Format, s.Bytes)
}

// store finds out whether checkpoints can be kept.
func (e *examination) store(ctx context.Context) {
	url := e.job.StoreURL()
	thing := "checkpoint store " + url
	if e.plan.Checkpoint.Store == "" {
		e.report.add(OK, "checkpoint store", "none: standard input is read once", "")
		return
	}
	store, err := engine.OpenStore(ctx, url)
	if err != nil {
		e.report.add(Error, thing, "cannot be opened: "+err.Error(), "name another, or see that it can be reached with these credentials")
		return
	}
	defer store.Close()
	if err := store.Probe(ctx, e.job.Job); err != nil {
		e.report.add(Error, thing, "cannot be written: "+err.Error(), "give this process the right to write there, or name another (checkpoint.store)")
		return
	}
	ids, err := store.List(ctx, e.job.Job)
	switch {
	case err != nil:
		e.report.add(Error, thing, "cannot be listed: "+err.Error(), "give this process the right to list what is there")
	case strings.HasPrefix(url, "mem://") && e.plan.Method == "exactly-once":
		e.report.add(Warn, thing, "is gone with the process: what was written and not made visible by then never is", "name a folder or a bucket")
	case len(ids) > 0:
		e.report.add(OK, thing, fmt.Sprintf("can be written; the newest checkpoint of the job there is %d", ids[len(ids)-1]), "")
	default:
		e.report.add(OK, thing, "can be written; there is no checkpoint of the job yet", "")
	}
}

// service asks BigQuery.
func (e *examination) service(ctx context.Context) {
	c := e.job.Connection(e.surroundings)
	who, err := bigquery.WhoCalls(ctx, c)
	if err != nil {
		e.report.add(Error, "credentials", e.job.Keyed(err).Error(), "until there are any, BigQuery is not asked")
		return
	}
	e.report.add(OK, "credentials", identity(who), "")
	in, err := bigquery.NewInspector(ctx, c)
	if err != nil {
		e.report.add(Error, "BigQuery", "cannot be asked: "+e.job.Keyed(err).Error(), "see to the credentials and endpoints of sink.bigquery.connection")
		return
	}
	defer in.Close()
	look := &look{examination: e, in: in, emulated: c.Emulated(), datasets: map[string]string{}}
	look.all(ctx)
}

func identity(i bigquery.Identity) string {
	if i.Kind == "emulator" {
		return "none: it is an emulator that is asked"
	}
	text := i.Kind
	if i.Principal != "" {
		text += ", " + i.Principal
	} else {
		text += ", which does not name the account"
	}
	if i.QuotaProject != "" {
		text += "; calls are counted against " + i.QuotaProject
	}
	return text
}

// quotas tells what is over.
func (e *examination) quotas() {
	over := 0
	for _, q := range e.plan.Quotas {
		if q.Over {
			over++
			e.report.add(Warn, "quota: "+q.Name, fmt.Sprintf("takes %s; the limit is %s by default", q.Uses, q.Limit),
				"ask for more, have fewer lanes (parallelism) or fewer tables; "+q.Source)
		}
	}
	if over == 0 {
		e.report.add(OK, "quotas", "nothing that the job is known to take is over what a project has by default", "")
	}
}
