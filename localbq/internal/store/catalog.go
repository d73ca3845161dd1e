package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// CreateDataset makes a dataset.
func (s *Store) CreateDataset(ref DatasetRef, o DatasetOptions) (*Dataset, error) {
	if err := checkDatasetID(ref.Dataset); err != nil {
		return nil, err
	}
	o = o.clone()
	if err := o.resolve(); err != nil {
		return nil, err
	}
	c := &createDataset{dataset: &Dataset{DatasetOptions: o, Ref: ref}}
	_, err := s.commit(c)
	return c.dataset, err
}

// Dataset finds a dataset, or refuses with notFound.
func (s *Store) Dataset(ref DatasetRef) (*Dataset, error) {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	if e := s.datasets[ref]; e != nil {
		return e.dataset, nil
	}
	return nil, notFoundDataset(ref)
}

// Datasets are the datasets of a project, by id, hidden ones included.
func (s *Store) Datasets(project string) []*Dataset {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	var out []*Dataset
	for ref, e := range s.datasets {
		if ref.Project == project {
			out = append(out, e.dataset)
		}
	}
	slices.SortFunc(out, func(a, b *Dataset) int { return strings.Compare(a.Ref.Dataset, b.Ref.Dataset) })
	return out
}

// Projects are the projects that have a dataset, sorted.
func (s *Store) Projects() []string {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	var out []string
	for ref := range s.datasets {
		out = append(out, ref.Project)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// UpdateDataset lets change edit a copy of a dataset's options and publishes the result under a new etag. A non-empty
// ifMatch that is not the current etag is refused with conditionNotMet, an error of change as it is.
func (s *Store) UpdateDataset(ref DatasetRef, ifMatch string, change func(*DatasetOptions) error) (*Dataset, error) {
	c := &updateDataset{ref: ref, ifMatch: ifMatch, change: change}
	_, err := s.commit(c)
	return c.dataset, err
}

// DeleteDataset deletes a dataset, with its tables if withTables. It refuses with resourceInUse while tables remain.
func (s *Store) DeleteDataset(ref DatasetRef, withTables bool) error {
	_, err := s.commit(&deleteDataset{ref: ref, withTables: withTables})
	return err
}

// CreateTable makes a table or a view. The caller hands the definition over.
func (s *Store) CreateTable(ref TableRef, d *schema.Definition) (*Table, error) {
	if err := s.checkNew(ref, d); err != nil {
		return nil, err
	}
	c := &createTable{ref: ref, definition: d}
	_, err := s.commit(c)
	return c.table, err
}

// checkNew refuses what cannot be a table, and makes the dataset if it may.
func (s *Store) checkNew(ref TableRef, d *schema.Definition) error {
	if err := checkTableID(ref.Table); err != nil {
		return err
	}
	if err := s.checkDefinition(d); err != nil {
		return err
	}
	d.Schema = d.Schema.Unidentified()
	if s.options.AutoCreateDataset {
		return s.ensureDataset(ref.DatasetRef())
	}
	return nil
}

func (s *Store) ensureDataset(ref DatasetRef) error {
	if _, err := s.Dataset(ref); err == nil {
		return nil
	}
	if _, err := s.CreateDataset(ref, DatasetOptions{}); err != nil && !refusal.Is(err, refusal.Duplicate) {
		return err
	}
	return nil
}

// Table finds a table, or refuses with notFound: of the dataset where that is what is missing.
func (s *Store) Table(ref TableRef) (*Table, error) {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	e := s.datasets[ref.DatasetRef()]
	if e == nil {
		return nil, notFoundDataset(ref.DatasetRef())
	}
	t := e.tables[ref.Table]
	if t == nil || s.expired(t) {
		return nil, notFoundTable(ref)
	}
	return t, nil
}

// Tables are the tables of a dataset, by id.
func (s *Store) Tables(ref DatasetRef) ([]*Table, error) {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	e := s.datasets[ref]
	if e == nil {
		return nil, notFoundDataset(ref)
	}
	out := make([]*Table, 0, len(e.tables))
	for _, t := range e.tables {
		if !s.expired(t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Table) int { return cmp.Compare(a.ref.Table, b.ref.Table) })
	return out, nil
}

// expired reports whether the table's expirationTime has passed: it is then treated as deleted.
func (s *Store) expired(t *Table) bool {
	at := t.Info().ExpirationMs
	return at != 0 && !time.UnixMilli(at).After(s.clock.Now())
}

// UpdateTable lets change edit a copy of a table's definition and publishes the result under a new etag. It refuses a
// stale ifMatch ("" matches everything) with conditionNotMet, changes of schema beyond schema.Widen, and changes of
// partitioning; an error of change is returned as it is.
func (s *Store) UpdateTable(ref TableRef, ifMatch string, change func(*schema.Definition) error) (*Info, error) {
	c := &updateTable{ref: ref, ifMatch: ifMatch, change: change, check: s.checkUpdate}
	_, err := s.commit(c)
	return c.info, err
}

// AlterTable is UpdateTable with the changes of schema that schema.Alter allows.
func (s *Store) AlterTable(ref TableRef, change func(*schema.Definition) error) (*Info, error) {
	c := &updateTable{ref: ref, change: change, check: s.checkAltered}
	_, err := s.commit(c)
	return c.info, err
}

// ForceTable is UpdateTable without the limits on what may change of the schema. Rows keep the values of columns that are
// there before and after, with the same type.
func (s *Store) ForceTable(ref TableRef, change func(*schema.Definition) error) (*Info, error) {
	c := &updateTable{ref: ref, change: change, check: s.checkForced}
	_, err := s.commit(c)
	return c.info, err
}

// DeleteTable deletes a table or a view. Snapshots of it stay readable.
func (s *Store) DeleteTable(ref TableRef) error {
	_, err := s.commit(&deleteTable{ref: ref})
	return err
}

// SetMode chooses how much a table keeps of what is written to it from now on.
func (s *Store) SetMode(ref TableRef, mode Mode) error {
	_, err := s.commit(&setMode{ref: ref, mode: mode})
	return err
}
