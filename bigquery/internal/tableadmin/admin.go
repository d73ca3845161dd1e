package tableadmin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// callTimeout bounds one attempt. Table calls answer within seconds; a minute is the service's own limit for a request.
const callTimeout = time.Minute

// ErrAbsent is found in the error of a call about a table, or in a dataset, that does not exist.
var ErrAbsent = errors.New("does not exist")

// Admin reads, creates and changes tables. Safe for concurrent use.
type Admin struct {
	rest     *gcp.REST
	schedule retry.Schedule
	pacer    retry.Pacer
	log      *slog.Logger
}

// New makes an Admin that calls through rest, which stays the caller's to close, and repeats passing failures as
// schedule says.
func New(rest *gcp.REST, schedule retry.Schedule, pacer retry.Pacer, log *slog.Logger) *Admin {
	return &Admin{rest: rest, schedule: schedule, pacer: pacer, log: log}
}

// Description is a table as it is now.
type Description struct {
	Schema   *table.Schema
	Options  table.CreateOptions
	ETag     string
	Location string
	Kind     string // "TABLE", "VIEW", "EXTERNAL", "SNAPSHOT", "MATERIALIZED_VIEW"
	NumRows  uint64 // without rows still in the streaming buffer
	NumBytes int64
}

// Describe reads a table. Nothing is cached. The error of a table that does not exist is ErrAbsent.
func (a *Admin) Describe(ctx context.Context, dst table.Destination) (*Description, error) {
	var t *bqrest.Table
	err := a.call(ctx, "read table "+dst.String(), func(ctx context.Context) (err error) {
		t, err = a.rest.Tables.Get(dst.Project, dst.Dataset, plainID(dst)).Context(ctx).Do()
		return err
	})
	if err != nil {
		return nil, err
	}
	d := &Description{ETag: t.Etag, Location: t.Location, Kind: t.Type, NumRows: t.NumRows, NumBytes: t.NumBytes}
	if d.Schema, err = FromREST(t.Schema); err != nil {
		return nil, fmt.Errorf("read table %s: %w", dst, err)
	}
	if d.Options, err = createOptions(t); err != nil {
		return nil, fmt.Errorf("read table %s: %w", dst, err)
	}
	return d, nil
}

// Create creates a table. A table that is there already is success, whoever created it, and stays as it is; created
// tells the two apart. A partition decorator is no part of the table's name here. Needs bigquery.tables.create.
func (a *Admin) Create(ctx context.Context, dst table.Destination, s *table.Schema, o table.CreateOptions) (created bool, err error) {
	t := &bqrest.Table{
		TableReference: &bqrest.TableReference{ProjectId: dst.Project, DatasetId: dst.Dataset, TableId: plainID(dst)},
		Schema:         ToREST(s),
	}
	setCreateOptions(t, o)
	created = true
	err = a.call(ctx, "create table "+dst.String(), func(ctx context.Context) error {
		_, err := a.rest.Tables.Insert(dst.Project, dst.Dataset, t).Context(ctx).Do()
		if classify(err) == exists {
			created = false
			return nil
		}
		return err
	})
	return created && err == nil, err
}

// EnsureDataset creates a dataset unless it is there. location "" leaves the place to the service. Needs
// bigquery.datasets.create.
func (a *Admin) EnsureDataset(ctx context.Context, project, dataset, location string) error {
	d := &bqrest.Dataset{
		DatasetReference: &bqrest.DatasetReference{ProjectId: project, DatasetId: dataset},
		Location:         location,
	}
	return a.call(ctx, "create dataset "+project+"."+dataset, func(ctx context.Context) error {
		_, err := a.rest.Datasets.Insert(project, d).Context(ctx).Do()
		if classify(err) == exists {
			return nil
		}
		return err
	})
}

// plainID is the table id without a partition decorator, which names a part of a table and no table.
func plainID(dst table.Destination) string {
	id, _, _ := strings.Cut(dst.Table, "$")
	return id
}

// call makes attempts until one does not fail in passing, the budget is spent or ctx ends.
func (a *Admin) call(ctx context.Context, what string, do func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := a.attempt(ctx, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
		switch classify(err) {
		case absent:
			return fmt.Errorf("%s: %w: %w", what, ErrAbsent, err)
		case passing, limited:
		default:
			return fmt.Errorf("%s: %w", what, err)
		}
		if a.schedule.Spent(attempt) {
			return fmt.Errorf("%s: %w after attempts=%d: %w", what, retry.ErrBudgetSpent, attempt, err)
		}
		delay := a.pacer.Delay(a.schedule, attempt)
		a.log.InfoContext(ctx, what+" again", "attempt", attempt, "of", a.schedule.Attempts, "backoff", delay, "cause", err)
		if err := a.pacer.Pause(ctx, delay, what); err != nil {
			return err
		}
	}
}

func (a *Admin) attempt(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return do(ctx)
}
