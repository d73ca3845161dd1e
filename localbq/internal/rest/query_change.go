package rest

import (
	"slices"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// change is what a statement that is no query did.
type change struct {
	*query.Change
	done                       string // what DDL did: CREATE, REPLACE, SKIP, DROP, ALTER; "" for DML
	inserted, updated, deleted int64
	at                         int64 // the version of the store that the statement was run at
}

// dml reports whether the statement changed rows and nothing else.
func (c *change) dml() bool {
	return c.affecting() || c.Kind == "TRUNCATE_TABLE"
}

// affecting reports whether jobs tell the number of rows that the statement changed.
func (c *change) affecting() bool {
	return oneOf(c.Kind, "INSERT", "UPDATE", "DELETE", "MERGE")
}

func (c *change) affected() int64 { return c.inserted + c.updated + c.deleted }

// apply carries out a statement that is no query, and was run at a version of the store.
func (s *Server) apply(j *job, r *query.Result, at int64, out *jobResult) error {
	c := &change{Change: r.Change, at: at}
	out.change, out.schema = c, nil
	if j.config.DestinationTable != nil {
		kind := "DDL"
		if c.dml() {
			kind = "DML"
		}
		return refusal.New(refusal.Invalid, "Cannot set destination table in jobs with %s statements", kind)
	}
	ref := store.DatasetRef{Project: c.Target.Project, Dataset: c.Target.Dataset}
	if c.Target.Table == "" {
		return s.changeSchema(j, ref, c)
	}
	if d, err := s.Store.Dataset(ref); err != nil || !strings.EqualFold(d.Location, j.key.location) {
		return refusal.New(refusal.NotFound, "Not found: Dataset %s was not found in location %s", ref, j.key.location)
	}
	if err := s.permitChange(j, c); err != nil {
		return err
	}
	table := ref.Table(c.Target.Table)
	if err := s.limits.statement(table, c); err != nil {
		return err
	}
	switch c.Kind {
	case "INSERT":
		return s.insertInto(j, table, r, c, out)
	case "UPDATE", "DELETE", "MERGE":
		return s.mutate(j, table, r, c, out)
	case "TRUNCATE_TABLE":
		return s.truncate(j, table, c, out)
	case "CREATE_TABLE", "CREATE_TABLE_AS_SELECT":
		return s.createFrom(j, table, r, c, out)
	case "CREATE_VIEW", "CREATE_MATERIALIZED_VIEW":
		return s.createViewFrom(table, c)
	case "ALTER_TABLE", "ALTER_VIEW", "ALTER_MATERIALIZED_VIEW":
		return s.alter(table, c)
	}
	return s.dropTable(table, c)
}

// permitChange refuses what Deps.Denied denies.
func (s *Server) permitChange(j *job, c *change) error {
	permission, resource := "bigquery.tables.updateData", store.TableRef(c.Target).Path()
	switch verb, _, _ := strings.Cut(c.Kind, "_"); {
	case verb == "CREATE" && c.Target.Table == "":
		permission, resource = "bigquery.datasets.create", datasetPath(c.Target)
	case verb == "ALTER" && c.Target.Table == "":
		permission, resource = "bigquery.datasets.update", datasetPath(c.Target)
	case c.Target.Table == "":
		permission, resource = "bigquery.datasets.delete", datasetPath(c.Target)
	case verb == "CREATE":
		permission, resource = "bigquery.tables.create", datasetPath(c.Target)
	case verb == "DROP":
		permission = "bigquery.tables.delete"
	case verb == "ALTER":
		permission = "bigquery.tables.update"
	}
	if !query.MayRead(j.principal, c.Target.Project, c.Target.Dataset) || s.Denied != nil && s.Denied(j.principal, permission, resource) {
		return refusal.New(refusal.AccessDenied, "Access Denied: %s: Permission %s denied (or it may not exist).", resource, permission)
	}
	return nil
}

func datasetPath(r query.Ref) string { return "projects/" + r.Project + "/datasets/" + r.Dataset }

func (s *Server) insertInto(j *job, ref store.TableRef, r *query.Result, c *change, out *jobResult) error {
	t, err := s.changeable(ref)
	if err != nil {
		return err
	}
	info, err := c.same(t)
	if err != nil {
		return err
	}
	batches, err := fit(r.Batches, r.Schema, info.Schema, s.Clock.Now())
	if err != nil {
		return err
	}
	c.inserted = r.Rows
	if r.Rows == 0 {
		return nil
	}
	w := store.Rows{Info: info, Since: info, Batches: batches}
	if t.Mode() != store.ModeStore {
		w.Batches, w.Count = nil, r.Rows
	}
	_, err = s.commit(j, t, w, out)
	return err
}

// writable is a table that statements may write.
func (s *Server) writable(ref store.TableRef) (*store.Table, error) {
	t, err := s.Store.Table(ref)
	if err == nil && t.Info().View != nil {
		err = notAllowed(t)
	}
	return t, err
}

// changeable is a table that DML may change.
func (s *Server) changeable(ref store.TableRef) (*store.Table, error) {
	t, err := s.writable(ref)
	if err == nil && t.Merging() {
		err = merging(t.Ref(), "changed by DML")
	}
	return t, err
}

// same is the definition of a table that the statement may still be carried out on: the table is the one that it was run
// against, and has the columns. Rows are picked by ids, which another table of the name has too, and meet columns by name.
func (c *change) same(t *store.Table) (*store.Info, error) {
	infos := t.Infos()
	now, then := infos[len(infos)-1], infos[0]
	for _, i := range infos {
		if i.Version <= c.at {
			then = i
		}
	}
	moved := t.Instance() > c.at || now != then && c.Kind != "INSERT"
	if then.Schema != nil && !moved {
		moved = slices.ContainsFunc(then.Schema.Fields, func(f *schema.Field) bool {
			has := now.Schema.Field(f.Name)
			return has == nil || !has.Same(f)
		})
	}
	if moved {
		return nil, refusal.New(refusal.InvalidQuery, "Could not serialize access to table %s due to concurrent update", t.Ref())
	}
	return now, nil
}

// merging refuses a table whose changes would have to be merged first.
func merging(ref store.TableRef, what string) error {
	return refusal.New(refusal.Invalid, "Table %s has changes that are merged at query time and cannot be %s: set its max_staleness, "+
		"or wait until they are applied", ref, what)
}

func notAllowed(t *store.Table) error {
	return refusal.New(refusal.Invalid, "%s is not allowed for this operation because it is currently a %s.", t.Ref(), t.Info().Kind())
}

func (s *Server) truncate(j *job, ref store.TableRef, c *change, out *jobResult) error {
	t, err := s.changeable(ref)
	if err != nil {
		return err
	}
	c.deleted = t.Stats().Rows
	written, err := s.commit(j, t, store.Rows{Info: t.Info(), Truncate: true}, out)
	if written.Removed != c.deleted { // rows came meanwhile
		c.deleted, out.recorded = written.Removed, false
	}
	return err
}

// createFrom is CREATE TABLE, with rows or without. OR REPLACE gives a table that is there another definition and other rows
// at once.
func (s *Server) createFrom(j *job, ref store.TableRef, r *query.Result, c *change, out *jobResult) error {
	old, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound):
		c.done = "CREATE"
	case err != nil:
		return err
	case c.Exists:
		c.done = "SKIP"
		return nil
	case !c.Replace:
		return refusal.New(refusal.Duplicate, "Already Exists: Table %s", ref)
	case old.Info().View != nil:
		return notAllowed(old)
	default:
		c.done = "REPLACE"
	}
	w := store.Rows{Truncate: true, Definition: c.Definition}
	if c.Kind == "CREATE_TABLE_AS_SELECT" {
		if w.Batches, err = fit(r.Batches, r.Schema, c.Definition.Schema, s.Clock.Now()); err != nil {
			return err
		}
	}
	if old != nil {
		_, err = s.commit(j, old, w, out)
	} else {
		_, err = s.make(j, ref, w, out)
	}
	return err
}

func (s *Server) createViewFrom(ref store.TableRef, c *change) error {
	old, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound):
		c.done = "CREATE"
		_, err = s.Store.CreateTable(ref, c.Definition)
		return err
	case err != nil:
		return err
	case c.Exists:
		c.done = "SKIP"
		return nil
	case !c.Replace:
		return refusal.New(refusal.Duplicate, "Already Exists: Table %s", ref)
	case old.Info().Kind() != c.Definition.Kind():
		return notAllowed(old)
	}
	c.done = "REPLACE"
	_, err = s.Store.UpdateTable(ref, "", func(d *schema.Definition) error {
		*d = *c.Definition
		return nil
	})
	return err
}

func (s *Server) alter(ref store.TableRef, c *change) error {
	t, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound) && c.Exists:
		c.done = "SKIP"
		return nil
	case err != nil:
		return err
	case "ALTER_"+t.Info().Kind() != c.Kind:
		return notAllowed(t)
	}
	c.done = "ALTER"
	if c.Rename != "" {
		return s.Store.RenameTable(ref, c.Rename)
	}
	_, err = s.Store.AlterTable(ref, c.Alter)
	return err
}

func (s *Server) dropTable(ref store.TableRef, c *change) error {
	t, err := s.Store.Table(ref)
	switch {
	case refusal.Is(err, refusal.NotFound) && c.Exists:
		c.done = "SKIP"
		return nil
	case err != nil:
		return err
	case "DROP_"+t.Info().Kind() != c.Kind:
		return notAllowed(t)
	}
	c.done = "DROP"
	return s.Store.DeleteTable(ref)
}

// changeSchema is CREATE, ALTER and DROP SCHEMA.
func (s *Server) changeSchema(j *job, ref store.DatasetRef, c *change) error {
	if err := s.permitChange(j, c); err != nil {
		return err
	}
	_, err := s.Store.Dataset(ref)
	there := err == nil
	switch {
	case c.Exists && there == (c.Kind == "CREATE_SCHEMA"):
		c.done = "SKIP"
		return nil
	case c.Kind == "ALTER_SCHEMA":
		c.done = "ALTER"
		return s.alterSchema(ref, c)
	case c.Kind == "DROP_SCHEMA":
		c.done = "DROP"
		return s.Store.DeleteDataset(ref, c.Cascade)
	}
	c.done = "CREATE"
	location := c.Dataset.Location
	if location == "" {
		location = j.key.location
	}
	options := store.DatasetOptions{}
	setOptions(&options, c.Dataset)
	options.Location = location
	_, err = s.Store.CreateDataset(ref, options)
	return err
}

func setOptions(o *store.DatasetOptions, q query.DatasetOptions) {
	o.Location, o.Description, o.FriendlyName, o.Labels = q.Location, q.Description, q.FriendlyName, q.Labels
	o.DefaultTableExpirationMs, o.DefaultPartitionExpirationMs = q.TableExpirationMs, q.PartitionExpirationMs
	o.MaxTimeTravelHours = q.TimeTravelHours
}

func (s *Server) alterSchema(ref store.DatasetRef, c *change) error {
	_, err := s.Store.UpdateDataset(ref, "", func(o *store.DatasetOptions) error {
		q := query.DatasetOptions{
			Location: o.Location, Description: o.Description, FriendlyName: o.FriendlyName, Labels: o.Labels,
			TableExpirationMs: o.DefaultTableExpirationMs, PartitionExpirationMs: o.DefaultPartitionExpirationMs,
			TimeTravelHours: o.MaxTimeTravelHours,
		}
		if err := c.AlterDataset(&q); err != nil {
			return err
		}
		setOptions(o, q)
		return nil
	})
	return err
}

// describe adds what the statement did to a job's figures.
func (c *change) describe(s *bqapi.JobStatistics2) {
	s.StatementType = c.Kind
	if c.dml() {
		s.DmlStats = c.stats()
		if c.affecting() {
			s.NumDmlAffectedRows = c.affected()
			s.ForceSendFields = append(s.ForceSendFields, "NumDmlAffectedRows")
		}
		return
	}
	s.DdlOperationPerformed = c.done
	if c.Target.Table == "" {
		s.DdlTargetDataset = datasetReference(store.DatasetRef{Project: c.Target.Project, Dataset: c.Target.Dataset})
		return
	}
	s.DdlTargetTable = tableReference(store.TableRef(c.Target))
}

func (c *change) stats() *bqapi.DmlStatistics {
	out := &bqapi.DmlStatistics{InsertedRowCount: c.inserted, UpdatedRowCount: c.updated, DeletedRowCount: c.deleted}
	switch c.Kind {
	case "MERGE":
		out.ForceSendFields = []string{"InsertedRowCount", "UpdatedRowCount", "DeletedRowCount"}
	case "UPDATE":
		out.ForceSendFields = []string{"UpdatedRowCount"}
	case "DELETE", "TRUNCATE_TABLE":
		out.ForceSendFields = []string{"DeletedRowCount"}
	default:
		out.ForceSendFields = []string{"InsertedRowCount"}
	}
	return out
}

// answer is what jobs.query says of the statement.
func (c *change) answer(a *queryAnswer) {
	a.StatementType, a.TotalBytesProcessed, a.CacheHit = c.Kind, "0", new(false)
	switch {
	case c.dml():
		a.DmlStats = c.stats()
		if c.affecting() {
			a.NumDmlAffectedRows = new(c.affected())
		}
	default:
		a.TotalRows = "0"
	}
}

// statementType is the statement's type as jobs name it.
func (r *jobResult) statementType() string {
	if r.change != nil {
		return r.change.Kind
	}
	return "SELECT"
}

// planned is the result of a dry run.
func planned(r *query.Result) *jobResult {
	out := &jobResult{schema: r.Schema.REST(), bytes: r.BytesProcessed, tables: r.Tables}
	if r.Change != nil {
		out.change, out.schema = &change{Change: r.Change}, nil
	}
	return out
}
