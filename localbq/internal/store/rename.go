package store

import (
	"slices"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// RenameTable gives a table another name in its dataset. To whoever has the table open that is as if it had been deleted: the
// table of the new name is another one, with the rows, the definitions and the history of the old. Its created streams are gone.
func (s *Store) RenameTable(ref TableRef, name string) error {
	if err := checkTableID(name); err != nil {
		return err
	}
	_, err := s.commit(&renameTable{store: s, ref: ref, to: ref.DatasetRef().Table(name)})
	return err
}

type renameTable struct {
	store   *Store
	ref, to TableRef
	table   *Table // the result
	written Written
}

func (c *renameTable) prepare(s *Store, _ int64) error {
	t, err := s.Table(c.ref)
	if err != nil {
		return err
	}
	if _, err := s.Table(c.to); err == nil {
		return refusal.New(refusal.Duplicate, "Already Exists: Table %s", c.to)
	}
	if t.Waiting() {
		return refusal.New(refusal.Invalid, "Table %s has changes that have not been applied and cannot be renamed", c.ref)
	}
	return nil
}

func (c *renameTable) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opRenameTable, Version: version, Ref: &c.ref, To: &c.to}.append(buf)
}

// account tells of the rows that the table of the new name has from the beginning.
func (c *renameTable) account() {
	if wrote := c.store.options.Wrote; wrote != nil && c.written.Count > 0 {
		wrote(c.table, c.written)
	}
}

func (c *renameTable) publish(s *Store, version int64) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	tables := s.datasets[c.ref.DatasetRef()].tables
	old := tables[c.ref.Table]
	if there := tables[c.to.Table]; there != nil { // expired
		there.drop()
	}
	c.table = old.renamed(c.to, version)
	c.written = c.table.taken(version)
	tables[c.to.Table] = c.table
	old.drop()
	delete(tables, c.ref.Table)
}

// renamed is a table of another name with everything that this one has but its streams.
func (t *Table) renamed(ref TableRef, version int64) *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := &Table{
		store: t.store, ref: ref, instance: version, mode: t.mode, rows: t.rows, dead: t.dead, killed: t.killed, bytes: t.bytes,
		touched: t.touched, gone: slices.Clone(t.gone), changes: changes{waits: slices.Clone(t.changes.waits)},
	}
	places := map[*Info]*Info{}
	for _, i := range t.infos {
		info := *i
		info.Ref = ref
		places[i] = &info
		out.infos = append(out.infos, &info)
	}
	last := newInfo(ref, out.infos[len(out.infos)-1].Definition.Clone(), out.infos[len(out.infos)-1], version)
	last.Change = schema.Change{}
	out.infos = append(out.infos, last)
	for _, c := range t.chunks {
		out.chunks = append(out.chunks, c.clone(places[c.info]))
	}
	return out
}

// taken is the account of the rows that a table was made with.
func (t *Table) taken(version int64) Written {
	first := t.floor()
	return Written{First: first, Count: t.rows - first, After: version, Gone: t.removed()}
}

// clone is a chunk of its own with the same rows, for another table.
func (c *chunk) clone(info *Info) *chunk {
	out := *c
	out.info = info
	out.pieces, out.marks = slices.Clone(c.pieces), slices.Clone(c.marks)
	out.extents = nil // those of a checkpoint that may be under way would come too late
	out.deaths.at = slices.Clone(c.deaths.at)
	return &out
}
