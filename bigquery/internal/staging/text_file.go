package staging

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// textFile writes a text file packed with gzip, which is what load jobs unpack (BigQuery documentation, "Loading CSV data",
// "Loading compressed and uncompressed data"). It is for one goroutine.
type textFile struct {
	out   counter
	pack  *gzip.Writer // nil once it is closed
	lines func(buf, row []byte) ([]byte, error)
	block []byte // lines
	err   error  // what ended the file
}

// counter counts what it passes on.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// packers are used again: each takes most of a megabyte. Level 3 packs text of rows at about the pace of zstandard at its level 3,
// the default level at half of it.
var packers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(io.Discard, 3)
	if err != nil {
		panic(err) // the level is constant
	}
	return z
}}

func newTextFile(w io.Writer, lines func(buf, row []byte) ([]byte, error)) *textFile {
	f := &textFile{out: counter{w: w}, lines: lines, pack: packers.Get().(*gzip.Writer)}
	f.pack.Reset(&f.out)
	return f
}

// Write adds a row.
func (f *textFile) Write(row []byte) error {
	if f.err != nil {
		return f.err
	}
	block, err := f.lines(f.block, row)
	if err != nil {
		f.block = block[:len(f.block)]
		return err
	}
	if f.block = block; len(block) >= blockBytes {
		return f.flush()
	}
	return nil
}

func (f *textFile) flush() error {
	_, err := f.pack.Write(f.block)
	f.block = f.block[:0]
	return f.fail(err)
}

func (f *textFile) fail(err error) error {
	if err != nil {
		f.err = fmt.Errorf("write a text file: %w", err)
	}
	return f.err
}

// Size is the number of bytes that have been written so far.
func (f *textFile) Size() int64 { return f.out.n }

// Close writes what is left.
func (f *textFile) Close() error {
	if f.pack == nil {
		return f.err
	}
	if f.err == nil {
		_ = f.flush() // remembered
	}
	if f.err == nil {
		_ = f.fail(f.pack.Close())
	}
	f.pack.Reset(io.Discard)
	packers.Put(f.pack)
	f.pack = nil
	return f.err
}

// appendLiteral appends the text of a value that is a number, a time or bytes. Exact says that the text means the same as a number of
// JSON, or as true and false.
func (c *Column) appendLiteral(buf []byte, v Value) (_ []byte, exact bool, err error) {
	switch c.Kind {
	case Float:
		f := math.Float64frombits(v.Raw)
		switch {
		case math.IsNaN(f):
			return append(buf, "NaN"...), false, nil
		case math.IsInf(f, 1):
			return append(buf, "Infinity"...), false, nil
		case math.IsInf(f, -1):
			return append(buf, "-Infinity"...), false, nil
		}
		return strconv.AppendFloat(buf, f, 'g', -1, 64), true, nil
	case Bytes:
		return base64.StdEncoding.AppendEncode(buf, v.Bytes), false, c.Content(v.Bytes)
	case Decimal, DecimalText:
		d, err := c.decimal(v.Bytes)
		if err != nil {
			return buf, false, err
		}
		return d.AppendText(buf, c.Decimal.FractionDigits()), false, nil
	case DateTimeText:
		n, err := c.Literal(v.Bytes)
		if err != nil {
			return buf, false, err
		}
		return row.AppendDateTime(buf, n), false, nil
	}
	n, err := c.Integer(v.Raw)
	if err != nil {
		return buf, false, err
	}
	switch c.Kind {
	case Bool:
		return strconv.AppendBool(buf, n != 0), true, nil
	case Date:
		return row.AppendDate(buf, n), false, nil
	case Time:
		return row.AppendTime(buf, n), false, nil
	case DateTime:
		return row.AppendDateTime(buf, n), false, nil
	case Timestamp:
		return row.AppendTimestamp(buf, n), false, nil
	}
	// Numbers of JSON are doubles to many who read them (RFC 8259, 6).
	return strconv.AppendInt(buf, n, 10), -1<<53 <= n && n <= 1<<53, nil
}
