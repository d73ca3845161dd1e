package rest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/ingestion"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// catalog finds the tables of one statement. All of them are read at one version, fixed when the catalog is made.
type catalog struct {
	server    *Server
	principal string
	version   int64
	// location is where the job runs; tables elsewhere do not exist for it. "" is everywhere.
	location string
	// sources are the tables and views that have been asked for, as they were then; uncacheable says that there was one of
	// which no result may be kept.
	sources     []cacheSource
	uncacheable bool
}

func (s *Server) catalog(principal string) *catalog {
	return &catalog{server: s, principal: principal, version: s.Store.Version()}
}

// Table implements query.Catalog.
func (c *catalog) Table(_ context.Context, ref query.Ref, asOf time.Time) (*query.Table, error) {
	if view, ok := strings.CutPrefix(ref.Table, query.InformationSchema+"."); ok {
		c.uncacheable = true
		return c.information(ref, view)
	}
	at := store.TableRef(ref)
	t, err := c.find(at)
	if err != nil {
		return nil, err
	}
	if !query.MayRead(c.principal, ref.Project, ref.Dataset) || c.server.Denied != nil && c.server.Denied(c.principal, "bigquery.tables.getData", at.Path()) {
		return nil, refusal.New(refusal.AccessDenied,
			"Access Denied: Table %s: User does not have permission to query table %s, or perhaps it does not exist.", at, at)
	}
	if source, ok := c.server.cacheSource(ref); ok && !source.modified.After(store.TimeOf(c.version)) {
		c.sources = append(c.sources, source)
	} else {
		c.uncacheable = true
	}
	if v := t.Info().View; v != nil {
		return &query.Table{Ref: ref, View: v.Query}, nil
	}
	snapshot, err := c.snapshot(t, asOf)
	if err != nil {
		return nil, err
	}
	out := &query.Table{
		Ref: ref, Schema: snapshot.Info.Schema, Definition: snapshot.Info.Definition, Rows: snapshot.NumRows(), PartitionColumn: query.RequiredFilter(snapshot.Info.Definition),
		Pseudo: ingestion.Columns(snapshot.Info.Definition),
		Batches: func() ([]arrow.RecordBatch, error) {
			out := parts(snapshot)
			for i, p := range snapshot.Parts() {
				out[i] = ingestion.Append(t, snapshot.Info.Definition, p)
			}
			return out, nil
		},
	}
	bare := *out
	out.RowIDs = func() *query.Table { return rowIDs(bare, snapshot) }
	return out, nil
}

// find is the table, as a job in a location finds it.
func (c *catalog) find(ref store.TableRef) (*store.Table, error) {
	if c.location == "" {
		return c.server.Store.Table(ref)
	}
	if d, err := c.server.Store.Dataset(ref.DatasetRef()); err != nil || !strings.EqualFold(d.Location, c.location) {
		return nil, refusal.New(refusal.NotFound, "Not found: Dataset %s was not found in location %s", ref.DatasetRef(), c.location)
	}
	t, err := c.server.Store.Table(ref)
	if refusal.Is(err, refusal.NotFound) {
		return nil, refusal.New(refusal.NotFound, "Not found: Table %s was not found in location %s", ref, c.location)
	}
	return t, err
}

// locateByTables is the location of the first table that a query reads; US where it reads none or does not compile, which
// the job itself will say.
func (s *Server) locateByTables(project string, config *queryConfig) string {
	statement := s.statement(project, "", config)
	statement.DryRun = true
	first := &firstTable{server: s}
	// What the engine says of the statement does not matter here: the catalog has seen the table by then.
	r, err := s.Queries.Run(context.Background(), statement, first)
	if err == nil && r.Change != nil && first.location == "" {
		first.Table(context.Background(), r.Change.Target, time.Time{})
		first.location = cmp.Or(first.location, r.Change.Dataset.Location)
	}
	return cmp.Or(first.location, "US")
}

// firstTable is a catalog that only looks where the first table is.
type firstTable struct {
	server   *Server
	location string
}

var errSeen = errors.New("the first table has been seen")

// Table implements query.Catalog.
func (f *firstTable) Table(_ context.Context, ref query.Ref, _ time.Time) (*query.Table, error) {
	if d, err := f.server.Store.Dataset(store.TableRef(ref).DatasetRef()); err == nil {
		f.location = d.Location
	} else if location, ok := query.Region(ref.Dataset); ok {
		f.location = normalLocation(location)
	}
	return nil, errSeen
}

func (c *catalog) snapshot(t *store.Table, asOf time.Time) (*store.Snapshot, error) {
	if asOf.IsZero() {
		return t.Query(c.version)
	}
	return t.QueryAt(asOf)
}

func parts(s *store.Snapshot) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(s.Parts()))
	for i, p := range s.Parts() {
		out[i] = p.Batch
	}
	return out
}
