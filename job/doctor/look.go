package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job/plan"
)

// look is a look at what BigQuery has.
type look struct {
	*examination
	in       *bigquery.Inspector
	emulated bool
	// datasets are those that were found, and where they are.
	datasets map[string]string
}

// atOnce is how many tables are asked about at the same time.
const atOnce = 8

func (l *look) all(ctx context.Context) {
	l.source(ctx)
	tables := l.plan.Tables
	if len(tables) == 0 {
		l.report.add(Warn, "table "+l.plan.Table, "which tables there will be, only records tell, and none was looked at", "")
		return
	}
	if !l.writes(ctx, tables[0].Destination) {
		return
	}
	for i, t := range tables {
		name := t.Destination.Project + "." + t.Destination.Dataset
		if i > 0 && name == tables[i-1].Destination.Project+"."+tables[i-1].Destination.Dataset {
			continue
		}
		if _, met := l.datasets[name]; !met && !l.dataset(ctx, t.Destination.Project, t.Destination.Dataset) {
			return
		}
	}
	l.tables(ctx, tables)
}

// source tells which permissions are missing on the table that is read.
func (l *look) source(ctx context.Context) {
	from, ok := l.job.Reads()
	if !ok {
		return
	}
	in := l.in
	if c := l.job.SourceConnection(l.surroundings); c != l.job.Connection(l.surroundings) {
		other, err := bigquery.NewInspector(ctx, c)
		if errors.Is(err, bigquery.ErrCredentials) {
			err = bigquery.ErrSourceCredentials
		}
		if err != nil {
			l.report.add(Error, "BigQuery, to read", "cannot be asked: "+l.job.Keyed(err).Error(), "see to the credentials and endpoints of source.bigquery.connection")
			return
		}
		defer other.Close()
		in = other
	}
	l.granted(ctx, in, from, l.report)
}

// writes finds out whether the Storage Write API answers.
func (l *look) writes(ctx context.Context, dst table.Destination) bool {
	err := l.in.ReachWrites(ctx, dst)
	if err == nil {
		return true
	}
	l.report.add(Error, "Storage Write API", "does not answer: "+err.Error(),
		"see that this machine can reach it, that it is enabled in the project (bigquerystorage.googleapis.com), and that sink.bigquery.connection names the right endpoints")
	return false
}

// dataset reports whether it is worth looking on.
func (l *look) dataset(ctx context.Context, project, name string) bool {
	id := project + "." + name
	thing := "dataset " + id
	l.datasets[id] = ""
	d, err := l.in.Dataset(ctx, project, name)
	want := l.job.Sink.BigQuery.Location
	switch {
	case err == nil:
		l.datasets[id] = d.Location
		l.clock(d.Answered)
	case errors.Is(err, bigquery.ErrAbsent) && l.plan.Create.Datasets:
		l.report.add(OK, thing, "is not there, and would be made"+in(want)+"; it needs bigquery.datasets.create on the project", "")
		return true
	case errors.Is(err, bigquery.ErrAbsent):
		l.report.add(Error, thing, "is not there, or the project is not", fmt.Sprintf("make it: bq mk --dataset %s%s:%s", location(want), project, name))
		return true
	case bigquery.Denied(err):
		l.report.add(Warn, thing, "may not be looked at, or is not there: "+err.Error(), "grant bigquery.datasets.get on it to have it looked at; the job does not need that")
		return true
	default:
		l.report.add(Error, "BigQuery", "does not answer: "+err.Error(), "see that this machine can reach it, and that the credentials are good")
		return false
	}
	if want != "" && !strings.EqualFold(want, d.Location) {
		level := Error
		if l.emulated {
			level = Warn // no emulator has places
		}
		l.report.add(level, thing, fmt.Sprintf("is in %s, and sink.bigquery.location says %s", d.Location, want), "leave location out, or have it say "+d.Location)
		return true
	}
	l.report.add(OK, thing, "is in "+cmp.Or(d.Location, "a place that is not told"), "")
	return true
}

func in(location string) string {
	if location == "" {
		return ""
	}
	return " in " + location
}

func location(want string) string {
	if want == "" {
		return ""
	}
	return "--location=" + want + " "
}

// clocks may be apart for so long before tokens are refused (Google's OAuth 2.0 documentation, "Using OAuth 2.0 for server to
// server applications": an assertion is good for an hour at most, from the time that it names).
const clocksApart = 5 * time.Minute

// clock compares clocks, once.
func (l *look) clock(answered time.Time) {
	const thing = "clock of this machine"
	if answered.IsZero() || slices.ContainsFunc(l.report.Findings, func(f Finding) bool { return f.Thing == thing }) {
		return
	}
	apart := l.now().Sub(answered)
	if apart.Abs() > clocksApart {
		l.report.add(Warn, thing, fmt.Sprintf("is %s from that of BigQuery", apart.Abs().Round(time.Second)), "set it: credentials are refused where clocks are too far apart")
		return
	}
	l.report.add(OK, thing, "agrees with that of BigQuery", "")
}

// tables looks at them side by side, and reports in their order.
func (l *look) tables(ctx context.Context, tables []plan.Table) {
	reports := make([]Report, len(tables))
	turns := make(chan int)
	var workers sync.WaitGroup
	for range min(atOnce, len(tables)) {
		workers.Go(func() { // ends when turns is closed, joined below
			for i := range turns {
				l.table(ctx, tables[i], &reports[i])
			}
		})
	}
	for i := range tables {
		turns <- i
	}
	close(turns)
	workers.Wait()
	for _, r := range reports {
		l.report.Findings = append(l.report.Findings, r.Findings...)
	}
}

func (l *look) table(ctx context.Context, t plan.Table, r *Report) {
	thing := "table " + t.Name
	info, err := l.in.Table(ctx, t.Destination)
	switch {
	case err == nil:
		l.compare(t, info, r)
	case errors.Is(err, bigquery.ErrAbsent) && l.job.Sink.BigQuery.Schema.Table:
		r.add(Error, thing, "is not there, and the job takes its columns from it", "make it, or have the columns come from elsewhere (sink.bigquery.schema)")
		return
	case errors.Is(err, bigquery.ErrAbsent) && l.plan.Create.Disposition == "never":
		r.add(Error, thing, "is not there, and create.disposition is never", "make it, or let the job: create.disposition: if-needed")
		return
	case errors.Is(err, bigquery.ErrAbsent):
		r.add(OK, thing, "is not there, and would be made; it needs bigquery.tables.create on the dataset, which no call tells ahead", "")
		return
	case bigquery.Denied(err):
		r.add(Warn, thing, "may not be looked at, or is not there: its columns are not compared", "grant bigquery.tables.get on it")
	default:
		r.add(Error, thing, "cannot be read: "+err.Error(), "")
		return
	}
	l.permissions(ctx, t, r)
}

// permissions tells which of those that the plan names are missing on a table that is there.
func (l *look) permissions(ctx context.Context, t plan.Table, r *Report) {
	l.granted(ctx, l.in, t.Destination, r)
}

func (l *look) granted(ctx context.Context, in *bigquery.Inspector, dst table.Destination, r *Report) {
	thing := "permissions on table " + dst.String()
	from, _ := l.job.Reads()
	need := map[string]string{}
	var names []string
	for _, p := range l.plan.Permissions {
		if reads := p.Resource == from.String(); p.Kind == plan.OnTable && reads == (dst == from) {
			need[p.Name] = p.For
			names = append(names, p.Name)
		}
	}
	granted, err := in.Granted(ctx, dst, names)
	if err != nil {
		r.add(Warn, thing, "cannot be told: "+err.Error(), "")
		return
	}
	missing := false
	for _, name := range names {
		if !slices.Contains(granted, name) {
			missing = true
			r.add(Error, thing, name+" is missing, to "+need[name], "grant it on the table, the dataset or the project")
		}
	}
	if !missing {
		r.add(OK, thing, "all that the job needs: "+strings.Join(names, ", "), "")
	}
}
