package store

import (
	"fmt"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Table is one instance of a table: dropping it and making another of the same name gives another Table. Safe for
// concurrent use.
type Table struct {
	store    *Store
	ref      TableRef
	instance int64 // the version that made it: unique in the store

	mu      sync.RWMutex // guards the fields below
	infos   []*Info      // oldest first; the last is in force
	mode    Mode
	chunks  []*chunk // by row id; the last may grow
	rows    int64    // visible rows that ever were: the next row's id
	dead    int64    // of them, those taken away again
	killed  int64    // of the dead, those taken away one by one since all were the last time
	bytes   int64    // logical bytes of the living rows
	touched int64    // version of the last write of rows
	dropped bool
	streams map[string]*Stream // created ones, by id
	gone    []Range            // of the killed, those whose chunk has been forgotten
	changes changes
}

// Ref names the table.
func (t *Table) Ref() TableRef { return t.ref }

// Instance tells this table from others of the same name, in the whole life of the store.
func (t *Table) Instance() int64 { return t.instance }

// Info is the definition in force.
func (t *Table) Info() *Info {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.infos[len(t.infos)-1]
}

// Infos are all definitions the table has had, oldest first.
func (t *Table) Infos() []*Info {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.infos[:len(t.infos):len(t.infos)]
}

// Mode is how much the table keeps of what is written to it.
func (t *Table) Mode() Mode {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mode
}

// Dropped reports whether the table has been deleted, or replaced by another of its name.
func (t *Table) Dropped() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.dropped
}

// Stats are a table's figures.
type Stats struct {
	Rows  int64 // visible
	Bytes int64 // logical bytes of the visible rows, by BigQuery's sizes of types
	// Modified is the last change of definition or rows.
	Modified time.Time
}

// Stats are the figures as of the last commit.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return Stats{
		Rows:     t.rows - t.dead,
		Bytes:    t.bytes,
		Modified: TimeOf(max(t.touched, t.infos[len(t.infos)-1].Version)),
	}
}

// Rows is one write to a table: all of it becomes visible at one version, or none.
type Rows struct {
	// Info is the definition the batches are shaped by, one of the table's own; Batches have Info.Schema.Arrow() as schema.
	Info    *Info
	Batches []arrow.RecordBatch
	// Count is the number of rows where the table's mode keeps none and Batches is empty.
	Count int64
	// Truncate takes the rows that were there away in the same commit.
	Truncate bool
	// Remove are rows that are taken away in the same commit, by id, in ascending order. Where one of them is not visible any
	// more the write is refused. Not together with Truncate, Stream or Changes.
	Remove []Range
	// Definition, if not nil, replaces the table's definition in the same commit, schema and all; the batches are then
	// shaped by it, and Info is not looked at. Without Truncate and on a table with rows, its columns may differ only by what
	// schema.Widen allows.
	Definition *schema.Definition
	// Stream, if not nil, is the created stream of the table that the rows are appended to: they become visible when its kind
	// says so. Offset, if not nil, is where in it they must go. Not together with Truncate or Definition.
	Stream *Stream
	Offset *int64
	// Since, if not nil, is the definition that Definition was made from: the write is refused with backendError where another
	// has come into force.
	Since *Info
	// Empty refuses a table that has rows, with duplicate.
	Empty bool
	// Pick, if not nil, chooses what Remove says, among the rows that are there when the write is committed; no other change
	// comes between. An error refuses the write.
	Pick func(*Snapshot) ([]Range, error)
	// Ingested, if not nil, says for each of Batches when its rows count as ingested, in microseconds since 1970; 0 is now.
	// Not together with Stream or Changes.
	Ingested []int64
	// Job, if not nil, is kept in the same commit, as by PutJob.
	Job *Job
	// Changes, if not nil, say for each row what it does to the row of its primary key.
	Changes []cdc.Change
	// Note is kept in the log with the rows, for whoever reads the log back.
	Note []byte
	// Account, if not nil, is told of the write in place of Options.Wrote.
	Account Account
}

// Account writes down what a write did. It is called once the write is visible and before a checkpoint can begin, which makes
// the log forget the write's note: whoever keeps accounts has them by the time of Options.Trimming. No other write is committed
// meanwhile, and none may be made in it.
type Account func(Written)

// Written says what a write did.
type Written struct {
	First  int64 // id of the first row written
	Count  int64
	Before int64 // the table's version before
	After  int64 // and after
	// Removed counts the rows that Truncate took away; their ids are below First.
	Removed int64
	// Gone are the rows that changes took away one by one, those of the write itself that are not visible included.
	Gone []Range
	// Mixed counts the changes of keys that have changes with and without a sequence number.
	Mixed int64
	// Stream is the created stream that rows were appended to, by id, and Offset where in it the first of them went. Hidden
	// says that they are not visible yet, and have no ids.
	Stream string
	Offset int64
	Hidden bool
	// Shown are the rows of streams that became visible, by a flush or a commit, in the order of their ids.
	Shown []Shown
	Job   string // the name of the job that wrote them, if one did
}

// Shown is a run of a created stream's rows that became visible.
type Shown struct {
	Stream        string // id
	Offset, Count int64
}

func (w *Written) show(s Shown) {
	w.Shown = append(w.Shown, s)
	w.Count += s.Count
}

// written begins the account of a write at a version; t.mu is held.
func (t *Table) written(version int64) Written {
	return Written{First: t.rows, Before: max(t.touched, t.infos[len(t.infos)-1].Version), After: version}
}

// Write commits rows. It refuses a table that has been dropped, and batches of another layout than their definition's.
func (t *Table) Write(r Rows) (Written, error) {
	if r.Definition != nil {
		r.Definition = r.Definition.Clone() // its columns get keys
		if r.Since == nil {
			r.Definition.Schema = r.Definition.Schema.Unidentified()
		}
	}
	w := &write{table: t, Rows: r, retention: t.store.options.TombstoneRetention.Microseconds()}
	if err := w.reshape(); err != nil {
		return Written{}, fmt.Errorf("rows of table %s: %w", t.ref, err)
	}
	if len(r.Ingested) > 0 && len(r.Ingested) != len(r.Batches) {
		return Written{}, fmt.Errorf("rows of table %s: %d batches and %d times of ingestion", t.ref, len(r.Batches), len(r.Ingested))
	}
	if t.store.log != nil {
		for _, b := range w.Batches {
			w.encoded = appendBatch(w.encoded, b)
		}
		if len(w.encoded) > maxWrite {
			return Written{}, refusal.New(refusal.NotImplemented, "local BigQuery does not implement writes of more than %d bytes at once to a folder: the rows for table %s take %d", maxWrite, t.ref, len(w.encoded))
		}
	}
	commit := t.store.commitRows
	if r.Remove != nil || r.Pick != nil || r.Empty {
		commit = t.store.commit // whether rows are there must not change before it is published
	}
	if r.Definition != nil {
		if err := t.store.checkDefinition(r.Definition); err != nil {
			return Written{}, err
		}
		commit = t.store.commit
	}
	if _, err := commit(w); err != nil {
		return Written{}, err
	}
	return w.written, nil
}

type write struct {
	Rows
	table   *Table
	encoded []byte // the batches, for the log
	placed  int64  // the offset in the stream
	written Written
	// retention is how long tombstones are kept, in versions.
	retention int64
}

// shape is the schema of the batches.
func (w *write) shape() *schema.Schema {
	if w.Definition != nil {
		return w.Definition.Schema
	}
	return w.Info.Schema
}

// reshape gives batches from elsewhere the very types of the definition, which Arrow tells apart by the names and the
// nullability of nested fields too. The decoder's batches have them already.
func (w *write) reshape() error {
	if w.Account != nil || len(w.Batches) == 0 {
		return nil
	}
	out := make([]arrow.RecordBatch, len(w.Batches))
	for i, b := range w.Batches {
		var err error
		if out[i], err = retype(b, w.shape()); err != nil {
			return err
		}
	}
	w.Batches = out
	return nil
}

func (w *write) prepare(_ *Store, version int64) error {
	t := w.table
	if err := w.pick(); err != nil {
		return err
	}
	if w.Definition != nil {
		t.identify(w.Definition, version)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.dropped {
		return notFoundTable(t.ref)
	}
	if t.mode == ModeStore && w.Count > 0 && len(w.Batches) == 0 {
		return refusal.New(refusal.BackendError, "table %s has just begun to keep its rows: send them again", t.ref)
	}
	if w.Empty && t.rows > t.dead {
		return refusal.New(refusal.Duplicate, "Already Exists: Table %s", t.ref)
	}
	if err := w.checkDefinition(); err != nil {
		return err
	}
	if err := w.checkRemove(); err != nil {
		return err
	}
	if w.Job != nil {
		w.Job.Version = version
	}
	if len(w.Batches) > 0 {
		w.Count = 0
	}
	for _, b := range w.Batches {
		w.Count += b.NumRows()
	}
	if w.Changes != nil {
		if err := w.prepareChanges(); err != nil {
			return err
		}
	}
	if w.Stream != nil {
		var err error
		w.placed, err = w.Stream.place(w.Offset, w.Count)
		return err
	}
	return nil
}

// checkDefinition refuses a definition that the table cannot be given; t.mu is held.
func (w *write) checkDefinition() error {
	t := w.table
	current := t.infos[len(t.infos)-1]
	if w.Since != nil && w.Since != current {
		return refusal.New(refusal.BackendError, "the definition of table %s has changed meanwhile: try again", t.ref)
	}
	if w.Definition == nil || w.Truncate || t.rows == t.dead {
		return nil
	}
	_, err := schema.Widen(t.ref.String(), current.Schema, w.Definition.Schema)
	return err
}

func (w *write) append(buf []byte, version int64) []byte {
	r := rowsRecord{
		instance: w.table.instance, version: version, count: w.Count, truncate: w.Truncate, note: w.Note,
		definition: w.Definition, job: w.Job, batches: w.encoded, batchCount: len(w.Batches),
	}
	if w.Info != nil {
		r.number = w.Info.Number
	}
	if w.Stream != nil {
		r.stream, r.offset = w.Stream.key, w.placed
	}
	r.remove, r.ingested = w.Remove, w.Ingested
	if w.Changes != nil {
		buf = appendChanges(buf, w.Changes, w.retention)
	}
	return r.append(buf)
}

func (w *write) publish(s *Store, version int64) {
	if w.Job != nil {
		s.keepJob(*w.Job) // before t.mu: the catalog's lock comes first
	}
	t := w.table
	t.mu.Lock()
	defer t.mu.Unlock()
	w.written = t.written(version)
	w.written.Count = w.Count
	if w.Job != nil {
		w.written.Job = w.Job.Name
	}
	if w.Stream != nil && !w.appendStream(version) {
		return
	}
	if w.Truncate {
		w.written.Removed = t.rows - t.dead
		t.truncate(version)
	}
	if w.Definition != nil {
		w.Info = newInfo(t.ref, w.Definition, t.infos[len(t.infos)-1], version)
		w.Info.Change = schema.Change{Adds: true, Relaxes: true} // whoever has the table open hears of it
		t.infos = append(t.infos, w.Info)
	}
	w.remove(version)
	t.append(w.Info, w.Batches, version, w.Ingested)
	t.rows = w.written.First + w.Count
	t.touched = version
	if w.Changes != nil {
		w.apply(version)
	}
}

func (w *write) account() {
	switch wrote := w.table.store.options.Wrote; {
	case w.Account != nil:
		w.Account(w.written)
	case wrote != nil:
		wrote(w.table, w.written)
	}
}

func (t *Table) truncate(version int64) {
	for _, c := range t.chunks {
		if c.diedAt == 0 {
			c.diedAt = version
		}
	}
	t.dead, t.killed, t.bytes, t.gone = t.rows, 0, 0, nil
	t.endWait(version)
	t.forget(version - timeTravel.Microseconds())
}

// appendStream counts the rows in their stream, which keeps them if they are not visible yet; it reports whether they are.
// t.mu is held.
func (w *write) appendStream(version int64) (visible bool) {
	s := w.Stream
	w.written.Stream, w.written.Offset = s.id, w.placed
	s.last, s.end, s.touched = w.placed, w.placed+w.Count, version
	if s.kind == Committed {
		s.cursor = s.end
		return true
	}
	w.written.First, w.written.Hidden = 0, true
	s.hold(w.Info, w.Batches, w.placed, version)
	return false
}

// append adds batches behind the rows that are there; ingested is as in Rows.
func (t *Table) append(shape *Info, batches []arrow.RecordBatch, version int64, ingested []int64) {
	id := t.rows
	for i, b := range batches {
		at := int64(0)
		if i < len(ingested) {
			at = ingested[i]
		}
		t.attach(shape, b, id, version, at)
		id += b.NumRows()
	}
}

// attach adds a batch whose rows get ids from id on. One shaped by an older definition is brought into the shape of the one
// in force, so that only a change of definition ends a chunk early.
func (t *Table) attach(shape *Info, b arrow.RecordBatch, id, version, ingested int64) {
	current := t.infos[len(t.infos)-1]
	t.bytes += logicalBytes(shape.Schema, b)
	addRows(&t.chunks, current, id, conform(b, shape.Schema, current.Schema), version, ingested)
}

// addRows adds a batch, shaped by info, to the open chunk of a list and to new ones behind it.
func addRows(chunks *[]*chunk, info *Info, id int64, b arrow.RecordBatch, version, ingested int64) {
	for b.NumRows() > 0 {
		c := openChunk(chunks, info, id)
		n := min(b.NumRows(), maxChunkRows-c.rows)
		if n == b.NumRows() {
			c.add(b, version, ingested)
		} else {
			c.add(b.NewSlice(0, n), version, ingested)
		}
		b = b.NewSlice(n, b.NumRows())
		id += n
	}
}

// openChunk is the chunk that the row of that id goes into.
func openChunk(chunks *[]*chunk, info *Info, id int64) *chunk {
	if n := len(*chunks); n > 0 {
		last := (*chunks)[n-1]
		if !last.full() && last.diedAt == 0 && last.info == info && last.first+last.rows == id {
			return last
		}
	}
	c := &chunk{first: id, info: info}
	*chunks = append(*chunks, c)
	return c
}

func notFoundTable(ref TableRef) error {
	return refusal.New(refusal.NotFound, "Not found: Table %s", ref)
}

func notFoundDataset(ref DatasetRef) error {
	return refusal.New(refusal.NotFound, "Not found: Dataset %s", ref)
}
