package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Change data capture. A write of changes adds all its rows to the table, deletes too: a row of a delete, and one of an upsert
// that is not the greatest change of its key, dies at the version that brings it. So ids are in the order of the request, and
// the log holds what was sent.
//
// Queries merge: they see every change at once. The base is the table without the changes that have not been applied to it.
// Applying is nothing but a point in time, since the rows are where they belong already: a wait says from which version on
// changes have been missing in the base, and until when. With a max_staleness the base takes them over when the first of them
// has waited for so long; without one, when Apply is called.

// changes is what a table knows of them. Table.mu guards it.
type changes struct {
	index   *cdc.Index // nil before the first change, and after what it is about has gone
	key     []string   // the columns it goes by
	indexed int64      // ids below are in it, or were gone before
	floor   int64      // of the table, when it was made
	waits   []wait     // oldest first; the last may be open
}

// wait is a time in which the base lacked changes.
type wait struct {
	from  int64 // version of the first change
	until int64 // from that version on the base has them; 0 while it is open
	rows  []Range
}

func (w *wait) touches(first, count int64) bool {
	return slices.ContainsFunc(w.rows, func(r Range) bool { return r.First < first+count && first < r.First+r.Count })
}

// DefaultTombstoneRetention is how long a deleted key is remembered. The figure is BigQuery's by its documentation.
const DefaultTombstoneRetention = 48 * time.Hour

// prepareChanges refuses changes of a table that cannot have any; t.mu is held.
func (w *write) prepareChanges() error {
	t := w.table
	switch {
	case w.Truncate || w.Definition != nil:
		return fmt.Errorf("changes of table %s cannot come with another definition or a truncation", t.ref)
	case len(t.infos[len(t.infos)-1].PrimaryKey) == 0:
		return refusal.New(refusal.Invalid, "Table %s has no primary key: changes cannot be applied to it", t.ref)
	case len(w.Batches) > 0 && int64(len(w.Changes)) != w.Count:
		return fmt.Errorf("%d changes for %d rows of table %s", len(w.Changes), w.Count, t.ref)
	}
	return nil
}

// prepareReplay holds changes read back from the log to what was true when they were written.
func (w *write) prepareReplay() error {
	rows := int64(0)
	for _, b := range w.Batches {
		rows += b.NumRows()
	}
	if len(w.Batches) > 0 && (rows != int64(len(w.Changes)) || rows != w.Count) || len(w.table.infos[len(w.table.infos)-1].PrimaryKey) == 0 {
		return fmt.Errorf("changes of table %s do not fit their rows", w.table.ref)
	}
	return nil
}

// apply carries out the changes of a write, whose rows have been added already; t.mu is held.
func (w *write) apply(version int64) {
	t := w.table
	if len(w.Batches) == 0 { // a table that keeps no rows
		return
	}
	t.settle(version)
	first := w.written.First
	t.catchUp(first)
	current := t.infos[len(t.infos)-1]
	var gone []int64
	var key []byte
	row := int64(0)
	for _, b := range w.Batches {
		columns := keyColumns(conform(b, w.Info.Schema, current.Schema), current)
		for i := range b.NumRows() {
			c, id := w.Changes[row], first+row
			key = cdc.AppendKey(key[:0], columns, int(i))
			out := t.changes.index.Apply(key, c, id, version, w.retention)
			for _, old := range out.Removed {
				if t.kill(old, version) {
					gone = append(gone, old)
				}
			}
			if (!out.Wins || c.Delete) && t.kill(id, version) {
				gone = append(gone, id)
			}
			if out.Mixed {
				w.written.Mixed++
			}
			row++
		}
	}
	t.changes.indexed = first + row
	w.written.Gone = rangesOf(gone)
	t.wait(first, row, version)
}

// wait notes rows that the base does not have yet.
func (t *Table) wait(first, count, version int64) {
	w := t.openWait()
	if w == nil {
		t.changes.waits = append(t.changes.waits, wait{from: version})
		w = t.openWait()
	}
	w.rows = extend(w.rows, first, count)
}

func (t *Table) openWait() *wait {
	if n := len(t.changes.waits); n > 0 && t.changes.waits[n-1].until == 0 {
		return &t.changes.waits[n-1]
	}
	return nil
}

// catchUp brings rows with ids below end into the index that came by other ways than changes, making the index if need be.
func (t *Table) catchUp(end int64) {
	x, current := &t.changes, t.infos[len(t.infos)-1]
	if x.index == nil || x.floor != t.floor() || !slices.EqualFunc(x.key, current.PrimaryKey, strings.EqualFold) {
		*x = changes{index: cdc.NewIndex(), key: slices.Clone(current.PrimaryKey), floor: t.floor(), waits: x.waits}
	}
	if x.indexed == end {
		return
	}
	var key []byte
	for _, c := range t.chunks {
		if c.diedAt != 0 || c.first+c.rows <= x.indexed || c.first >= end {
			continue
		}
		id := c.first
		for _, p := range c.pieces {
			columns := keyColumns(conform(p.batch, c.info.Schema, current.Schema), current)
			for i := range p.batch.NumRows() {
				if id >= x.indexed && id < end && !c.deaths.dead(id-c.first, forever) {
					key = cdc.AppendKey(key[:0], columns, int(i))
					x.index.Add(key, id)
				}
				id++
			}
		}
	}
	x.indexed = end
}

// forever is a version that everything has happened before.
const forever = 1<<63 - 1

func keyColumns(b arrow.RecordBatch, info *Info) []arrow.Array {
	out := make([]arrow.Array, len(info.PrimaryKey))
	for i, name := range info.PrimaryKey {
		out[i] = b.Column(info.Schema.Index(name))
	}
	return out
}

// settle closes a wait whose time has come before version; t.mu is held.
func (t *Table) settle(version int64) {
	if w := t.openWait(); w != nil {
		if due := t.due(); due != 0 && due <= version {
			w.until = due
		}
	}
}

// due is when the open wait ends by itself; 0 is never.
func (t *Table) due() int64 {
	info := t.infos[len(t.infos)-1]
	staleness := info.MaxStaleness.Duration()
	if staleness <= 0 {
		return 0
	}
	return max(t.openWait().from+staleness.Microseconds(), info.Version)
}

// waiting is the wait that a reader at a version, which may lie ahead of the last commit, finds; nil where the base has
// everything.
func (t *Table) waiting(version int64) *wait {
	for i := range t.changes.waits {
		w := &t.changes.waits[i]
		until := w.until
		if until == 0 {
			until = t.due()
		}
		if w.from <= version && (until == 0 || version < until) {
			return &wait{from: w.from, rows: slices.Clone(w.rows)}
		}
	}
	return nil
}

// merges reports whether queries at a version have to merge changes rather than read the base.
func (t *Table) merges(version int64) bool {
	return t.waiting(version) != nil && t.infoAt(version).MaxStaleness.Duration() <= 0
}

// Merging reports whether queries of the table have to merge changes because none of its max_staleness lets them read the
// base. What cannot merge refuses such a table.
func (t *Table) Merging() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.merges(t.store.present())
}

// Waiting reports whether there are changes that have not been applied to the base.
func (t *Table) Waiting() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.waiting(t.store.present()) != nil
}

// MergingAt is Merging for a reader that goes back to an instant.
func (t *Table) MergingAt(at time.Time) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.merges(at.UnixMicro())
}

// present is a version that is not before the last commit and not before now.
func (s *Store) present() int64 { return max(s.Version(), s.clock.Now().UnixMicro()) }

// Query is the table as a query at a version of the store sees it: the base where max_staleness allows it, everything
// otherwise.
func (t *Table) Query(version int64) (*Snapshot, error) { return t.fresh(version, t.store.present()) }

// QueryAt is the table as a query that goes back to an instant sees it.
func (t *Table) QueryAt(at time.Time) (*Snapshot, error) {
	version, err := t.travel(at)
	if err != nil {
		return nil, err
	}
	return t.fresh(version, version)
}

func (t *Table) fresh(version, at int64) (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := view{version: version}
	if !t.merges(at) {
		v.without = t.waiting(at)
	}
	return t.show(v)
}

// Base is the table without the changes that have not been applied: at a version that an earlier Snapshot.Version names, or
// now for 0.
func (t *Table) Base(version int64) (*Snapshot, error) {
	if version == 0 {
		if version = t.store.Version(); t.waits() {
			version = max(version, t.store.versionAt(t.store.clock.Now()))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.show(view{version: version, without: t.waiting(version)})
}

func (t *Table) waits() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.changes.waits) > 0
}

// Apply brings the base up to date, as BigQuery does in the background now and then.
func (t *Table) Apply() error {
	_, err := t.store.commit(&applyChanges{t})
	return err
}

type applyChanges struct{ table *Table }

func (c *applyChanges) prepare(*Store, int64) error {
	if c.table.Dropped() {
		return notFoundTable(c.table.ref)
	}
	return nil
}

func (c *applyChanges) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opApply, Version: version, Ref: &c.table.ref, Instance: c.table.instance}.append(buf)
}

func (c *applyChanges) publish(_ *Store, version int64) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.table.settle(version)
	c.table.endWait(version)
}

// endWait brings the base up to date; t.mu is held.
func (t *Table) endWait(version int64) {
	if w := t.openWait(); w != nil {
		w.until = version
	}
}

// appendChanges begins the frame of a write of changes; the write itself follows. It has the length of the changes and the
// retention of tombstones that they were applied with, so that replaying them has the same outcome under another one.
func appendChanges(buf []byte, changes []cdc.Change, retention int64) []byte {
	start := len(buf)
	buf = append(buf, frameChanges, 1, 0, 0, 0, 0, 0, 0)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(retention))
	buf = cdc.Append(buf, changes)
	binary.LittleEndian.PutUint32(buf[start+4:], uint32(len(buf)-start-changesHead))
	return pad(buf)
}

const changesHead = 16

func parseChanges(payload []byte) (changes []cdc.Change, retention int64, rows []byte, err error) {
	if len(payload) < changesHead || payload[1] != 1 {
		return nil, 0, nil, fmt.Errorf("changes of an unknown format")
	}
	end := changesHead + int(binary.LittleEndian.Uint32(payload[4:]))
	start := (end + 7) / 8 * 8
	if start > len(payload) {
		return nil, 0, nil, fmt.Errorf("changes are cut off")
	}
	changes, err = cdc.Parse(payload[changesHead:end])
	return changes, int64(binary.LittleEndian.Uint64(payload[8:])), payload[start:], err
}

// changesState is changes in a checkpoint. The index is in data files.
type changesState struct {
	Key     []string    `json:"key,omitempty"`
	Indexed int64       `json:"indexed,omitempty"`
	Floor   int64       `json:"floor,omitempty"`
	Waits   []waitState `json:"waits,omitempty"`
	Index   []extent    `json:"index,omitempty"`
	Made    bool        `json:"made,omitempty"` // there is an index, if of nothing

	pieces [][]byte // of the index, until they are on disk
}

type waitState struct {
	From  int64      `json:"from"`
	Until int64      `json:"until,omitempty"`
	Rows  [][2]int64 `json:"rows"`
}

// indexPieceBytes is about the size of one frame of an index.
const indexPieceBytes = 16 << 20

func (x *changes) capture() *changesState {
	if x.index == nil && len(x.waits) == 0 {
		return nil
	}
	s := &changesState{Key: x.key, Indexed: x.indexed, Floor: x.floor, Made: x.index != nil}
	for _, w := range x.waits {
		ws := waitState{From: w.from, Until: w.until}
		for _, r := range w.rows {
			ws.Rows = append(ws.Rows, [2]int64{r.First, r.Count})
		}
		s.Waits = append(s.Waits, ws)
	}
	if s.Made {
		s.pieces = x.index.Encode(indexPieceBytes)
	}
	return s
}

// index writes the index of a table to the data file.
func (w *dataWriter) index(s *changesState) error {
	s.Index = nil
	for _, piece := range s.pieces {
		buf, start := beginFrame(w.buf[:0])
		buf = endFrame(append(buf, piece...), start)
		if _, err := w.file.Write(buf); err != nil {
			return err
		}
		s.Index = append(s.Index, extent{File: w.number, Offset: w.at})
		w.at += int64(len(buf))
		w.buf = buf
	}
	s.pieces = nil
	return nil
}

// changes reads back what a checkpoint has of them.
func (d *dataReader) changes(s *changesState) (x changes, err error) {
	if s == nil {
		return x, nil
	}
	x = changes{key: s.Key, indexed: s.Indexed, floor: s.Floor}
	for _, ws := range s.Waits {
		w := wait{from: ws.From, until: ws.Until}
		for _, r := range ws.Rows {
			w.rows = append(w.rows, Range{r[0], r[1]})
		}
		x.waits = append(x.waits, w)
	}
	if s.Made {
		x.index = cdc.NewIndex()
	}
	for _, e := range s.Index {
		payload, err := d.frame(e)
		if err == nil {
			err = x.index.Decode(payload)
		}
		if err != nil {
			return x, err
		}
	}
	return x, nil
}
