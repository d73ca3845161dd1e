package cdc

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// Index knows the greatest change of every key and the rows that the key has. One goroutine at a time uses it.
type Index struct {
	entries    map[string]entry
	tombstones int // entries without rows
	sweepAt    int // how many of them make a look at their ages worthwhile
}

// entry is what is known of a key. An entry without rows is a tombstone.
type entry struct {
	sequence Sequence
	changed  bool    // some change named the key; otherwise a row is there that no change brought
	at       int64   // version of the greatest change
	row      int64   // the row of the key, -1 for none
	more     []int64 // further rows: keys are not enforced
}

const minSweep = 1024

// NewIndex makes an index of no keys.
func NewIndex() *Index { return &Index{entries: map[string]entry{}, sweepAt: minSweep} }

// Len is the number of keys known, deleted ones included.
func (x *Index) Len() int { return len(x.entries) }

// Add notes a row that no change brought. The key's order is not touched.
func (x *Index) Add(key []byte, row int64) {
	e, known := x.entries[string(key)]
	switch {
	case !known:
		e = entry{row: row}
	case e.row < 0:
		e.row = row
		x.tombstones--
	default:
		e.more = append(e.more, row)
	}
	x.entries[string(key)] = e
}

// Outcome is what a change did.
type Outcome struct {
	// Wins is set where the change is now the greatest of its key: the row of an upsert stays.
	Wins bool
	// Mixed is set where the key has had changes with a sequence number and without one, whose order BigQuery leaves open.
	Mixed bool
	// Removed are the rows that the key had and has no more.
	Removed []int64
}

// Apply carries out a change at a version; row is the row that an upsert brings. A tombstone older than retention, in
// microseconds of version, is forgotten first.
func (x *Index) Apply(key []byte, c Change, row, version, retention int64) Outcome {
	e, known := x.entries[string(key)]
	if known && e.row < 0 && e.at+retention < version {
		x.tombstones--
		e, known = entry{row: -1}, false
	}
	if !known {
		e.row = -1
	}
	out := Outcome{Mixed: e.changed && e.sequence.given != c.Sequence.given}
	if e.changed && c.Sequence.Compare(e.sequence) < 0 {
		return out
	}
	out.Wins = true
	if e.row >= 0 {
		out.Removed = append([]int64{e.row}, e.more...)
	}
	was := known && e.row < 0
	e = entry{sequence: c.Sequence, changed: true, at: version, row: row}
	if c.Delete {
		e.row = -1
	}
	x.entries[string(key)] = e
	if is := e.row < 0; is && !was {
		x.tombstones++
	} else if was && !is {
		x.tombstones--
	}
	if x.tombstones >= x.sweepAt {
		x.Forget(version - retention)
		x.sweepAt = max(minSweep, 2*x.tombstones)
	}
	return out
}

// Forget drops the tombstones from before a version.
func (x *Index) Forget(before int64) {
	maps.DeleteFunc(x.entries, func(_ string, e entry) bool {
		old := e.row < 0 && e.at < before
		if old {
			x.tombstones--
		}
		return old
	})
}

// Retention is a length of time as versions count it.
func Retention(d time.Duration) int64 { return d.Microseconds() }

// The durable form of an entry is its key with the length before it, a byte (1 for a change, 2 for a sequence number), the
// sections where there is one, the version where there is a change, and its rows with their number before them.

// Encode writes the index as pieces of at most about limit bytes, each of which Decode takes.
func (x *Index) Encode(limit int) [][]byte {
	var out [][]byte
	var buf []byte
	for _, key := range slices.Sorted(maps.Keys(x.entries)) {
		if len(buf) >= limit {
			out = append(out, buf)
			buf = nil
		}
		buf = appendEntry(buf, key, x.entries[key])
	}
	if len(buf) > 0 {
		out = append(out, buf)
	}
	return out
}

func appendEntry(buf []byte, key string, e entry) []byte {
	buf = appendText(buf, key)
	kind := byte(0)
	if e.changed {
		kind |= 1
	}
	if e.sequence.given {
		kind |= 2
	}
	buf = append(buf, kind)
	if e.sequence.given {
		for _, section := range e.sequence.sections {
			buf = binary.AppendUvarint(buf, section)
		}
	}
	if e.changed {
		buf = binary.AppendUvarint(buf, uint64(e.at))
	}
	if e.row < 0 {
		return append(buf, 0)
	}
	buf = binary.AppendUvarint(buf, uint64(1+len(e.more)))
	buf = binary.AppendUvarint(buf, uint64(e.row))
	for _, row := range e.more {
		buf = binary.AppendUvarint(buf, uint64(row))
	}
	return buf
}

// Decode adds the entries of a piece that Encode wrote.
func (x *Index) Decode(b []byte) error {
	in := reader{rest: b}
	for len(in.rest) > 0 {
		key := string(in.bytes(in.uvarint()))
		kind := in.byte()
		e := entry{changed: kind&1 != 0, sequence: in.sequence(kind&2 != 0), row: -1}
		if e.changed {
			e.at = int64(in.uvarint())
		}
		rows := in.uvarint()
		for n := range rows {
			row := int64(in.uvarint())
			if in.failed {
				break
			}
			if n == 0 {
				e.row = row
			} else {
				e.more = append(e.more, row)
			}
		}
		if in.failed || kind > 3 {
			return errDamaged
		}
		if rows == 0 {
			x.tombstones++
		}
		x.entries[key] = e
	}
	return nil
}
