package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-dev/millrace/stream"
)

// Container is an open file that holds batches of rows instead of bytes between line ends. It is used by one goroutine. The
// position of a row is its number in the file.
type Container interface {
	// Begin makes row the one that Next begins with. It is called once, before Next.
	Begin(row int64) error
	// Next returns the next batch and the number of its rows, at least one, and io.EOF behind the last. A batch stays as it
	// is until the next call.
	Next() (batch any, rows int, err error)
	// Close frees what the container holds, and not the file.
	Close() error
}

// A Container that knows how many rows it has also tells, so that progress can be shown:
//
//	Rows() int64

// OpenContainer opens a file of a format whose files are containers.
type OpenContainer func(f *os.File, size int64) (Container, error)

// openContainer is a container that is being read.
type openContainer struct {
	Container
	batch any
	row   int64 // the next
	left  int   // of the batch
	index int   // of the next row in the batch
}

func (o *openPart) openContainer(f *os.File, position int64, open OpenContainer) error {
	c, err := open(f, o.Size)
	if err != nil {
		return lasting(err)
	}
	o.closers = append(o.closers, c)
	if err := c.Begin(position); err != nil {
		return lasting(fmt.Errorf("go to row %d: %w", position, err))
	}
	o.container = &openContainer{Container: c, row: position}
	o.place = &locator{path: o.Path, rows: true}
	return nil
}

// fetchRows hands over the rows of one batch, or as many of them as one fetch has.
func (o *openPart) fetchRows(ctx context.Context, b *stream.Batch[Record], limit int) error {
	c := o.container
	if c.left == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, rows, err := c.Next()
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("files source: read %s, at row %d: %w", o.Path, c.row, lasting(err))
		}
		c.batch, c.left, c.index = batch, rows, 0
	}
	for range min(c.left, limit) {
		b.Row(c.row, c.row+1)
		b.Emit(stream.Record[Record]{
			Value: Record{Batch: c.batch, Index: c.index},
			At:    stream.Position{Split: o.id, Row: c.row, Locator: o.place},
		})
		c.row++
		c.index++
		c.left--
	}
	if r, ok := c.Container.(interface{ Rows() int64 }); ok && r.Rows() > 0 {
		// As much of the file as of its rows.
		done := int64(float64(o.Size) * float64(c.row) / float64(r.Rows()))
		b.Bytes, o.told = done-o.told, done
	}
	return nil
}
