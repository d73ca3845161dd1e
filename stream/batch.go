package stream

// Batch is what one Fetch hands over: input rows in order, each with its position and the zero, one or many records it
// gave. The zero value is ready to use; a reader fills it with Reset, then Row and Emit.
type Batch[T any] struct {
	records []Record[T]
	rows    []batchRow

	// Bytes is how much input the rows took, for metrics and progress. Readers that cannot say leave it 0.
	Bytes int64
}

type batchRow struct {
	at, next int64
	end      int // records[:end] belong to this row or an earlier one
}

// Reset empties the batch and keeps its memory.
func (b *Batch[T]) Reset() {
	clear(b.records)
	b.records = b.records[:0]
	b.rows = b.rows[:0]
	b.Bytes = 0
}

// Row begins an input row at position at; once it is consumed, reading resumes at next. at must not be below the next
// of the row before, and next must be greater than at. Rows begun and never emitted for are skipped rows.
func (b *Batch[T]) Row(at, next int64) {
	if next <= at || len(b.rows) > 0 && at < b.rows[len(b.rows)-1].next {
		panic("stream: positions of a batch must grow")
	}
	b.rows = append(b.rows, batchRow{at, next, len(b.records)})
}

// Emit adds a record to the row begun last.
func (b *Batch[T]) Emit(r Record[T]) {
	b.records = append(b.records, r)
	b.rows[len(b.rows)-1].end = len(b.records)
}

// Drop takes back the row begun last with all its records: what a reader does with a row that failed half way.
func (b *Batch[T]) Drop() {
	n := len(b.rows) - 1
	start := 0
	if n > 0 {
		start = b.rows[n-1].end
	}
	clear(b.records[start:])
	b.records = b.records[:start]
	b.rows = b.rows[:n]
}

// Len is the number of input rows.
func (b *Batch[T]) Len() int { return len(b.rows) }

// At returns the records of input row i, its position, and where reading resumes once it is consumed.
func (b *Batch[T]) At(i int) (records []Record[T], at, next int64) {
	r := b.rows[i]
	start := 0
	if i > 0 {
		start = b.rows[i-1].end
	}
	return b.records[start:r.end:r.end], r.at, r.next
}

// Records returns the records of all rows in order.
func (b *Batch[T]) Records() []Record[T] { return b.records }
