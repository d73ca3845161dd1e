package fileload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/objects"
	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// Method is what metrics call this way to write.
const Method = "file-loads"

// Committer has the rows of staged files loaded into their tables. It keeps nothing from one Commit to the next but clients, and where
// datasets are.
type Committer struct {
	cfg     Config
	log     *slog.Logger
	meters  commitMeters
	cadence cadence

	rest      *gcp.REST // nil before the first commit
	files     *objects.Store
	jobs      *jobs
	admin     *tableadmin.Admin
	janitor   *tableadmin.Admin // for what may as well be left behind
	locations *locations
}

var _ stream.Committer = (*Committer)(nil)

// NewCommitter makes a committer. It opens nothing before its first commit.
func NewCommitter(cfg Config) *Committer {
	return &Committer{cfg: cfg, log: cfg.Log, meters: newCommitMeters(cfg.Meter, cfg.Job), cadence: cadence{least: cfg.Options.MinCheckpointInterval}}
}

// Commit loads all files that cs name, and returns nil once their rows are visible. cs are of one run and one checkpoint. Jobs that an
// earlier commit of the same has submitted are found and not submitted again, whoever did so; a job is never cancelled.
func (c *Committer) Commit(ctx context.Context, cs []stream.Committable) error {
	begun := time.Now()
	plan, written, empty, err := c.plan(cs)
	if err != nil {
		return misconfiguration{fmt.Errorf("commit staged files: %w", err)}
	}
	if len(plan.Parts) == 0 {
		return nil
	}
	c.watchCadence(ctx, plan, begun)
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.meters.quiet()
	if empty != nil {
		if err := c.makeEmpty(ctx, empty); err != nil {
			return err
		}
	}
	r := c.newRun(plan, written)
	if err := r.execute(ctx); err != nil {
		c.locations.forget()
		return err
	}
	r.cleanUp(ctx)
	c.meters.took(time.Since(begun))
	r.tell(ctx, time.Since(begun))
	return nil
}

// plan makes the plan of a commit, without touching anything. empty is the file of a batch without rows, which is not there yet.
func (c *Committer) plan(cs []stream.Committable) (plan *loadplan.Plan, written fileSchemas, empty *loadplan.Committable, err error) {
	written = fileSchemas{}
	files := make([]loadplan.Committable, len(cs))
	for i := range cs {
		if err := files[i].UnmarshalBinary(cs[i].Data); err != nil {
			return nil, nil, nil, err
		}
		written.add(files[i].Destination, files[i].Schema)
		files[i].Schema = ""
	}
	files, empty = c.cfg.withoutRows(files)
	plan, err = loadplan.Build(c.cfg.Options.Plan, c.cfg.Options.Limits, slices.Values(files))
	if err == nil {
		err = c.knowsFormats(plan)
	}
	return plan, written, empty, err
}

// knowsFormats refuses files in a format of somebody's own where nobody says what load jobs are told about it.
func (c *Committer) knowsFormats(plan *loadplan.Plan) error {
	if c.cfg.Options.Custom != nil {
		return nil
	}
	for i := range plan.Parts {
		for _, load := range plan.Parts[i].Loads {
			if load.Format == loadplan.Custom {
				return fmt.Errorf("%w: %s for %s is in a format of the program's own: set StagingFormat FormatCustom and Custom, as when it was staged, until such files are loaded",
					loadplan.ErrCommittable, load.URIs[0], load.Target)
			}
		}
	}
	return nil
}

// watchCadence warns of a streaming sink whose commits follow one another too fast.
func (c *Committer) watchCadence(ctx context.Context, plan *loadplan.Plan, now time.Time) {
	if !plan.Checkpoint.Set {
		return
	}
	if since, warn := c.cadence.tooFast(now); warn {
		c.log.WarnContext(ctx, "checkpoints follow one another faster than MinCheckpointInterval: BigQuery allows 1,500 modifications of a table a day",
			"checkpoint", plan.Checkpoint.ID, "interval", since.Round(time.Millisecond), "min_interval", c.cadence.least)
	}
}

// open opens clients at the first commit that needs them.
func (c *Committer) open(ctx context.Context) error {
	if c.rest != nil {
		return nil
	}
	// Some credentials keep the context for as long as they refresh their token.
	rest, err := c.cfg.Connection.REST(context.WithoutCancel(ctx))
	if err != nil {
		if errors.Is(err, gcp.ErrCredentials) || errors.Is(err, gcp.ErrNoCredentials) || errors.Is(err, gcp.ErrEndpoint) {
			return misconfiguration{err}
		}
		return err
	}
	o := &c.cfg.Options
	c.rest = rest
	c.files = objects.New(c.cfg.Connection, o.CallTimeout)
	c.jobs = &jobs{rest, restcall.Caller{Schedule: jobCalls, Pacer: c.cfg.Pacer, Within: o.CallTimeout, Log: c.log}}
	c.admin = tableadmin.With(rest, restcall.Caller{Schedule: o.SchemaRace, Pacer: c.cfg.Pacer, Each: o.CallTimeout, Log: c.log})
	c.admin.KMSKeyName = o.Jobs.KMSKeyName
	c.janitor = tableadmin.With(rest, restcall.Caller{Schedule: janitorCalls, Pacer: c.cfg.Pacer, Each: o.CallTimeout, Log: c.log})
	c.locations = newLocations(o.Plan.Location, c.admin, c.cfg.Create.Datasets)
	return nil
}

// janitorCalls paces deletions that fail in passing.
var janitorCalls = retry.Schedule{Initial: 500 * time.Millisecond, Max: 2 * time.Second, Attempts: 3}

// Close is idempotent.
func (c *Committer) Close() error {
	if c.rest == nil {
		return nil
	}
	c.rest.Close()
	c.rest = nil
	return c.files.Close()
}

// tell says what a commit has done.
func (r *run) tell(ctx context.Context, took time.Duration) {
	rows := int64(0)
	for i := range r.plan.Parts {
		rows += r.plan.Parts[i].Rows
	}
	log := r.log
	if r.plan.Checkpoint.Set {
		log = log.With("checkpoint", r.plan.Checkpoint.ID)
	}
	log.InfoContext(ctx, "staged rows are visible", "rows", rows, "tables", len(r.plan.Parts), "duration", took.Round(time.Millisecond))
}
