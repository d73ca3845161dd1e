package loadplan

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Build plans the commit of cs, in whatever order they come. Copies of one committable count as one. Without committables the plan
// is empty.
//
// Errors are ErrMixedCommit, ErrCommitProfileChanged, ErrDuplicateStagedFile, ErrPlanTooLarge, and ErrCommittable for values that no
// writer makes.
func Build(cfg Config, lim Limits, cs iter.Seq[Committable]) (*Plan, error) {
	if err := errors.Join(cfg.check(), lim.check()); err != nil {
		return nil, err
	}
	c, err := collect(cfg, cs)
	if err != nil {
		return nil, err
	}
	if err := c.sorted(); err != nil {
		return nil, err
	}
	groups := c.groups(lim)
	if err := fits(groups, cfg.Disposition, lim); err != nil {
		return nil, err
	}
	b := builder{cfg: cfg, lim: lim, name: newNamer(cfg, c.run, c.checkpoint)}
	plan := &Plan{Run: c.run, Checkpoint: c.checkpoint}
	for _, formats := range byDestination(groups) {
		plan.Parts = append(plan.Parts, b.part(formats))
	}
	return plan, nil
}

// byDestination cuts groups, which are in order, into those of one destination each.
func byDestination(groups []group) (all [][]group) {
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && groups[n].destination == groups[0].destination {
			n++
		}
		all, groups = append(all, groups[:n:n]), groups[n:]
	}
	return all
}

// temporary says whether files of one destination go by way of temporary tables: when one load job cannot take all of a format, or
// when a second load would replace what the first one wrote.
func temporary(formats []group, d Disposition) bool {
	for i := range formats {
		if len(formats[i].partitions) > 1 {
			return true
		}
	}
	return len(formats) > 1 && d.Replaces()
}

// leaves is how many loads the files of one destination take.
func leaves(formats []group) (n int) {
	for i := range formats {
		n += len(formats[i].partitions)
	}
	return n
}

// fits checks how many jobs there would be.
func fits(groups []group, d Disposition, lim Limits) error {
	loads, copies := 0, 0
	for _, formats := range byDestination(groups) {
		n := leaves(formats)
		loads += n
		if temporary(formats, d) {
			copies += Copies(n, lim.SourcesPerCopy)
		}
	}
	const advice = "raise MaxStagingFileBytes or commit less at once"
	if loads > lim.Loads {
		return fmt.Errorf("%w: commit needs %d load jobs, limit %d: %s", ErrPlanTooLarge, loads, lim.Loads, advice)
	}
	if copies > lim.Copies {
		return fmt.Errorf("%w: commit needs %d copy jobs, limit %d: %s", ErrPlanTooLarge, copies, lim.Copies, advice)
	}
	return nil
}

// Copies is how many copy jobs bring that many tables into one, when each reads at most most of them.
func Copies(tables, most int) (jobs int) {
	for tables > most {
		full, rest := tables/most, tables%most
		jobs += full
		tables = full
		if rest > 0 {
			tables++ // of its own, or carried up as it is
		}
		if rest > 1 {
			jobs++
		}
	}
	return jobs + 1
}

// builder makes the parts of a plan.
type builder struct {
	cfg  Config
	lim  Limits
	name *namer
}

func (b *builder) part(formats []group) Part {
	p := Part{Destination: formats[0].destination, JobProject: cmp.Or(b.cfg.JobProject, formats[0].destination.Project)}
	if temporary(formats, b.cfg.Disposition) {
		p.Loads = b.leafLoads(formats)
		b.copies(&p)
	} else {
		for i := range formats {
			p.Loads = append(p.Loads, b.directLoad(&formats[i]))
		}
	}
	for i := range p.Loads {
		p.Rows, p.Bytes = p.Rows+p.Loads[i].Rows, p.Bytes+p.Loads[i].Bytes
	}
	return p
}

func (b *builder) directLoad(g *group) Job {
	q := g.partitions[0]
	return Job{
		Kind: LoadJob, ID: b.name.load(g.destination, q.uris, ""), Target: g.destination, Write: b.cfg.Disposition, SchemaUpdates: b.updates(),
		Format: g.format, URIs: q.uris, Rows: q.rows, Bytes: q.bytes,
	}
}

// updates says whether jobs that write to a destination may carry the native options of schema updates. With WRITE_TRUNCATE the
// schema is replaced anyway; with WRITE_EMPTY the service refuses them.
func (b *builder) updates() bool {
	return b.cfg.Disposition == Append || b.cfg.Disposition == TruncateData
}

func (b *builder) leafLoads(formats []group) []Job {
	jobs := make([]Job, 0, leaves(formats))
	for i := range formats {
		g := &formats[i]
		prefix := b.name.leaves(g.destination, g.format, len(formats) > 1)
		for n, q := range g.partitions {
			number := strconv.Itoa(n)
			target := prefix
			target.Table += number
			jobs = append(jobs, Job{
				Kind: LoadJob, ID: b.name.load(g.destination, q.uris, "-p"+number), Target: target, Temp: true, Write: Truncate,
				Format: g.format, URIs: q.uris, Rows: q.rows, Bytes: q.bytes,
			})
		}
	}
	return jobs
}

// copies adds what brings the leaves into the destination: as many levels as it takes until one copy reads all that is left, and
// that copy. Where copy jobs do not know the disposition it makes one more table, which a query reads.
func (b *builder) copies(p *Part) {
	sources := make([]table.Destination, len(p.Loads))
	for i := range p.Loads {
		sources[i] = p.Loads[i].Target
	}
	for len(sources) > b.lim.SourcesPerCopy {
		var jobs []Job
		jobs, sources = b.gather(p.Destination, sources, len(p.Levels)+1)
		p.Levels = append(p.Levels, jobs)
	}
	p.Final = &Job{Kind: CopyJob, Target: p.Destination, Write: b.cfg.Disposition, Sources: sources}
	if b.cfg.Disposition == TruncateData {
		p.Final.Target, p.Final.Temp, p.Final.Write = b.name.gathered(p.Destination, sources, "_aggregate"), true, Truncate
		p.Query = &Job{
			Kind: QueryJob, ID: b.name.query(p.Destination, p.Final.Target), Target: p.Destination, Write: TruncateData,
			SchemaUpdates: b.updates(), SQL: SelectAll(p.Final.Target),
		}
	}
	p.Final.ID = b.name.copying(p.Final.Target, sources, "")
}

// gather makes the copies of one level and says what is left to copy: the tables that they make, and a single source that is left
// over at the end.
func (b *builder) gather(dst table.Destination, sources []table.Destination, level int) (jobs []Job, left []table.Destination) {
	number := 0
	for some := range slices.Chunk(sources, b.lim.SourcesPerCopy) {
		if len(some) == 1 {
			left = append(left, some[0])
			continue
		}
		target := b.name.gathered(dst, some, fmt.Sprintf("_l%d_g%d", level, number))
		jobs = append(jobs, Job{
			Kind: CopyJob, ID: b.name.copying(target, some, fmt.Sprintf("-l%dg%d", level, number)), Target: target, Temp: true,
			Write: Truncate, Sources: some,
		})
		left = append(left, target)
		number++
	}
	return jobs, left
}
