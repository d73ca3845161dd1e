package storagewrite

import "github.com/millrace-dev/millrace/stream"

// batch is rows of one destination that travel in one request. It is filled while pending and never changed after it
// was sent, so that it can be sent again.
type batch struct {
	rows   *rowBuffer
	count  int
	bytes  int // sum of the rows' lengths
	schema *schema
	from   origins
}

// size is how much of a request the rows take, framing included.
func (b *batch) size() int { return len(b.rows.data) }

// arrow reports whether the rows are one batch of Arrow, framed as a row is.
func (b *batch) arrow() bool { return b.schema != nil && b.schema.arrow }

// room reports whether a row of n bytes may join: it may not make the rows longer than maxAppend nor the request longer
// than the service takes. An empty batch has room for anything.
func (b *batch) room(n, maxAppend, overhead int) bool {
	return b.count == 0 || b.bytes+n <= maxAppend && overhead+b.size()+frameBytes(n)+n <= maxRequestBytes
}

// push adds a finished row.
func (b *batch) push(row []byte) {
	start := len(b.rows.data)
	guess := frameBytes(len(row)) - 1
	b.rows.data = append(beginRow(b.rows.data, guess), row...)
	b.rows.data, _ = endRow(b.rows.data, start, guess)
	b.count++
	b.bytes += len(row)
}

// each calls f with every row in order until f fails.
func (b *batch) each(f func(i int, row []byte) error) error {
	rest := b.rows.data
	for i := range b.count {
		row, after, err := nextRow(rest)
		if err != nil {
			return err
		}
		if err := f(i, row); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// without returns a batch of the rows that bad does not name, in order, and nil when there are none.
func (b *batch) without(bad map[int]bool, buffers *bufferCache) *batch {
	left := &batch{rows: buffers.get(b.size()), schema: b.schema}
	_ = b.each(func(i int, row []byte) error { // framed by this package
		if bad[i] {
			return nil
		}
		left.push(row)
		if len(b.from.positions) > 0 {
			at := b.from.at(i)
			left.from.add(&at)
		}
		if len(b.from.ends) > 0 {
			left.from.keep(b.from.original(i))
		}
		return nil
	})
	if left.count == 0 {
		left.rows.free()
		return nil
	}
	return left
}

// position says where the record of row i was read, as far as it is known.
func (b *batch) position(i int) stream.Position {
	if i >= len(b.from.positions) {
		return stream.Position{}
	}
	return b.from.at(i)
}
