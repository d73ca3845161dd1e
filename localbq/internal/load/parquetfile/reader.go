package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Options are those of a load job.
type Options struct {
	// ListInference reads groups that are annotated as lists as REPEATED columns.
	ListInference bool
	EnumAsString  bool
	// Target is the type of a decimal; not ok where it fits none.
	Target func(precision, scale int) (t schema.Type, ok bool)
}

// Reader reads records. It is for one goroutine.
type Reader struct {
	file   *parquet.File
	root   *node
	leaves int
	groups []parquet.RowGroup // not begun yet
	rows   parquet.Rows       // of the group at hand
	batch  []parquet.Row
	at     int // in batch
	values [][]parquet.Value
}

// batchRows is how many rows are asked for at once.
const batchRows = 128

// Open reads a file's footer.
func Open(f io.ReaderAt, size int64, o Options) (r *Reader, err error) {
	defer caught(&err)
	if err := checkFooter(f, size); err != nil {
		return nil, fmt.Errorf("Input file is not in Parquet format: %w", err)
	}
	file, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("Input file is not in Parquet format: %w", err)
	}
	r = &Reader{file: file, groups: file.RowGroups(), batch: make([]parquet.Row, 0, batchRows)}
	c := compiler{Options: o}
	if r.root, err = c.group(file.Root(), "", 0, 0); err != nil {
		return nil, err
	}
	r.leaves = c.leaves
	r.values = make([][]parquet.Value, c.leaves)
	return r, nil
}

// checkFooter holds the footer's length, the four bytes before the magic at the end of the file, to the file: the library takes
// memory for it at once.
func checkFooter(f io.ReaderAt, size int64) error {
	var end [8]byte
	if size < int64(len(end)) {
		return fmt.Errorf("it has %d bytes", size)
	}
	if _, err := f.ReadAt(end[:], size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-int64(len(end)) {
		return fmt.Errorf("its footer has %d bytes by its own account, and the file %d", n, size)
	}
	return nil
}

// caught makes an error of a panic: the library meets some damaged files with one.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", p)
	}
}

// Schema is the columns that the file asks for.
func (r *Reader) Schema() *schema.Schema { return &schema.Schema{Fields: r.root.fields()} }

// Check refuses columns that the file's columns cannot feed. It also settles how the records are read, for those columns.
func (r *Reader) Check(s *schema.Schema) error { return r.root.checkMembers(s.Fields) }

// Position says where the record is that Next returned last.
func (r *Reader) Position() string { return "" }

// Close ends the reading.
func (r *Reader) Close() error {
	if r.rows == nil {
		return nil
	}
	return r.rows.Close()
}

// Next is the next record; io.EOF at the end.
func (r *Reader) Next() (record column.Record, bad, err error) {
	defer caught(&err)
	for r.at == len(r.batch) {
		if err := r.fill(); err != nil {
			return nil, nil, err
		}
	}
	row := r.batch[r.at]
	r.at++
	clear(r.values)
	row.Range(func(index int, values []parquet.Value) bool {
		r.values[index] = values
		return true
	})
	a := assembly{values: r.values}
	v, err := a.members(r.root)
	if err != nil {
		return nil, nil, err
	}
	return v, nil, nil
}

// fill reads the next rows.
func (r *Reader) fill() error {
	if r.rows == nil {
		if len(r.groups) == 0 {
			return io.EOF
		}
		r.rows, r.groups = r.groups[0].Rows(), r.groups[1:]
	}
	r.at, r.batch = 0, r.batch[:batchRows]
	n, err := r.rows.ReadRows(r.batch)
	r.batch = r.batch[:n]
	if errors.Is(err, io.EOF) || err == nil && n == 0 {
		err = r.rows.Close()
		r.rows = nil
	}
	if err != nil {
		return fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	return nil
}
