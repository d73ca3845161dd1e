package tableadmin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// ErrAbsent is found in the error of a call about a table, or in a dataset, that does not exist.
var ErrAbsent = restcall.ErrAbsent

// Admin reads, creates and changes tables. Safe for concurrent use.
type Admin struct {
	// KMSKeyName is the key of Cloud KMS that tables it creates are encrypted with; "" leaves that to the service.
	KMSKeyName string

	rest  *gcp.REST
	calls restcall.Caller
	pacer retry.Pacer
	log   *slog.Logger
}

// New makes an Admin that calls through rest, which stays the caller's to close, and repeats passing failures as
// schedule says.
func New(rest *gcp.REST, schedule retry.Schedule, pacer retry.Pacer, log *slog.Logger) *Admin {
	return With(rest, restcall.Caller{Schedule: schedule, Pacer: pacer, Log: log})
}

// With makes an Admin that calls as calls says.
func With(rest *gcp.REST, calls restcall.Caller) *Admin {
	return &Admin{rest: rest, calls: calls, pacer: calls.Pacer, log: calls.Log}
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
	err := a.calls.Do(ctx, "read table "+dst.String(), func(ctx context.Context) (err error) {
		t, err = a.rest.Tables.Get(dst.Project, dst.Dataset, plainID(dst)).Context(ctx).Do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return describe(dst, t)
}

func describe(dst table.Destination, t *bqrest.Table) (d *Description, err error) {
	d = &Description{ETag: t.Etag, Location: t.Location, Kind: t.Type, NumRows: t.NumRows, NumBytes: t.NumBytes}
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
	if a.KMSKeyName != "" {
		t.EncryptionConfiguration = &bqrest.EncryptionConfiguration{KmsKeyName: a.KMSKeyName}
	}
	created = true
	err = a.calls.Do(ctx, "create table "+dst.String(), func(ctx context.Context) error {
		_, err := a.rest.Tables.Insert(dst.Project, dst.Dataset, t).Context(ctx).Do()
		if restcall.Classify(err) == restcall.Exists {
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
	return a.calls.Do(ctx, "create dataset "+project+"."+dataset, func(ctx context.Context) error {
		_, err := a.rest.Datasets.Insert(project, d).Context(ctx).Do()
		if restcall.Classify(err) == restcall.Exists {
			return nil
		}
		return err
	})
}

// Delete deletes a table. One that is not there is success. Needs bigquery.tables.delete.
func (a *Admin) Delete(ctx context.Context, dst table.Destination) error {
	err := a.calls.Do(ctx, "delete table "+dst.String(), func(ctx context.Context) error {
		return a.rest.Tables.Delete(dst.Project, dst.Dataset, plainID(dst)).Context(ctx).Do()
	})
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	return err
}

// Exists says whether a table is there.
func (a *Admin) Exists(ctx context.Context, dst table.Destination) (bool, error) {
	err := a.calls.Do(ctx, "look for table "+dst.String(), func(ctx context.Context) error {
		_, err := a.rest.Tables.Get(dst.Project, dst.Dataset, plainID(dst)).Fields("tableReference").Context(ctx).Do()
		return err
	})
	if errors.Is(err, ErrAbsent) {
		return false, nil
	}
	return err == nil, err
}

// plainID is the table id without a partition decorator, which names a part of a table and no table.
func plainID(dst table.Destination) string {
	id, _, _ := strings.Cut(dst.Table, "$")
	return id
}
