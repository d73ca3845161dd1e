package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// remote is what a writer asks of the service.
type remote interface {
	// open makes a handle to append to a table's default stream with. The error of a table that does not exist is what
	// the service makes of it.
	open(ctx context.Context, dst table.Destination) (appender, error)
	// createStream makes a stream of type BUFFERED on a table and answers its name.
	createStream(ctx context.Context, dst table.Destination) (string, error)
	// openStream opens a created stream; restored says that it is known from before this process, and may be gone.
	openStream(ctx context.Context, dst table.Destination, name string, restored bool) (ownAppender, error)
	// create creates a table and tells whether it was not there.
	create(ctx context.Context, dst table.Destination, s *table.Schema, o table.CreateOptions) (bool, error)
	// reconcile changes a table so that it takes other rows, see tableadmin.Admin.Reconcile.
	reconcile(ctx context.Context, dst table.Destination, w tableadmin.Wanted) (tableadmin.Outcome, error)
	// release is called once, when the writer closes.
	release() error
}

// appender takes calls for one stream. append returns once the call was taken; its result comes through its future.
type appender interface {
	append(ctx context.Context, c *call) error
}

// link is the remote that is BigQuery, or a local service in its place.
type link struct {
	service  *service
	options  Options
	location string // "" looks datasets up
	datasets bool   // create missing datasets
	pacer    retry.Pacer
	log      *slog.Logger
}

func newLink(c gcp.Connection, cfg Config) *link {
	return &link{acquire(c), cfg.Options, cfg.Location, cfg.Create.Datasets, cfg.Pacer, cfg.Log}
}

func (l *link) open(ctx context.Context, dst table.Destination) (appender, error) {
	location := l.location
	if location == "" {
		var err error
		if location, err = l.service.locate(ctx, dst); err != nil {
			return nil, err
		}
	}
	p, err := l.service.poolAt(ctx, dst.Project, location, l.options, l.log)
	if err != nil {
		return nil, err
	}
	return newHandle(p, streamName(dst)), nil
}

func (l *link) createStream(ctx context.Context, dst table.Destination) (string, error) {
	return l.service.createStream(ctx, dst.Path())
}

func (l *link) openStream(ctx context.Context, _ table.Destination, name string, restored bool) (ownAppender, error) {
	return l.service.openOwn(ctx, name, restored, l.options, l.log)
}

func (l *link) create(ctx context.Context, dst table.Destination, s *table.Schema, o table.CreateOptions) (bool, error) {
	admin, err := l.admin(ctx)
	if err != nil {
		return false, err
	}
	created, err := admin.Create(ctx, dst, s, o)
	if !errors.Is(err, tableadmin.ErrAbsent) {
		return created, err
	}
	if !l.datasets {
		return false, fmt.Errorf("%w: create the dataset %s.%s first, or set Create.Datasets", err, dst.Project, dst.Dataset)
	}
	if err := admin.EnsureDataset(ctx, dst.Project, dst.Dataset, l.location); err != nil {
		return false, err
	}
	return admin.Create(ctx, dst, s, o)
}

func (l *link) reconcile(ctx context.Context, dst table.Destination, w tableadmin.Wanted) (tableadmin.Outcome, error) {
	admin, err := l.admin(ctx)
	if err != nil {
		return tableadmin.Unchanged, err
	}
	return admin.Reconcile(ctx, dst, w)
}

func (l *link) admin(ctx context.Context) (*tableadmin.Admin, error) {
	rest, err := l.service.admin(ctx)
	if err != nil {
		return nil, err
	}
	return tableadmin.New(rest, l.options.Recovery, l.pacer, l.log), nil
}

func (l *link) release() error { return l.service.release() }
