package storagewrite

import "github.com/millrace-dev/millrace/stream"

// origins remembers, for the rows of a batch, where their records were read and, if asked to, what they were: only the
// answer to the append tells which rows are wrong. It is compact, because nearly every row is right.
type origins struct {
	runs      []originRun
	positions []int64
	texts     []byte // originals, one after another
	ends      []int  // where each original ends in texts; empty unless originals are kept
}

// originRun is the split that rows from a number on were read from.
type originRun struct {
	from    int
	split   string
	locator stream.Locator
}

func (o *origins) add(at *stream.Position) {
	// A split has one locator; whether there is one is all that is compared, since locators need not be comparable.
	if n := len(o.runs); n == 0 || o.runs[n-1].split != at.Split || (o.runs[n-1].locator == nil) != (at.Locator == nil) {
		o.runs = append(o.runs, originRun{len(o.positions), at.Split, at.Locator})
	}
	o.positions = append(o.positions, at.Row)
}

// keep adds the original of the row added last.
func (o *origins) keep(original []byte) {
	o.texts = append(o.texts, original...)
	o.ends = append(o.ends, len(o.texts))
}

func (o *origins) at(i int) stream.Position {
	run := originRun{}
	for _, r := range o.runs {
		if r.from > i {
			break
		}
		run = r
	}
	return stream.Position{Split: run.split, Row: o.positions[i], Locator: run.locator}
}

// original is the original of row i, nil when there is none.
func (o *origins) original(i int) []byte {
	if i >= len(o.ends) {
		return nil
	}
	start := 0
	if i > 0 {
		start = o.ends[i-1]
	}
	if start == o.ends[i] {
		return nil
	}
	return o.texts[start:o.ends[i]:o.ends[i]]
}

func (o *origins) reset() {
	clear(o.runs)
	o.runs, o.positions, o.texts, o.ends = o.runs[:0], o.positions[:0], o.texts[:0], o.ends[:0]
}
