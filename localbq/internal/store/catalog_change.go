package store

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

type createDataset struct{ dataset *Dataset }

func (c *createDataset) prepare(s *Store, version int64) error {
	if _, err := s.Dataset(c.dataset.Ref); err == nil {
		return refusal.New(refusal.Duplicate, "Already Exists: Dataset %s", c.dataset.Ref)
	}
	c.dataset.stamp(version)
	c.dataset.Created = c.dataset.Modified
	return nil
}

func (d *Dataset) stamp(version int64) {
	d.ETag, d.Modified = etag(version), TimeOf(version)
}

func (c *createDataset) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opPutDataset, Version: version, Dataset: c.dataset}.append(buf)
}

func (c *createDataset) publish(s *Store, _ int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	s.datasets[c.dataset.Ref] = &datasetEntry{dataset: c.dataset, tables: map[string]*Table{}}
}

type updateDataset struct {
	ref     DatasetRef
	ifMatch string
	change  func(*DatasetOptions) error
	dataset *Dataset // the result
}

func (c *updateDataset) prepare(s *Store, version int64) error {
	old, err := s.Dataset(c.ref)
	if err != nil {
		return err
	}
	if err := checkETag(c.ifMatch, old.ETag); err != nil {
		return err
	}
	next := *old
	next.DatasetOptions = old.clone()
	if err := c.change(&next.DatasetOptions); err != nil {
		return err
	}
	if err := next.resolve(); err != nil {
		return err
	}
	if next.Location != old.Location {
		return refusal.New(refusal.Invalid, "Cannot change the location of dataset %s from %s to %s", c.ref, old.Location, next.Location)
	}
	next.stamp(version)
	c.dataset = &next
	return nil
}

func (c *updateDataset) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opPutDataset, Version: version, Dataset: c.dataset}.append(buf)
}

func (c *updateDataset) publish(s *Store, _ int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	s.datasets[c.ref].dataset = c.dataset
}

func checkETag(ifMatch, current string) error {
	if ifMatch != "" && ifMatch != "*" && ifMatch != current {
		return &refusal.Error{Reason: refusal.ConditionNotMet, Message: "Precondition Failed", Location: "If-Match"}
	}
	return nil
}

type deleteDataset struct {
	ref        DatasetRef
	withTables bool
}

func (c *deleteDataset) prepare(s *Store, _ int64) error {
	tables, err := s.Tables(c.ref)
	if err != nil {
		return err
	}
	if len(tables) > 0 && !c.withTables {
		return refusal.New(refusal.ResourceInUse, "Dataset %s is still in use", c.ref)
	}
	return nil
}

func (c *deleteDataset) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opDeleteDataset, Version: version, Ref: new(c.ref.Table(""))}.append(buf)
}

func (c *deleteDataset) publish(s *Store, _ int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	for _, t := range s.datasets[c.ref].tables {
		t.drop()
	}
	delete(s.datasets, c.ref)
}

type createTable struct {
	ref        TableRef
	definition *schema.Definition
	table      *Table // the result
}

func (c *createTable) prepare(s *Store, version int64) error {
	d, err := s.Dataset(c.ref.DatasetRef())
	if err != nil {
		return err
	}
	if _, err := s.Table(c.ref); err == nil {
		return refusal.New(refusal.Duplicate, "Already Exists: Table %s", c.ref)
	}
	if c.definition.ExpirationMs == 0 && d.DefaultTableExpirationMs != 0 {
		c.definition.ExpirationMs = TimeOf(version).Add(time.Duration(d.DefaultTableExpirationMs) * time.Millisecond).UnixMilli()
	}
	if p := c.definition.Partition; p != nil && p.ExpirationMs == 0 {
		p.ExpirationMs = d.DefaultPartitionExpirationMs
	}
	c.table = &Table{store: s, ref: c.ref, instance: version, infos: []*Info{newInfo(c.ref, c.definition, nil, version)}}
	if s.options.Mode != nil {
		c.table.mode = s.options.Mode(c.ref)
	}
	return nil
}

func (c *createTable) append(buf []byte, version int64) []byte { return c.record(version).append(buf) }

func (c *createTable) record(version int64) catalogRecord {
	return catalogRecord{Op: opPutTable, Version: version, Ref: &c.ref, Instance: version, Info: c.table.infos[0], Mode: c.table.mode}
}

func (c *createTable) publish(s *Store, _ int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	e := s.datasets[c.ref.DatasetRef()]
	if old := e.tables[c.ref.Table]; old != nil { // expired
		old.drop()
	}
	e.tables[c.ref.Table] = c.table
}

func (t *Table) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = true
}

type updateTable struct {
	ref     TableRef
	ifMatch string
	change  func(*schema.Definition) error
	// check decides about the definition that change has made of another.
	check func(ref TableRef, old, next *schema.Definition) (schema.Change, error)
	table *Table
	info  *Info // the result
}

func (c *updateTable) prepare(s *Store, version int64) error {
	t, err := s.Table(c.ref)
	if err != nil {
		return err
	}
	old := t.Info()
	if err := checkETag(c.ifMatch, old.ETag); err != nil {
		return err
	}
	next := old.Definition.Clone()
	if err := c.change(next); err != nil {
		return err
	}
	t.identify(next, version)
	changed, err := c.check(c.ref, old.Definition, next)
	if err != nil {
		return err
	}
	c.table = t
	c.info = newInfo(c.ref, next, old, version)
	c.info.Change = changed
	return nil
}

// identify gives the columns of the definition after the one in force their keys.
func (t *Table) identify(next *schema.Definition, version int64) {
	infos := t.Infos()
	used := func(key string) bool {
		for _, i := range infos {
			if i.Schema != nil && slices.ContainsFunc(i.Schema.Fields, func(f *schema.Field) bool { return strings.EqualFold(f.Identity(), key) }) {
				return true
			}
		}
		return false
	}
	next.Schema.Identify(infos[len(infos)-1].Schema, used, version)
}

func (s *Store) checkUpdate(ref TableRef, old, next *schema.Definition) (schema.Change, error) {
	return s.checkNext(ref, old, next, schema.Widen)
}

func (s *Store) checkAltered(ref TableRef, old, next *schema.Definition) (schema.Change, error) {
	return s.checkNext(ref, old, next, schema.Alter)
}

func (s *Store) checkNext(ref TableRef, old, next *schema.Definition, compare func(table string, from, to *schema.Schema) (schema.Change, error)) (schema.Change, error) {
	if err := s.checkDefinition(next); err != nil {
		return schema.Change{}, err
	}
	switch {
	case (old.View == nil) != (next.View == nil):
		return schema.Change{}, refusal.New(refusal.Invalid, "Cannot change the type of table %s", ref)
	case !samePartitioning(old, next):
		return schema.Change{}, refusal.New(refusal.Invalid, "Cannot change partitioning/clustering spec for a table: partitioning of %s cannot be added or changed", ref)
	case old.View != nil:
		return schema.Change{}, nil // the schema of a view is computed, not widened
	}
	return compare(ref.String(), old.Schema, next.Schema)
}

// checkForced allows all that makes a definition.
func (s *Store) checkForced(ref TableRef, old, next *schema.Definition) (schema.Change, error) {
	if err := s.checkDefinition(next); err != nil {
		return schema.Change{}, err
	}
	if change, err := s.checkUpdate(ref, old, next); err == nil {
		return change, nil
	}
	return schema.Change{Drops: true}, nil
}

// samePartitioning ignores the expiration, which may change.
func samePartitioning(a, b *schema.Definition) bool {
	if (a.Partition == nil) != (b.Partition == nil) || !reflect.DeepEqual(a.Ranges, b.Ranges) {
		return false
	}
	return a.Partition == nil || a.Partition.Type == b.Partition.Type && a.Partition.Field == b.Partition.Field
}

func (c *updateTable) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opPutTable, Version: version, Ref: &c.ref, Instance: c.table.instance, Info: c.info}.append(buf)
}

func (c *updateTable) publish(_ *Store, version int64) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.settle(version)
	c.table.infos = append(c.table.infos, c.info)
}

type deleteTable struct{ ref TableRef }

func (c *deleteTable) prepare(s *Store, _ int64) error {
	_, err := s.Table(c.ref)
	return err
}

func (c *deleteTable) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opDeleteTable, Version: version, Ref: &c.ref}.append(buf)
}

func (c *deleteTable) publish(s *Store, _ int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	tables := s.datasets[c.ref.DatasetRef()].tables
	tables[c.ref.Table].drop()
	delete(tables, c.ref.Table)
}

type setMode struct {
	ref   TableRef
	mode  Mode
	table *Table
}

func (c *setMode) prepare(s *Store, _ int64) error {
	var err error
	c.table, err = s.Table(c.ref)
	return err
}

func (c *setMode) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opMode, Version: version, Ref: &c.ref, Mode: c.mode}.append(buf)
}

func (c *setMode) publish(*Store, int64) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.mode = c.mode
}
