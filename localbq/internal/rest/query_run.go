package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// stopped is the reason of a job that was cancelled, bytesBilledLimit that of one that would have cost too much.
const (
	stopped          refusal.Reason = "stopped"
	bytesBilledLimit refusal.Reason = "bytesBilledLimitExceeded"
)

var errCancelled = &refusal.Error{Reason: stopped, Message: "Job execution was cancelled: User requested cancellation"}

// run carries a job out that is queued, until leave is called, or refused a place there. It is the job's own goroutine, which
// ends with it.
func (js *jobs) run(ctx context.Context, j *job, leave func(), refused error) {
	defer j.cancel(nil)
	err := refused
	if err == nil {
		err = js.pending(ctx, j)
		leave()
	}
	if err != nil {
		j.finish(js.server.Clock.Now(), nil, err, nil)
		js.keepOutcome(j)
		return
	}
	defer func() { <-js.slots }()
	j.start(js.server.Clock.Now())
	if ms := j.task.timeout(); ms > 0 {
		timer := js.server.Clock.AfterFunc(time.Duration(ms)*time.Millisecond, func() {
			j.cancel(&refusal.Error{Reason: stopped, Message: "Job execution was cancelled: Job timed out after " + time.Duration(ms*int64(time.Millisecond)).String()})
		})
		defer timer.Stop()
	}
	result, err := js.perform(ctx, j)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	j.finish(js.server.Clock.Now(), result, err, js.server.Store.Settle)
	js.keepOutcome(j)
}

// statement is what a job's configuration asks the engine.
func (s *Server) statement(project, principal string, c *queryConfig) query.Statement {
	out := query.Statement{SQL: c.Query, Parameters: c.parameters, Project: project, Now: s.Clock.Now(), User: principal, DryRun: c.dryRun}
	if d := c.DefaultDataset; d != nil {
		out.DefaultProject, out.DefaultDataset = d.ProjectId, d.DatasetId
	}
	return out
}

// run runs the statement and stores its rows.
func (c *queryConfig) run(ctx context.Context, s *Server, j *job) (*jobResult, error) {
	if s.Queries == nil {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery cannot run queries: %s", s.NoQueries)
	}
	found := s.catalog(j.principal)
	found.location = j.key.location
	if hit := s.cached(ctx, j, found); hit != nil {
		return hit, nil
	}
	found.sources, found.uncacheable = nil, false
	r, err := s.Queries.Run(ctx, s.statement(j.key.project, j.principal, j.config), found)
	if err != nil {
		return nil, err
	}
	if most := j.config.MaximumBytesBilled; most > 0 && billed(r.BytesProcessed) > most {
		return nil, refusal.New(bytesBilledLimit, "Query exceeded limit for bytes billed: %d. %d or higher required.", most, billed(r.BytesProcessed))
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	out := &jobResult{rows: r.Rows, schema: r.Schema.REST(), bytes: r.BytesProcessed, tables: r.Tables}
	if r.Change != nil {
		return out, s.apply(j, r, found.version, out)
	}
	if j.config.DestinationTable == nil {
		if err = s.keepAnonymous(j, r, out); err == nil {
			s.remember(j, r, out, found)
		}
	} else {
		err = s.keepIn(j, r, out)
	}
	return out, err
}

// billed is the bytes that are paid for: at least 10 MiB where anything is read (measured by another connector, 2026-08).
func billed(processed int64) int64 {
	if processed == 0 {
		return 0
	}
	return max(processed, 10<<20)
}

// anonymousLife is how long a result without a destination is kept (BigQuery documentation, "Writing query results").
const anonymousLife = 24 * time.Hour

// keepAnonymous stores a result in the principal's hidden dataset.
func (s *Server) keepAnonymous(j *job, r *query.Result, out *jobResult) error {
	dataset := store.DatasetRef{Project: j.key.project, Dataset: query.AnonymousDataset(j.principal, j.key.project, j.key.location)}
	if _, err := s.Store.CreateDataset(dataset, store.DatasetOptions{Location: j.key.location}); err != nil && !refusal.Is(err, refusal.Duplicate) {
		return err
	}
	var id [16]byte
	rand.Read(id[:])
	ref := dataset.Table("anon" + hex.EncodeToString(id[:]))
	// The expiration is for a service that is started again; this one deletes the table itself, a moment earlier.
	expires := s.Clock.Now().Add(anonymousLife + time.Second).UnixMilli()
	t, err := s.Store.CreateTable(ref, &schema.Definition{Schema: r.Schema, ExpirationMs: expires})
	if err != nil {
		return err
	}
	s.jobs.deleteLater(ref)
	if err := s.Store.SetMode(ref, store.ModeStore); err != nil { // results are kept, whatever tables are
		return err
	}
	out.table, out.into = t, ref
	return s.writeResult(j, t, r, store.Rows{}, out)
}

func (s *Server) writeResult(j *job, t *store.Table, r *query.Result, w store.Rows, out *jobResult) error {
	w.Info, w.Batches = t.Info(), r.Batches
	_, err := s.commit(j, t, w, out)
	return err
}

// commit writes rows of a query's, together with the job's outcome.
func (s *Server) commit(j *job, t *store.Table, w store.Rows, out *jobResult) (store.Written, error) {
	w.Job = j.outcome(s.Clock.Now(), out)
	written, err := t.Write(w)
	out.version = written.After
	if err != nil {
		out.recorded = false
	}
	return written, err
}

// keepIn stores a result in the table that the job names.
func (s *Server) keepIn(j *job, r *query.Result, out *jobResult) error {
	to := targetOf(j.config.DestinationTable, j.key.project)
	ref := to.ref
	dataset, err := s.Store.Dataset(ref.DatasetRef())
	if err == nil && !strings.EqualFold(dataset.Location, j.key.location) {
		err = refusal.New(refusal.NotFound, "Not found: Dataset %s was not found in location %s", ref.DatasetRef(), j.key.location)
	}
	if err != nil {
		return err
	}
	t, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound) && j.config.CreateDisposition != "CREATE_NEVER":
		return s.makeResult(j, to, r, out)
	case err != nil:
		return err
	}
	out.table, out.into, out.partition = t, ref, to.partition
	return s.overwrite(j, to, t, r, out)
}

// makeResult stores a result in a table that it makes.
func (s *Server) makeResult(j *job, to target, r *query.Result, out *jobResult) error {
	rows := store.Rows{Definition: j.config.destination(r.Schema), Batches: r.Batches}
	if err := to.place(nil, &rows); err != nil {
		return err
	}
	out.into, out.partition = to.ref, to.partition
	var err error
	out.table, err = s.make(j, to.ref, rows, out)
	return err
}

// make makes a table with a job's rows and the job's outcome.
func (s *Server) make(j *job, ref store.TableRef, rows store.Rows, out *jobResult) (*store.Table, error) {
	rows.Job = j.outcome(s.Clock.Now(), out)
	t, written, err := s.Store.MakeTable(ref, rows.Definition, rows)
	out.version = written.After
	if err != nil {
		out.recorded = false
	}
	return t, err
}

// destination is the definition of a table that a query makes.
func (c *queryConfig) destination(columns *schema.Schema) *schema.Definition {
	d, err := definition(&bqapi.Table{TimePartitioning: c.TimePartitioning, RangePartitioning: c.RangePartitioning, Clustering: c.Clustering})
	if err != nil {
		panic(err) // only a schema or a view can be wrong
	}
	d.Schema = columns
	return d
}

// overwrite stores a result in a table that exists, by the job's write disposition.
func (s *Server) overwrite(j *job, to target, t *store.Table, r *query.Result, out *jobResult) error {
	if t.Info().View != nil {
		return notAllowed(t)
	}
	w := store.Rows{Truncate: true, Definition: j.config.destination(r.Schema), Batches: r.Batches}
	switch disposition := j.config.WriteDisposition; {
	case to.partition != "":
		return s.addResult(j, to, t, r, out)
	case oneOf(disposition, "", "WRITE_EMPTY"):
		if t.Stats().Rows > 0 {
			return refusal.New(refusal.Duplicate, "Already Exists: Table %s", t.Ref())
		}
		w.Truncate, w.Empty = false, true
	case disposition != "WRITE_TRUNCATE":
		return s.addResult(j, to, t, r, out)
	}
	if err := to.place(t, &w); err != nil {
		return err
	}
	return s.writeResult(j, t, r, w, out)
}

// errorProto is an error as a job's status has it.
func errorProto(err error) *bqapi.ErrorProto {
	if errors.Is(err, errClosed) {
		return &bqapi.ErrorProto{Reason: string(stopped), Message: errClosed.Error()}
	}
	e := refusalOf(err)
	return &bqapi.ErrorProto{Reason: string(e.Reason), Message: e.Message, Location: e.Location}
}
