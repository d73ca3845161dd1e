package audit

import (
	"cmp"
	"slices"
	"sort"
)

// Range is rows of consecutive ids.
type Range struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// Table is a table as it is, for a check to compare the log with.
type Table struct {
	Path     string
	Instance int64
	// Live are the ids of the visible rows, ascending.
	Live []Range
}

// has reports whether a row is visible.
func (t *Table) has(id int64) bool {
	return contains(t.Live, id)
}

// Row is a row that the log says is visible, and where it came from.
type Row struct {
	ID     int64  `json:"id"`
	Digest Digest `json:"digest"` // 0 where digests are not kept
	Seq    int64  `json:"seq"`    // the record that wrote it
	Index  int    `json:"index"`  // in that request
	// Shown is the record that made it visible where that is another: a flush or a commit. 0 elsewhere.
	Shown int64 `json:"shown,omitempty"`
}

// ledger is what the log knows of one table instance.
type ledger struct {
	arrivals []*Record // records that made rows visible
	removals []Range
	applied  map[string][]*Record // appends whose rows are not visible by themselves, by stream, in the order of offsets
}

func (l *Log) ledger(t Table) (*ledger, error) {
	out := &ledger{applied: map[string][]*Record{}}
	for r, err := range l.Records() {
		if err != nil {
			return nil, err
		}
		if r.Instance != t.Instance || r.Table != t.Path {
			continue
		}
		out.removals = append(out.removals, r.Removed...)
		switch r.Effect {
		case Visible:
			out.arrivals = append(out.arrivals, r)
		case Removed:
			out.removals = append(out.removals, Range{r.First, r.Count})
		case Applied:
			if r.At != nil {
				out.applied[r.Stream] = append(out.applied[r.Stream], r)
			}
		}
	}
	out.removals = joined(out.removals)
	for _, appends := range out.applied {
		slices.SortStableFunc(appends, func(a, b *Record) int { return cmp.Compare(*a.At, *b.At) })
	}
	slices.SortFunc(out.arrivals, func(a, b *Record) int { return cmp.Compare(a.First, b.First) })
	return out, nil
}

func (g *ledger) removed(id int64) bool {
	return contains(g.removals, id)
}

// contains looks for an id in ranges that ascend and do not overlap.
func contains(ranges []Range, id int64) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].First > id })
	return i > 0 && id < ranges[i-1].First+ranges[i-1].Count
}

// joined sorts ranges and joins those that overlap or touch.
func joined(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.First <= out[n-1].First+out[n-1].Count {
			out[n-1].Count = max(out[n-1].Count, r.First+r.Count-out[n-1].First)
			continue
		}
		out = append(out, r)
	}
	return out
}

// each calls f with every row that arrived and was not removed.
func (g *ledger) each(f func(r *Record, row Row)) {
	for _, r := range g.arrivals {
		id := r.First
		arrive := func(row Row) {
			if row.ID = id; !g.removed(id) {
				f(r, row)
			}
			id++
		}
		if len(r.Shown) == 0 {
			for i := range r.Count {
				arrive(r.row(i))
			}
		}
		for _, s := range r.Shown {
			g.shown(s, r.Seq, arrive)
		}
	}
}

// row is the row of an append at an index.
func (r *Record) row(i int64) Row {
	row := Row{Seq: r.Seq, Index: int(i)}
	if i < int64(len(r.Digests)) {
		row.Digest = Digest(r.Digests[i])
	}
	return row
}

// shown finds the appends of rows that a flush or a commit made visible. Rows of which no append is known are the flush's own.
func (g *ledger) shown(s Shown, seq int64, f func(Row)) {
	appends := g.applied[s.Stream]
	next := sort.Search(len(appends), func(i int) bool { return *appends[i].At+appends[i].Count > s.Offset })
	for offset := s.Offset; offset < s.Offset+s.Count; offset++ {
		for next < len(appends) && *appends[next].At+appends[next].Count <= offset {
			next++
		}
		row := Row{Seq: seq}
		if next < len(appends) && *appends[next].At <= offset {
			row = appends[next].row(offset - *appends[next].At)
		}
		row.Shown = seq
		f(row)
	}
}

// Visible are the rows that the log says are visible, with their provenance, by id.
func (l *Log) Visible(t Table) ([]Row, error) {
	g, err := l.ledger(t)
	if err != nil {
		return nil, err
	}
	var out []Row
	g.each(func(_ *Record, row Row) { out = append(out, row) })
	return out, nil
}

// AppliedTwice are the visible rows whose bytes are equal to those of a visible row of another append, in groups. Legitimate
// equal rows show up too: what it proves, it proves for inputs without them. Rows that came by other ways than appends, by a
// load or a statement, have no digest and are not compared.
func (l *Log) AppliedTwice(t Table) ([][]Row, error) {
	g, err := l.ledger(t)
	if err != nil {
		return nil, err
	}
	byDigest := map[Digest][]Row{}
	g.each(func(_ *Record, row Row) {
		if l.Digests() && row.Digest != 0 {
			byDigest[row.Digest] = append(byDigest[row.Digest], row)
		}
	})
	var out [][]Row
	for _, rows := range byDigest {
		if slices.ContainsFunc(rows, func(r Row) bool { return r.Seq != rows[0].Seq }) {
			out = append(out, rows)
		}
	}
	slices.SortFunc(out, func(a, b []Row) int { return cmp.Compare(a[0].ID, b[0].ID) })
	return out, nil
}

// AckedNotVisible are the rows that a client was told are written and that the table does not have: lost rows.
func (l *Log) AckedNotVisible(t Table) ([]Row, error) {
	g, err := l.ledger(t)
	if err != nil {
		return nil, err
	}
	var out []Row
	g.each(func(r *Record, row Row) {
		if r.Acked() && !t.has(row.ID) {
			out = append(out, row)
		}
	})
	return out, nil
}

// VisibleNeverAcked are the rows of the table whose writer was never told so. They are legitimate: a client that sends them
// again writes them twice.
func (l *Log) VisibleNeverAcked(t Table) ([]Row, error) {
	g, err := l.ledger(t)
	if err != nil {
		return nil, err
	}
	var out []Row
	g.each(func(r *Record, row Row) {
		if !r.Acked() && t.has(row.ID) {
			out = append(out, row)
		}
	})
	return out, nil
}

// Unaccounted are the ids of rows that the table has and the log knows nothing of. There are none while the log is whole.
func (l *Log) Unaccounted(t Table) ([]Range, error) {
	g, err := l.ledger(t)
	if err != nil {
		return nil, err
	}
	var out []Range
	next := 0
	for _, live := range t.Live {
		for id, end := live.First, live.First+live.Count; id < end; {
			for next < len(g.arrivals) && g.arrivals[next].First+g.arrivals[next].Count <= id {
				next++
			}
			until := end
			if next < len(g.arrivals) {
				if a := g.arrivals[next]; a.First <= id {
					id = min(a.First+a.Count, end)
					continue
				} else {
					until = min(a.First, end)
				}
			}
			out = append(out, Range{id, until - id})
			id = until
		}
	}
	return out, nil
}
