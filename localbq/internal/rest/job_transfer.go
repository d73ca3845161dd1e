package rest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// transfer is a task that moves rows between tables and files: load, copy or extract.
type transfer interface {
	task
	// check refuses before there is a job.
	check(s *Server, project string) error
	// tables are what decides the job's location: the table it writes first, then those it reads.
	tables(project string) []store.TableRef
}

// common is what configurations of all kinds have.
type common struct {
	labels    map[string]string
	timeoutMs int64
}

func (c *common) timeout() int64 { return c.timeoutMs }

func (c *common) configuration(kind string) *bqapi.JobConfiguration {
	return &bqapi.JobConfiguration{JobType: kind, Labels: c.labels, JobTimeoutMs: c.timeoutMs}
}

// readTransfer reads the configuration of a job that is no query.
func readTransfer(object map[string]json.RawMessage) (transfer, error) {
	var outer bqapi.JobConfiguration
	if err := recast(fieldsOf("labels jobTimeoutMs dryRun", "").keep(object), &outer); err != nil {
		return nil, err
	}
	if outer.DryRun {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement job.configuration.dryRun of jobs that are no queries")
	}
	c := common{outer.Labels, outer.JobTimeoutMs}
	var kinds []string
	for _, kind := range []string{"load", "copy", "extract"} {
		if object[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		return nil, refusal.New(refusal.Invalid, "Job configuration must contain exactly one job-specific configuration object (e.g., query, load, extract, copy).")
	}
	var inner map[string]json.RawMessage
	if err := decode(object[kinds[0]], &inner); err != nil {
		return nil, err
	}
	switch kinds[0] {
	case "load":
		return readLoad(c, inner)
	case "copy":
		return readCopy(c, inner)
	}
	return readExtract(c, inner)
}

// insertTransfer makes a job that is no query.
func (s *Server) insertTransfer(c *call, key jobKey, object map[string]json.RawMessage) (any, error) {
	t, err := readTransfer(object)
	if err != nil {
		return nil, err
	}
	if l, ok := t.(*loadConfig); ok && len(l.SourceUris) == 0 {
		return nil, refusal.New(refusal.Required, "Required parameter is missing: sourceUris")
	}
	j, err := s.submitTransfer(c, key, t, &keptJob{Configuration: object})
	if err != nil {
		return nil, err
	}
	return c.jobResource(j)
}

func (s *Server) submitTransfer(c *call, key jobKey, t transfer, kept *keptJob) (*job, error) {
	if err := s.permit(c, "bigquery.jobs.create", "projects/"+key.project, key); err != nil {
		return nil, err
	}
	var err error
	if key.location, err = s.place(key, t); err != nil {
		return nil, err
	}
	if err := t.check(s, key.project); err != nil {
		return nil, err
	}
	return s.jobs.submit(key, c.principal, t, kept)
}

// place is where a job runs: where the client says, else where the table that it writes is, else those that it reads, else US.
// A location that is not that of the dataset is refused.
func (s *Server) place(key jobKey, t transfer) (string, error) {
	for _, ref := range t.tables(key.project) {
		d, err := s.Store.Dataset(ref.DatasetRef())
		if err != nil {
			continue // the job says so
		}
		if key.location != "" && !strings.EqualFold(key.location, d.Location) {
			return "", refusal.New(refusal.NotFound, "Not found: Dataset %s", ref.DatasetRef())
		}
		return d.Location, nil
	}
	if key.location == "" {
		return "US", nil
	}
	return key.location, nil
}

// tableRef is a table of a configuration without its decorators, in the job's project where it names none.
func tableRef(t *bqapi.TableReference, project string) store.TableRef {
	if t == nil {
		return store.TableRef{}
	}
	ref := store.TableRef{Project: t.ProjectId, Dataset: t.DatasetId, Table: undecorated(t.TableId)}
	if ref.Project == "" {
		ref.Project = project
	}
	return ref
}

// checkTable refuses what is no name of a table.
func checkTable(t *bqapi.TableReference, field string) error {
	switch {
	case t == nil || t.DatasetId == "" || t.TableId == "":
		return refusal.New(refusal.Required, "Required parameter is missing: %s", field)
	}
	_, _, err := splitTable(t.TableId)
	return err
}

// checkDestination refuses what is no name of a table to write.
func checkDestination(t *bqapi.TableReference) error {
	err := checkTable(t, "destinationTable")
	if err == nil && strings.Contains(t.TableId, "@") {
		err = refusal.New(refusal.Invalid, "Invalid table ID %q: a snapshot decorator cannot name a table to write", t.TableId)
	}
	return err
}

func checkDispositions(create, write string, writes ...string) error {
	if !oneOf(create, "", "CREATE_IF_NEEDED", "CREATE_NEVER") {
		return refusal.New(refusal.Invalid, "Invalid value for createDisposition: %s is not a valid value", create)
	}
	if write != "" && !slices.Contains(writes, write) {
		return refusal.New(refusal.Invalid, "Invalid value for writeDisposition: %s is not a valid value", write)
	}
	return nil
}

// destination finds the table that a job writes; nil where the job is to make it.
func (s *Server) destination(j *job, to target, create, write string) (*store.Table, error) {
	ref := to.ref
	dataset, err := s.Store.Dataset(ref.DatasetRef())
	if err == nil && !strings.EqualFold(dataset.Location, j.key.location) {
		err = refusal.New(refusal.NotFound, "Not found: Dataset %s", ref.DatasetRef())
	}
	if err != nil {
		return nil, err
	}
	t, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound) && create != "CREATE_NEVER":
		return nil, nil
	case err != nil:
		return nil, err
	case t.Info().View != nil:
		return nil, refusal.New(refusal.Invalid, "%s is a view: only tables can be written", ref)
	case write == "WRITE_EMPTY" && to.partition == "" && t.Stats().Rows > 0:
		return nil, refusal.New(refusal.Duplicate, "Already Exists: Table %s", ref)
	}
	return t, nil
}

// create makes the table that rows have the definition of, and commits them and the job's outcome with it.
func (s *Server) create(j *job, ref store.TableRef, rows store.Rows, out *jobResult) error {
	_, err := s.make(j, ref, rows, out)
	if refusal.Is(err, refusal.Duplicate) {
		return errors.Join(errMoved, err)
	}
	return err
}

// errMoved says that a table changed between reading its definition and writing it.
var errMoved = errors.New("the table has changed")

// write commits a job's rows with the job's outcome.
func (s *Server) write(j *job, t *store.Table, rows store.Rows, out *jobResult) error {
	if t.Mode() != store.ModeStore {
		rows.Count, rows.Batches, rows.Ingested = out.moved.Rows, nil, nil
	}
	rows.Job = j.outcome(s.Clock.Now(), out)
	written, err := t.Write(rows)
	if err != nil {
		out.recorded = false
		if refusal.Is(err, refusal.BackendError) || t.Dropped() {
			return errors.Join(errMoved, err)
		}
		return err
	}
	out.version = written.After
	return nil
}

// settled tries again what met a change of its table.
func settled(attempt func() error) error {
	const attempts = 10
	var err error
	for range attempts {
		if err = attempt(); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}
