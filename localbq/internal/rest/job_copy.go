package rest

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/partition"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
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
	if err := checkDestination(c.DestinationTable); err != nil {
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
	from, err := c.read(ctx, s, j)
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

// read is the sources as of the job's start.
func (c *copyConfig) read(ctx context.Context, s *Server, j *job) ([]*source, error) {
	version := s.Store.Version()
	var out []*source
	for _, named := range c.sources() {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		found, err := s.source(j, named, version)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 {
			if err := sameSchema(found.info.Ref, out[0].info.Schema, found.info.Schema); err != nil {
				return nil, err
			}
		}
		out = append(out, found)
	}
	return out, nil
}

// source is a table that a job reads, or a partition of it, at a version or where its decorator, t@milliseconds, says.
func (s *Server) source(j *job, named *bqapi.TableReference, version int64) (*source, error) {
	id, decorator, decorated := strings.Cut(named.TableId, "@")
	_, part, _ := strings.Cut(id, "$")
	of := target{tableRef(named, j.key.project), part}
	ref := of.ref
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
	snapshot, err := s.snapshotAt(t, version, decorator, decorated)
	if err != nil {
		return nil, err
	}
	return of.source(t, snapshot)
}

// snapshotAt is a table at a version or, if it is decorated, at some milliseconds: since 1970, or before now if negative.
func (s *Server) snapshotAt(t *store.Table, version int64, decorator string, decorated bool) (*store.Snapshot, error) {
	if !decorated {
		return s.copied(t, version)
	}
	ms, err := strconv.ParseInt(decorator, 10, 64)
	if err != nil {
		return nil, refusal.New(refusal.Invalid, "Invalid snapshot decorator %q of table %s: expected milliseconds", decorator, t.Ref())
	}
	if ms < 0 {
		return t.SnapshotAt(s.Clock.Now().Add(time.Duration(ms) * time.Millisecond))
	}
	return t.SnapshotAt(time.UnixMilli(ms))
}

// copied is a table at a version, but for the rows that a copy does not see yet (Windows.CopyBuffer).
func (s *Server) copied(t *store.Table, version int64) (*store.Snapshot, error) {
	at, trails := s.trailsBy(t, s.Profile.Windows.CopyBuffer, storm.CopyBuffer)
	if !trails {
		return t.Query(version)
	}
	if made := store.TimeOf(t.Instance()); at.Before(made) {
		at = made
	}
	return t.SnapshotAt(at)
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

func (c *copyConfig) attempt(s *Server, j *job, from []*source) (*jobResult, error) {
	to := targetOf(c.DestinationTable, j.key.project)
	t, err := s.destination(j, to, c.CreateDisposition, c.WriteDisposition)
	if err != nil {
		return nil, err
	}
	first := from[0].info
	rows := store.Rows{Truncate: c.WriteDisposition == "WRITE_TRUNCATE", Empty: c.WriteDisposition == "WRITE_EMPTY"}
	switch {
	case t == nil:
		rows.Definition = copied(first.Definition)
	case c.WriteDisposition == "WRITE_APPEND" || to.partition != "":
		rows.Info, rows.Since = t.Info(), t.Info()
		err = sameSchema(to.ref, rows.Info.Schema, first.Schema)
	default:
		rows.Since, rows.Definition = t.Info(), copied(first.Definition)
	}
	if err == nil {
		err = gather(from, to, &rows)
	}
	if err == nil {
		err = to.place(t, &rows)
	}
	if err != nil {
		return nil, err
	}
	out := &jobResult{moved: moved{Bytes: store.BatchBytes(first.Schema, rows.Batches)}}
	for _, found := range from {
		out.moved.Rows += found.rows
	}
	if t == nil {
		return out, s.create(j, to.ref, rows, out)
	}
	return out, s.write(j, t, rows, out)
}

// gather gives rows those of all sources. Where a table that is partitioned by ingestion time is copied to one that is so too,
// rows stay in their partitions.
func gather(from []*source, to target, rows *store.Rows) error {
	d := rows.Definition
	if d == nil {
		d = rows.Info.Definition
	}
	layout, partitioned := partition.Of(d)
	for _, found := range from {
		if other, ok := partition.Of(found.info.Definition); ok && partitioned && to.partition == "" && !layout.Same(other) {
			return refusal.New(refusal.Invalid, "Incompatible table partitioning specification. Expects partitioning specification %s, but input partitioning specification is %s", layout, other)
		}
		rows.Batches = append(rows.Batches, found.batches...)
		if partitioned && layout.Ingestion() {
			ingested := make([]int64, len(found.batches))
			copy(ingested, found.ingested)
			rows.Ingested = append(rows.Ingested, ingested...)
		}
	}
	return nil
}

// copied is the definition of a table that a copy makes: that of the first source, which does not expire with it.
func copied(d *schema.Definition) *schema.Definition {
	d = d.Clone()
	d.ExpirationMs = 0
	return d
}
