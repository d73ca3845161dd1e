package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
)

// deaths are the versions at which single rows of a chunk were taken away, by place in the chunk; 0 is a row that lives, and
// rows beyond the end live too.
type deaths struct {
	at   []int64
	rows int64 // that have died
	last int64 // version of the last death
}

// kill takes a row away and reports whether it was there.
func (d *deaths) kill(row, version int64) bool {
	if row >= int64(len(d.at)) {
		d.at = append(d.at, make([]int64, row+1-int64(len(d.at)))...)
	}
	if d.at[row] != 0 {
		return false
	}
	d.at[row] = version
	d.rows++
	d.last = max(d.last, version)
	return true
}

// dead reports whether a reader at version does not see the row any more.
func (d *deaths) dead(row, version int64) bool {
	return row < int64(len(d.at)) && d.at[row] != 0 && d.at[row] <= version
}

// The durable form is pairs of uvarints: rows since the last one that died, and the version.

func (d *deaths) encode() []byte {
	var buf []byte
	next := 0
	for row, version := range d.at {
		if version != 0 {
			buf = binary.AppendUvarint(buf, uint64(row-next))
			buf = binary.AppendUvarint(buf, uint64(version))
			next = row + 1
		}
	}
	return buf
}

var errDeaths = errors.New("the list of removed rows is damaged")

func decodeDeaths(b []byte, rows int64) (d deaths, err error) {
	next := uint64(0)
	for len(b) > 0 {
		skip, n := binary.Uvarint(b)
		if n <= 0 {
			return d, errDeaths
		}
		version, m := binary.Uvarint(b[n:])
		if m <= 0 || version == 0 || skip > uint64(rows) || next+skip >= uint64(rows) {
			return d, errDeaths
		}
		b = b[n+m:]
		d.kill(int64(next+skip), int64(version))
		next += skip + 1
	}
	return d, nil
}

// kill takes away the visible row of that id; it reports false where it was gone already. t.mu is held.
func (t *Table) kill(id, version int64) bool {
	i := sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].first > id }) - 1
	if i < 0 {
		return false
	}
	c := t.chunks[i]
	if id >= c.first+c.rows || c.diedAt != 0 || !c.deaths.kill(id-c.first, version) {
		return false
	}
	t.dead++
	t.killed++
	t.bytes -= c.rowBytes(id - c.first)
	return true
}

// rowBytes is the logical size of one row.
func (c *chunk) rowBytes(row int64) int64 {
	for _, p := range c.pieces {
		if n := p.batch.NumRows(); row >= n {
			row -= n
			continue
		}
		return logicalBytes(c.info.Schema, p.batch.NewSlice(row, row+1))
	}
	return 0
}

// floor is the id below which all rows were taken away at once.
func (t *Table) floor() int64 { return t.dead - t.killed }

// Range is rows of consecutive ids.
type Range struct{ First, Count int64 }

// has reports whether a row is in one of the ranges, which ascend.
func has(ranges []Range, id int64) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].First > id })
	return i > 0 && id < ranges[i-1].First+ranges[i-1].Count
}

// extend adds rows behind those of ascending ranges.
func extend(ranges []Range, first, count int64) []Range {
	if n := len(ranges); n > 0 && ranges[n-1].First+ranges[n-1].Count == first {
		ranges[n-1].Count += count
		return ranges
	}
	return append(ranges, Range{first, count})
}

// rangesOf makes ranges of ids in any order.
func rangesOf(ids []int64) (out []Range) {
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		out = extend(out, id, 1)
	}
	return out
}

// Live are the ids of the visible rows, ascending.
func (t *Table) Live() (out []Range) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	next := t.floor()
	for _, dead := range t.removed() {
		if dead.First > next {
			out = append(out, Range{next, dead.First - next})
		}
		next = dead.First + dead.Count
	}
	if t.rows > next {
		out = append(out, Range{next, t.rows - next})
	}
	return out
}

// removed are the ids of the rows that were taken away one by one since all were the last time.
func (t *Table) removed() []Range {
	out := slices.Clone(t.gone)
	for _, c := range t.chunks {
		if c.diedAt != 0 {
			continue
		}
		for row, version := range c.deaths.at {
			if version != 0 {
				out = extend(out, c.first+int64(row), 1)
			}
		}
	}
	slices.SortFunc(out, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	return out
}

// view is what a snapshot shows besides its version.
type view struct {
	version int64
	// without, if not nil, are changes that it does not show.
	without *wait
}

// sees reports whether the row of the chunk, visible by then, is shown.
func (v view) sees(c *chunk, row int64) bool {
	if v.without == nil {
		return !c.deaths.dead(row, v.version)
	}
	return !c.deaths.dead(row, v.without.from-1) && !has(v.without.rows, c.first+row)
}

// whole reports whether all rows of the chunk are shown that are there.
func (v view) whole(c *chunk) bool {
	return c.deaths.rows == 0 && (v.without == nil || !v.without.touches(c.first, c.rows))
}

// runs are the rows that are shown among the first n of the chunk, by place in it.
func (v view) runs(c *chunk, n int64) (out []Range) {
	for row := range n {
		if v.sees(c, row) {
			out = extend(out, row, 1)
		}
	}
	return out
}

// manyRuns is when rows of a chunk are copied together, because as many slices would cost readers more.
const manyRuns = 16

// addRuns takes some rows of a chunk.
func (s *Snapshot) addRuns(c *chunk, runs []Range) {
	if len(c.pieces) > fewPieces {
		c.join(0)
	}
	var parts []Part
	at := int64(0)
	for _, p := range c.pieces {
		end := at + p.batch.NumRows()
		for _, r := range runs {
			if from, to := max(r.First, at), min(r.First+r.Count, end); from < to {
				parts = append(parts, Part{First: c.first + from, Batch: p.batch.NewSlice(from-at, to-at)})
			}
		}
		at = end
	}
	if len(parts) > manyRuns {
		parts = []Part{together(parts)}
	}
	for _, p := range parts {
		p.Batch = conform(p.Batch, c.info.Schema, s.Info.Schema)
		s.parts = append(s.parts, p)
		s.rows += p.Batch.NumRows()
	}
}

// together copies parts into one.
func together(parts []Part) Part {
	out := Part{First: parts[0].First}
	batches := make([]arrow.RecordBatch, len(parts))
	for i, p := range parts {
		batches[i] = p.Batch
		out.ids = extend(out.ids, p.First, p.Batch.NumRows())
	}
	out.Batch = Concatenate(batches)
	return out
}

// Ranges are the ids of the part's rows, in order.
func (p Part) Ranges() []Range {
	if p.ids != nil {
		return p.ids
	}
	return []Range{{p.First, p.Batch.NumRows()}}
}
