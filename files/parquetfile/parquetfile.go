// Package parquetfile reads Parquet files for package files: as containers of Arrow batches.
//
//	src, err := files.NewSource(paths, files.Options{Format: files.Parquet, Container: parquetfile.Open})
//
// The Batch of a record is a *arrowrow.Batch. A file is one split, its row groups are read one after another, and a position is
// the number of a row in the file: reading goes on at any row, from the start of its row group.
package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/files"
)

// batchRows is how many rows are decoded at a time: enough that their columns pay for themselves, few enough that rows of a
// kilobyte stay within a few megabytes.
const batchRows = 4096

// Container is an open Parquet file.
type Container struct {
	file   *file.Reader
	arrow  *pqarrow.FileReader
	rows   pqarrow.RecordReader
	skip   int64 // rows of the next batches
	batch  *arrowrow.Batch
	schema *arrow.Schema
}

var _ files.Container = (*Container)(nil)

// Open opens a Parquet file of that size. It is a files.OpenContainer.
func Open(f *os.File, size int64) (files.Container, error) { return open(f, size) }

// Schema is the Arrow schema of a file.
func Schema(path string) (*arrow.Schema, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c, err := open(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c.schema, c.Close()
}

// magic is what a file that is not encrypted begins with (parquet-format, README.md, "File format").
const magic = "PAR1"

func open(f io.ReaderAt, size int64) (c *Container, err error) {
	defer guard("open", &err)
	head := make([]byte, len(magic))
	if _, err := f.ReadAt(head, 0); err == nil && string(head) != magic {
		return nil, errors.New("no Parquet file: it does not begin with " + magic)
	}
	r, err := file.NewParquetReader(io.NewSectionReader(f, 0, size), file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		return nil, fmt.Errorf("no Parquet file, or a damaged one: %w", err)
	}
	c = &Container{file: r}
	if c.arrow, err = pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: batchRows}, memory.DefaultAllocator); err == nil {
		c.schema, err = c.arrow.Schema()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the schema of the Parquet file has no form in Arrow: %w", err), c.Close())
	}
	return c, nil
}

// guard turns a panic, which is how the library meets some damage, into an error.
func guard(what string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s the Parquet file: it is damaged: %v", what, p)
	}
}

// Begin makes row the one that Next begins with.
func (c *Container) Begin(row int64) (err error) {
	defer guard("seek in", &err)
	if row < 0 || row > c.file.NumRows() {
		return fmt.Errorf("row %d of a Parquet file of %d rows", row, c.file.NumRows())
	}
	group := 0
	for ; group < c.file.NumRowGroups(); group++ {
		n := c.file.MetaData().RowGroup(group).NumRows()
		if row < n {
			break
		}
		row -= n
	}
	var groups []int
	for ; group < c.file.NumRowGroups(); group++ {
		groups = append(groups, group)
	}
	c.skip = row
	if len(groups) > 0 {
		c.rows, err = c.arrow.GetRecordReader(context.Background(), nil, groups)
	}
	return err
}

// Rows is how many rows the file has.
func (c *Container) Rows() int64 { return c.file.NumRows() }

// Next returns the next *arrowrow.Batch.
func (c *Container) Next() (batch any, rows int, err error) {
	defer guard("read", &err)
	for c.rows != nil {
		c.release()
		if !c.rows.Next() {
			if err := c.rows.Err(); err != nil && !errors.Is(err, io.EOF) {
				return nil, 0, err
			}
			break
		}
		r := c.rows.RecordBatch()
		n := r.NumRows()
		if c.skip >= n {
			c.skip -= n
			continue
		}
		r = r.NewSlice(c.skip, n)
		c.skip = 0
		b, err := arrowrow.NewBatch(r)
		r.Release() // the Batch has its own hold on it
		if err != nil {
			return nil, 0, err
		}
		c.batch = b
		return b, b.Len(), nil
	}
	return nil, 0, io.EOF
}

func (c *Container) release() {
	if c.batch != nil {
		c.batch.Release()
		c.batch = nil
	}
}

// Close frees everything but the file.
func (c *Container) Close() (err error) {
	defer guard("close", &err)
	c.release()
	if c.rows != nil {
		c.rows.Release()
		c.rows = nil
	}
	return nil
}
