package store

import (
	"fmt"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	maxChunkRows = 65_536
	// maxChunkBytes closes a chunk of large values early: its rows are joined into one batch, whose offsets end at 2 GiB, and
	// are one frame of a data file.
	maxChunkBytes = maxWrite / 2
	// fanIn is how many pieces of one level are joined into one of the next. A row of a one-row append is so copied at
	// most three times on the way into a full chunk (64³ > 65,536).
	fanIn = 64
	// fewPieces need no joining: readers take several batches as easily as one.
	fewPieces = 8
)

// chunk is a run of rows with consecutive ids and one schema. It only ever grows at its end.
type chunk struct {
	first  int64 // id of its first row
	rows   int64
	bytes  int64 // logical ones, about
	info   *Info // the definition that the pieces are shaped by
	pieces []piece
	marks  []mark
	// diedAt is the version that took all its rows away; 0 while they live.
	diedAt int64
	// deaths are of rows that were taken away one by one.
	deaths deaths
	// extents are where on disk its rows are, from the front; what they leave over is in the log only.
	extents []extent
}

// piece is a batch of at least one row.
type piece struct {
	batch arrow.RecordBatch
	level int // how often its rows have been joined
}

// mark says that the chunk had rows rows from version on. The last of them count as ingested then or, if ingested is not 0, at
// that microsecond.
type mark struct {
	version  int64
	rows     int64
	ingested int64
}

func (c *chunk) full() bool { return c.rows >= maxChunkRows || c.bytes >= maxChunkBytes }

// add appends a batch that fits, visible from version on.
func (c *chunk) add(batch arrow.RecordBatch, version, ingested int64) {
	c.pieces = append(c.pieces, piece{batch: batch})
	c.rows += batch.NumRows()
	c.bytes += logicalBytes(c.info.Schema, batch)
	if n := len(c.marks); n > 0 && c.marks[n-1].version == version && c.marks[n-1].ingested == ingested {
		c.marks[n-1].rows = c.rows
	} else {
		c.marks = append(c.marks, mark{version, c.rows, ingested})
	}
	if c.full() && len(c.pieces) > fewPieces {
		c.join(0)
		return
	}
	for run := c.lastRun(); len(c.pieces)-run >= fanIn; run = c.lastRun() {
		c.join(run)
	}
}

// lastRun is where the last pieces of equal level begin.
func (c *chunk) lastRun() int {
	last := len(c.pieces) - 1
	from := last
	for from > 0 && c.pieces[from-1].level == c.pieces[last].level {
		from--
	}
	return from
}

// join makes one piece of those from index on. Snapshots hold slices of the old list, so it is replaced, not changed.
func (c *chunk) join(from int) {
	batches := make([]arrow.RecordBatch, 0, len(c.pieces)-from)
	level := 0
	for _, p := range c.pieces[from:] {
		batches = append(batches, p.batch)
		level = max(level, p.level)
	}
	joined := piece{batch: Concatenate(batches), level: level + 1}
	c.pieces = append(slices.Clone(c.pieces[:from]), joined)
}

// Concatenate joins batches of one schema into one.
func Concatenate(batches []arrow.RecordBatch) arrow.RecordBatch {
	first := batches[0]
	columns := make([]arrow.Array, first.NumCols())
	parts := make([]arrow.Array, len(batches))
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	for i := range columns {
		for j, b := range batches {
			parts[j] = b.Column(i)
		}
		joined, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			panic(fmt.Sprintf("store: joining batches of one schema: %v", err)) // types are equal by construction
		}
		columns[i] = joined
	}
	return array.NewRecordBatch(first.Schema(), columns, rows)
}

// rowsAt is how many of its rows, from the front, a reader at version sees.
func (c *chunk) rowsAt(version int64) int64 {
	if c.diedAt != 0 && c.diedAt <= version {
		return 0
	}
	n := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].version > version })
	if n == 0 {
		return 0
	}
	return c.marks[n-1].rows
}
