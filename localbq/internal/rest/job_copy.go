package rest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

var copyFields = fieldsOf("sourceTable sourceTables destinationTable createDisposition writeDisposition operationType", "")

// copyConfig is the configuration of a copy job.
type copyConfig struct {
	common
	*bqapi.JobConfigurationTableCopy
}

// maxSources is the most source tables of a job (BigQuery documentation, "Quotas and limits", "Copy jobs").
const maxSources = 1200

func readCopy(c common, object map[string]json.RawMessage) (*copyConfig, error) {
	if err := copyFields.check(object, "job.configuration.copy"); err != nil {
		return nil, err
	}
	t := &copyConfig{common: c, JobConfigurationTableCopy: &bqapi.JobConfigurationTableCopy{}}
	if err := recast(copyFields.keep(object), t.JobConfigurationTableCopy); err != nil {
		return nil, err
	}
	if t.WriteDisposition == "" {
		t.WriteDisposition = "WRITE_EMPTY"
	}
	if t.CreateDisposition == "" {
		t.CreateDisposition = "CREATE_IF_NEEDED"
	}
	return t, t.checkFields()
}

func (c *copyConfig) sources() []*bqapi.TableReference {
	if c.SourceTable != nil {
		return append([]*bqapi.TableReference{c.SourceTable}, c.SourceTables...)
	}
	return c.SourceTables
}

func (c *copyConfig) checkFields() error {
	if err := checkTable(c.DestinationTable, "destinationTable"); err != nil {
		return err
	}
	if err := checkDispositions(c.CreateDisposition, c.WriteDisposition, "WRITE_APPEND", "WRITE_EMPTY", "WRITE_TRUNCATE"); err != nil {
		return err
	}
	if !oneOf(c.OperationType, "", "COPY") {
		return refusal.New(refusal.NotImplemented, "local BigQuery does not implement copy jobs of operationType %s", c.OperationType)
	}
	switch n := len(c.sources()); {
	case n == 0:
		return refusal.New(refusal.Required, "Required parameter is missing: sourceTables")
	case n > maxSources:
		return refusal.New(refusal.Invalid, "Too many source tables: %d, at most %d are allowed", n, maxSources)
	}
	for _, s := range c.sources() {
		if err := checkTable(s, "sourceTables"); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyConfig) check(*Server, string) error { return nil }

func (c *copyConfig) tables(project string) []store.TableRef {
	out := []store.TableRef{tableRef(c.DestinationTable, project)}
	for _, s := range c.sources() {
		out = append(out, tableRef(s, project))
	}
	return out
}

func (c *copyConfig) resource(*job) (*bqapi.JobConfiguration, error) {
	out := c.configuration("COPY")
	out.Copy = c.JobConfigurationTableCopy
	return out, nil
}

func (c *copyConfig) describe(s *bqapi.JobStatistics, r *jobResult) {
	s.Copy = &bqapi.JobStatistics5{CopiedRows: r.moved.Rows, CopiedLogicalBytes: r.moved.Bytes, ForceSendFields: []string{"CopiedRows", "CopiedLogicalBytes"}}
}

func (c *copyConfig) run(ctx context.Context, s *Server, j *job) (*jobResult, error) {
	from, err := c.snapshots(ctx, s, j)
	if err != nil {
		return nil, err
	}
	var out *jobResult
	err = settled(func() error {
		out, err = c.attempt(s, j, from)
		return err
	})
	return out, err
}

// snapshots are the sources as of the job's start.
func (c *copyConfig) snapshots(ctx context.Context, s *Server, j *job) ([]*store.Snapshot, error) {
	version := s.Store.Version()
	var out []*store.Snapshot
	for _, source := range c.sources() {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		snapshot, err := s.source(j, source, version)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 {
			if err := sameSchema(snapshot.Info.Ref, out[0].Info.Schema, snapshot.Info.Schema); err != nil {
				return nil, err
			}
		}
		out = append(out, snapshot)
	}
	return out, nil
}

// source is a table that a job reads, at a version or where its decorator, t@milliseconds, says.
func (s *Server) source(j *job, named *bqapi.TableReference, version int64) (*store.Snapshot, error) {
	ref := tableRef(named, j.key.project)
	id, decorator, decorated := strings.Cut(ref.Table, "@")
	ref.Table = id
	dataset, err := s.Store.Dataset(ref.DatasetRef())
	if err == nil && !strings.EqualFold(dataset.Location, j.key.location) {
		err = refusal.New(refusal.NotFound, "Not found: Dataset %s was not found in location %s", ref.DatasetRef(), j.key.location)
	}
	if err != nil {
		return nil, err
	}
	t, err := s.Store.Table(ref)
	if err != nil {
		return nil, err
	}
	if t.Info().View != nil {
		return nil, refusal.New(refusal.Invalid, "%s is a view: only tables can be read by this job", ref)
	}
	if t.Merging() {
		return nil, merging(ref, "read by this job")
	}
	if !decorated {
		return t.Query(version)
	}
	ms, err := strconv.ParseInt(decorator, 10, 64)
	if err != nil {
		return nil, refusal.New(refusal.Invalid, "Invalid snapshot decorator %q of table %s: expected milliseconds", decorator, ref)
	}
	if ms < 0 {
		return t.SnapshotAt(s.Clock.Now().Add(time.Duration(ms) * time.Millisecond))
	}
	return t.SnapshotAt(time.UnixMilli(ms))
}

// sameSchema refuses columns that differ from a table's in names, order, types or modes.
func sameSchema(ref store.TableRef, want, have *schema.Schema) error {
	if slices.EqualFunc(want.Clone().Fields, have.Clone().Fields, sameField) {
		return nil
	}
	return refusal.New(refusal.Invalid, "Provided Schema does not match Table %s. A copy needs the same columns in all tables", ref)
}

func sameField(a, b *schema.Field) bool {
	return strings.EqualFold(a.Name, b.Name) && a.Type == b.Type && a.Mode == b.Mode && a.RangeElement == b.RangeElement &&
		a.Precision == b.Precision && a.Scale == b.Scale && a.MaxLength == b.MaxLength && a.Picos() == b.Picos() &&
		slices.EqualFunc(a.Fields, b.Fields, sameField)
}

func (c *copyConfig) attempt(s *Server, j *job, from []*store.Snapshot) (*jobResult, error) {
	ref := tableRef(c.DestinationTable, j.key.project)
	t, err := s.destination(j, ref, c.CreateDisposition, c.WriteDisposition)
	if err != nil {
		return nil, err
	}
	out := &jobResult{}
	var batches []arrow.RecordBatch
	for _, snapshot := range from {
		for _, p := range snapshot.Parts() {
			batches = append(batches, p.Batch)
		}
		out.moved.Rows += snapshot.NumRows()
	}
	first := from[0].Info
	out.moved.Bytes = store.BatchBytes(first.Schema, batches)
	rows := store.Rows{Batches: batches, Truncate: c.WriteDisposition == "WRITE_TRUNCATE", Empty: c.WriteDisposition == "WRITE_EMPTY"}
	switch {
	case t == nil:
		if t, err = s.Store.CreateTable(ref, copied(first.Definition)); err != nil {
			if refusal.Is(err, refusal.Duplicate) {
				err = errors.Join(errMoved, err)
			}
			return nil, err
		}
		rows.Info = t.Info()
	case c.WriteDisposition == "WRITE_APPEND":
		rows.Info, rows.Since = t.Info(), t.Info()
		if err := sameSchema(ref, rows.Info.Schema, first.Schema); err != nil {
			return nil, err
		}
	default:
		rows.Since, rows.Definition = t.Info(), copied(first.Definition)
	}
	return out, s.write(j, t, rows, out)
}

// copied is the definition of a table that a copy makes: that of the first source, which does not expire with it.
func copied(d *schema.Definition) *schema.Definition {
	d = d.Clone()
	d.ExpirationMs = 0
	return d
}
