package export

// Small makes chunks of so many rows, so that tests see many of them in little tables.
func (o Options) Small(rows int64) Options {
	o.size = sizes{rows: rows, bytes: 1 << 20, group: 2 * rows, piece: rows, groupBits: 1 << 30}
	return o
}

// Writev is what files are written with.
var Writev = writev
