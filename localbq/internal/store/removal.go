package store

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// pick lets Pick choose the rows to remove.
func (w *write) pick() error {
	if w.Pick == nil {
		return nil
	}
	s, err := w.table.Snapshot()
	if err == nil {
		w.Remove, err = w.Pick(s)
	}
	return err
}

// checkRemove refuses a write whose rows to remove are not all visible: another has been faster, and the statement that picked
// them has to be run again. t.mu is held.
func (w *write) checkRemove() error {
	next := int64(0)
	for _, r := range w.Remove {
		if r.First < next || r.Count < 1 || r.Count > most {
			return fmt.Errorf("rows to remove from table %s are not in ascending order", w.table.ref)
		}
		next = r.First + r.Count
		for id := r.First; id < next; id++ {
			if !w.table.visible(id) {
				return refusal.New(refusal.InvalidQuery, "Could not serialize access to table %s due to concurrent update", w.table.ref)
			}
		}
	}
	return nil
}

// visible reports whether a row is there now; t.mu is held.
func (t *Table) visible(id int64) bool {
	i := sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].first > id }) - 1
	if i < 0 {
		return false
	}
	c := t.chunks[i]
	row := id - c.first
	return row < c.rows && c.diedAt == 0 && !(row < int64(len(c.deaths.at)) && c.deaths.at[row] != 0)
}

// remove takes the rows of Remove away; t.mu is held.
func (w *write) remove(version int64) {
	var gone []int64
	for _, r := range w.Remove {
		for id := r.First; id < r.First+r.Count; id++ {
			if w.table.kill(id, version) {
				gone = append(gone, id)
			}
		}
	}
	w.written.Gone = rangesOf(gone)
}

// appendRanges and parseRanges are the durable form of rows to remove: their number, and pairs of first id and count.
func appendRanges(buf []byte, ranges []Range) []byte {
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(ranges)))
	for _, r := range ranges {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(r.First))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(r.Count))
	}
	return buf
}

func parseRanges(b []byte) ([]Range, []byte, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("rows to remove are cut off")
	}
	n := binary.LittleEndian.Uint64(b)
	if b = b[8:]; n > uint64(len(b)/16) {
		return nil, nil, fmt.Errorf("rows to remove are cut off")
	}
	out := make([]Range, n)
	for i := range out {
		out[i] = Range{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
		b = b[16:]
	}
	return out, b, nil
}
