package store

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Snapshot is a table's rows and definition as of one version. It never changes, whatever happens to the table, and
// costs no copy of the rows. Safe for concurrent use.
type Snapshot struct {
	Info    *Info
	Version int64
	parts   []Part
	rows    int64
}

// Part is a run of rows in storage order, with ascending ids.
type Part struct {
	// First is the id of the first row: distinct among all rows the table instance ever had.
	First int64
	// Batch has Info.Schema.Arrow() as its schema, and at least one row. It belongs to the store: read it, keep it, and
	// do not Release it without a Retain of your own.
	Batch arrow.RecordBatch
	// ids are those of the rows where they are not consecutive.
	ids []Range
}

// Parts are the rows, in storage order. The caller does not change the slice.
func (s *Snapshot) Parts() []Part { return s.parts }

// NumRows is the number of rows in it.
func (s *Snapshot) NumRows() int64 { return s.rows }

// Snapshot is the table as of the last commit. It refuses a table that keeps no rows because of its mode.
func (t *Table) Snapshot() (*Snapshot, error) { return t.snapshot(t.store.Version()) }

// SnapshotAt is the table as it was at an instant within the dataset's time travel window. The definition is the one of
// that time.
func (t *Table) SnapshotAt(at time.Time) (*Snapshot, error) {
	version, err := t.travel(at)
	if err != nil {
		return nil, err
	}
	return t.snapshot(version)
}

// travel is the version to read at for an instant within the dataset's time travel window.
func (t *Table) travel(at time.Time) (int64, error) {
	now := t.store.clock.Now()
	// The end of a job is known by the millisecond, which may not be over when the job is, and versions run ahead of a clock
	// that stands still: what is there can be asked for by the end of its millisecond.
	latest := endOfMillisecond(now)
	if there := endOfMillisecond(TimeOf(t.store.Version())); there.After(latest) {
		latest = there
	}
	hours := int64(168)
	if d, err := t.store.Dataset(t.ref.DatasetRef()); err == nil {
		hours = d.MaxTimeTravelHours
	}
	switch {
	case at.Before(now.Add(-time.Duration(hours) * time.Hour)):
		return 0, refusal.New(refusal.Invalid, "time travel timestamp exceeds the maximum time travel duration of %dh", hours)
	case at.After(latest):
		return 0, refusal.New(refusal.Invalid, "time travel timestamp %s is in the future", at.UTC().Format(time.RFC3339Nano))
	case at.Equal(now): // versions run ahead of a clock that stands still: now is what is there
		return max(t.store.versionAt(at), t.store.Version()), nil
	case at.UnixMicro() < t.instance:
		return 0, refusal.New(refusal.Invalid, "time travel timestamp %s is before the creation of table %s", at.UTC().Format(time.RFC3339Nano), t.ref)
	}
	return t.store.versionAt(at), nil
}

func endOfMillisecond(at time.Time) time.Time {
	if whole := at.Truncate(time.Millisecond); !whole.Equal(at) {
		return whole.Add(time.Millisecond)
	}
	return at
}

// SnapshotVersion is the table at a version of the store, such as the one a query fixed for all its tables.
func (t *Table) SnapshotVersion(version int64) (*Snapshot, error) { return t.snapshot(version) }

func (t *Table) snapshot(version int64) (*Snapshot, error) {
	t.mu.Lock() // not RLock: the open chunk may be tidied on the way
	defer t.mu.Unlock()
	return t.show(view{version: version})
}

// show is the table in a view; t.mu is held.
func (t *Table) show(v view) (*Snapshot, error) {
	if t.mode != ModeStore {
		return nil, refusal.New(refusal.NotImplemented, "table %s is in %s mode and keeps no rows to read", t.ref, t.mode)
	}
	s := &Snapshot{Info: t.infoAt(v.version), Version: v.version}
	for _, c := range t.chunks {
		if rows := c.rowsAt(v.version); v.whole(c) {
			s.add(c, rows)
		} else {
			s.addRuns(c, v.runs(c, rows))
		}
	}
	return s, nil
}

// infoAt is the definition in force at version; the first one before there was any.
func (t *Table) infoAt(version int64) *Info {
	for i := len(t.infos) - 1; i > 0; i-- {
		if t.infos[i].Version <= version {
			return t.infos[i]
		}
	}
	return t.infos[0]
}

// add takes the first rows rows of a chunk.
func (s *Snapshot) add(c *chunk, rows int64) {
	if rows == 0 {
		return
	}
	if len(c.pieces) > fewPieces {
		c.join(0)
	}
	id := c.first
	for _, p := range c.pieces {
		n := min(p.batch.NumRows(), rows)
		if n == 0 {
			break
		}
		batch := p.batch
		if n < batch.NumRows() {
			batch = batch.NewSlice(0, n)
		}
		s.parts = append(s.parts, Part{First: id, Batch: conform(batch, c.info.Schema, s.Info.Schema)})
		id += n
		rows -= n
		s.rows += n
	}
}
