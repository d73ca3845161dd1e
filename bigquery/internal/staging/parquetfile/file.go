package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/schema/parquetschema"
)

// Options are those of a file. The zero value is what load jobs like best.
type Options struct {
	// RowGroupBytes is how many bytes of values a row group holds before it is written; 0 is 16 MiB, the size of a staged
	// file. Until then they lie in memory, packed, and count for nothing towards a file's size.
	RowGroupBytes int
	// Uncompressed writes pages as they are instead of packing them with zstandard.
	Uncompressed bool
}

const (
	rowGroupBytes = 16 << 20
	// batchBytes is how much is collected before it is handed to the library, column by column.
	batchBytes = 128 << 10
	valueBytes = 24 // that a value takes while it is collected
)

// File writes a Parquet file. It is for one goroutine.
type File struct {
	w       *parquet.GenericWriter[any]
	out     *counter
	scan    staging.Scanner
	root    *staging.Message
	columns []column
	leaves  []leaf
	text    []byte // what values of leaves refer to
	batch   int    // bytes of values in leaves
	pending int    // bytes of values in the library
	limit   int    // of pending
	err     error  // what ended the file
}

// leaf collects the values of one column of the file.
type leaf struct {
	values []parquet.Value
	mark   int // how many there were before the row in hand
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// New begins a file for rows of a plan.
func New(w io.Writer, p *staging.Plan, o Options) (*File, error) {
	if o.RowGroupBytes < 0 {
		return nil, fmt.Errorf("RowGroupBytes is %d: expected a positive number of bytes, or 0 for %d", o.RowGroupBytes, rowGroupBytes)
	}
	f := &File{out: &counter{w: w}, root: p.Root, limit: o.RowGroupBytes}
	if f.limit == 0 {
		f.limit = rowGroupBytes
	}
	leaves := 0
	f.columns = compile(p.Root, &leaves, 0, 0)
	f.leaves = make([]leaf, leaves)
	options := []parquet.WriterOption{parquetschema.Write(p.Schema), parquet.DataPageVersion(1), parquet.DataPageStatistics(false), parquet.CreatedBy("millrace", "", "")}
	if !o.Uncompressed {
		options = append(options, parquet.Compression(&parquet.Zstd))
	}
	for _, path := range boundless(p.Root, nil) {
		options = append(options, parquet.SkipPageBounds(path...))
	}
	f.w = parquet.NewGenericWriter[any](f.out, options...)
	return f, nil
}

// Write adds a row. A *row.Error is the row's own fault: it is not in the file, which goes on. Any other error ends the
// file, and comes again.
func (f *File) Write(data []byte) error {
	if f.err != nil {
		return f.err
	}
	for i := range f.leaves {
		f.leaves[i].mark = len(f.leaves[i].values)
	}
	text, batch := len(f.text), f.batch
	f.scan.Reset()
	if err := f.message(f.root, f.columns, data, 0, 0); err != nil {
		for i := range f.leaves {
			f.leaves[i].values = f.leaves[i].values[:f.leaves[i].mark]
		}
		f.text, f.batch = f.text[:text], batch
		return err
	}
	if f.batch >= batchBytes {
		return f.hand()
	}
	return nil
}

// hand passes the collected values to the library, and has it write a row group when it has enough.
func (f *File) hand() error {
	for i, w := range f.w.ColumnWriters() {
		l := &f.leaves[i]
		if len(l.values) == 0 { // the library reads memory before it counts
			continue
		}
		if _, err := w.WriteRowValues(l.values); err != nil {
			return f.fail(err)
		}
		l.values = l.values[:0]
	}
	f.pending += f.batch
	f.text, f.batch = f.text[:0], 0
	if f.pending < f.limit {
		return nil
	}
	f.pending = 0
	return f.fail(f.w.Flush())
}

func (f *File) fail(err error) error {
	if err != nil {
		f.err = fmt.Errorf("write a Parquet file: %w", err)
	}
	return f.err
}

// Size is the number of bytes that have been written so far. Buffered is that of the values that have not, unpacked.
func (f *File) Size() int64 { return f.out.n }

func (f *File) Buffered() int { return f.pending + f.batch }

// Close writes what is left, and the footer. It does not close the writer below.
func (f *File) Close() error {
	if f.err != nil {
		return errors.Join(f.err, f.w.Close())
	}
	if err := f.hand(); err != nil {
		return errors.Join(err, f.w.Close())
	}
	f.pending = 0
	return f.fail(f.w.Close())
}

// message collects the values of a row or a STRUCT. The repetition level is that of its first leaf values.
func (f *File) message(m *staging.Message, columns []column, data []byte, repetition, definition int) error {
	frame, err := f.scan.Open(m, data)
	if err != nil {
		return err
	}
	for i := range columns {
		c := &columns[i]
		slot := f.scan.Slot(frame, i)
		switch {
		case slot.Count == 0 && c.Required():
			return c.Missing()
		case c.Repeated():
			err = f.list(c, frame, &slot, repetition, definition)
		case slot.Count == 0:
			f.nulls(c, repetition, definition)
		default:
			err = f.value(c, f.scan.Single(frame, &slot), repetition)
		}
		if err != nil {
			return c.Under(err)
		}
	}
	f.scan.Close(frame)
	return nil
}

// nulls says of all leaves of a column that they have no value, because what lies at a level above is not there.
func (f *File) nulls(c *column, repetition, definition int) {
	for i := c.first; i < c.last; i++ {
		f.put(i, parquet.NullValue(), repetition, definition)
	}
}

func (f *File) list(c *column, frame staging.Frame, slot *staging.Slot, repetition, definition int) error {
	first := true
	err := f.scan.Each(frame, c.Column, slot, func(v staging.Value) error {
		if !first {
			repetition = c.repetition
		}
		first = false
		return f.value(c, v, repetition)
	})
	if err == nil && first {
		f.nulls(c, repetition, definition)
	}
	return err
}

func (f *File) value(c *column, v staging.Value, repetition int) error {
	if c.Kind == staging.Record {
		return f.message(c.Message, c.members, v.Bytes, repetition, c.definition)
	}
	p, err := f.leaf(c, v)
	if err == nil {
		f.put(c.first, p, repetition, c.definition)
	}
	return err
}

func (f *File) put(i int, v parquet.Value, repetition, definition int) {
	l := &f.leaves[i]
	l.values = append(l.values, v.Level(repetition, definition, i))
	f.batch += valueBytes
}

func (f *File) leaf(c *column, v staging.Value) (parquet.Value, error) {
	switch c.Kind {
	case staging.Float:
		return parquet.DoubleValue(math.Float64frombits(v.Raw)), nil
	case staging.Text, staging.Bytes:
		err := c.Content(v.Bytes)
		at := len(f.text)
		f.text = append(f.text, v.Bytes...)
		return f.bytes(at), err
	case staging.Decimal, staging.DecimalText:
		at := len(f.text)
		text, err := c.AppendDecimal(f.text, v.Bytes)
		f.text = text
		return f.bytes(at), err
	case staging.DateTimeText:
		n, err := c.Literal(v.Bytes)
		return parquet.Int64Value(n), err
	}
	n, err := c.Integer(v.Raw)
	switch c.Kind {
	case staging.Bool:
		return parquet.BooleanValue(n != 0), err
	case staging.Date:
		return parquet.Int32Value(int32(n)), err
	}
	return parquet.Int64Value(n), err
}

// bytes is a value that refers to what was collected since at. When there is no more room the text moves on, and earlier
// values keep what they refer to.
func (f *File) bytes(at int) parquet.Value {
	f.batch += len(f.text) - at
	return parquet.ByteArrayValue(f.text[at:len(f.text):len(f.text)])
}
