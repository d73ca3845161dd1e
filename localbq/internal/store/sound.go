package store

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// A checksum tells what has changed on the disk. What follows tells what no store has written: a bug's doing, or somebody's.
// Replay decides nothing, so all of it is about what would make no sense.

// most is far above any version, count of rows or row id, and leaves room to add a few.
const most = 1 << 60

func (c *catalogRecord) sound() error {
	missing := c.Ref == nil
	switch c.Op {
	case opPutDataset:
		missing = c.Dataset == nil
	case opPutTable:
		missing = c.Ref == nil || c.Info == nil
	case opPutJob:
		missing = c.Job == nil
	case opCreateStream, opFlushStream, opFinalizeStream, opCommitStreams, opExpireStream:
		missing = len(c.Streams) == 0
	}
	switch {
	case missing:
		return fmt.Errorf("%q of nothing", c.Op)
	case c.Version < 0 || c.Version > most:
		return fmt.Errorf("%s at version %d", c.Op, c.Version)
	case c.Info != nil:
		return c.Info.sound()
	}
	return nil
}

func (i *Info) sound() error {
	if i.Definition == nil {
		return fmt.Errorf("definition %d is empty", i.Number)
	}
	if err := i.Definition.Sound(); err != nil {
		return fmt.Errorf("definition %d: %w", i.Number, err)
	}
	return nil
}

// soundReplay holds a write read back to its table as prepare held it when it was written.
func (w *write) soundReplay(version int64) error {
	t := w.table
	rows := countRows(w.Batches)
	switch {
	case version < 0 || version > most:
		return fmt.Errorf("rows of table %s at version %d", t.ref, version)
	case w.Count < 0 || w.Count > most-t.rows || len(w.Batches) > 0 && rows != w.Count:
		return fmt.Errorf("rows of table %s: %d are there, and %d by their own account", t.ref, rows, w.Count)
	case w.Changes != nil && (w.Truncate || w.Definition != nil || w.Remove != nil):
		return fmt.Errorf("changes of table %s come with another definition, a truncation or a removal", t.ref)
	case w.Stream != nil && w.placed != w.Stream.end:
		return fmt.Errorf("rows of write stream %s lie at %d, and it holds %d", w.Stream.id, w.placed, w.Stream.end)
	}
	return w.checkRemove()
}

func countRows(batches []arrow.RecordBatch) (rows int64) {
	for _, b := range batches {
		rows += b.NumRows()
	}
	return rows
}

// soundShow holds what a flush or a commit shows to what the stream has.
func (s *Stream) soundShow(to int64) error {
	if to < s.cursor || to > s.end {
		return fmt.Errorf("write stream %s shows %d rows: %d are visible, and it holds %d", s.id, to, s.cursor, s.end)
	}
	return nil
}

// sound holds a table of a checkpoint to itself. Its chunks are looked at as they are read.
func (ts *tableState) sound() error {
	if len(ts.Infos) == 0 {
		return fmt.Errorf("a table without a definition")
	}
	for i, info := range ts.Infos {
		if info == nil || info.Number != i {
			return fmt.Errorf("definition %d of a table is missing", i)
		}
		if err := info.sound(); err != nil {
			return err
		}
	}
	if ts.Killed < 0 || ts.Killed > ts.Dead || ts.Dead > ts.Rows || ts.Rows > most {
		return fmt.Errorf("%d rows, %d of them gone and %d one by one", ts.Rows, ts.Dead, ts.Killed)
	}
	for _, r := range ts.Gone {
		if r.First < 0 || r.Count < 0 || r.First > ts.Rows || r.Count > ts.Rows-r.First {
			return fmt.Errorf("%d rows from %d are gone, of %d", r.Count, r.First, ts.Rows)
		}
	}
	return nil
}

func (ss *streamState) sound() error {
	if ss.Kind < Committed || ss.Kind > Buffered || ss.Cursor < 0 || ss.Cursor > ss.End || ss.Last < 0 || ss.Last > ss.End || ss.End > most {
		return fmt.Errorf("write stream %s: %s, %d rows, %d before the last append and %d visible", ss.ID, ss.Kind, ss.End, ss.Last, ss.Cursor)
	}
	return nil
}

// sound holds a chunk that has been read to its list, in which the chunk before ends at begin, and all end by end.
func (c *chunk) sound(begin, end int64) error {
	if c.rows < 1 || c.rows > maxChunkRows || c.first < begin || c.first > end-c.rows {
		return fmt.Errorf("a chunk of %d rows from %d, between %d and %d", c.rows, c.first, begin, end)
	}
	before := mark{}
	for _, m := range c.marks {
		if m.version < before.version || m.rows < before.rows || m.rows > c.rows {
			return fmt.Errorf("a chunk of %d rows had %d at version %d", c.rows, m.rows, m.version)
		}
		before = m
	}
	return nil
}
