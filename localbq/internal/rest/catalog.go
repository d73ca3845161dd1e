package rest

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// catalog finds the tables of one statement. All of them are read at one version, fixed when the catalog is made.
type catalog struct {
	server    *Server
	principal string
	version   int64
}

func (s *Server) catalog(principal string) *catalog { return &catalog{s, principal, s.Store.Version()} }

// Table implements query.Catalog.
func (c *catalog) Table(_ context.Context, ref query.Ref, asOf time.Time) (*query.Table, error) {
	at := store.TableRef(ref)
	t, err := c.server.Store.Table(at)
	if err != nil {
		return nil, err
	}
	if !query.MayRead(c.principal, ref.Project, ref.Dataset) || c.server.Denied != nil && c.server.Denied(c.principal, "bigquery.tables.getData", at.Path()) {
		return nil, refusal.New(refusal.AccessDenied,
			"Access Denied: Table %s: User does not have permission to query table %s, or perhaps it does not exist.", at, at)
	}
	if v := t.Info().View; v != nil {
		return &query.Table{Ref: ref, View: v.Query}, nil
	}
	snapshot, err := c.snapshot(t, asOf)
	if err != nil {
		return nil, err
	}
	return &query.Table{
		Ref: ref, Schema: snapshot.Info.Schema, Rows: snapshot.NumRows(), PartitionColumn: query.RequiredFilter(snapshot.Info.Definition),
		Batches: func() ([]arrow.RecordBatch, error) { return parts(snapshot), nil },
	}, nil
}

func (c *catalog) snapshot(t *store.Table, asOf time.Time) (*store.Snapshot, error) {
	if asOf.IsZero() {
		return t.SnapshotVersion(c.version)
	}
	return t.SnapshotAt(asOf)
}

func parts(s *store.Snapshot) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(s.Parts()))
	for i, p := range s.Parts() {
		out[i] = p.Batch
	}
	return out
}
