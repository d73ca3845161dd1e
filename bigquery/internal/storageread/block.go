package storageread

import (
	"context"
	"errors"
	"io"

	"github.com/millrace-dev/millrace/stream"
)

// Block is the rows of one response: Avro datums one after the other, as the session's schema says, without a container
// around them, or one record batch message of Arrow.
type Block struct {
	Stream string
	Offset int64 // of the first row in its stream
	Rows   int64
	Data   []byte // the receiver's; see Free
	// Progress is the share of the stream, 0 to 1, that ends with the block, as the service tells it; 0 when it does not.
	Progress float64
}

// Free gives Data back, to receive others into: neither it nor a part of it may be used any more. A Block that is not given back is
// left to the garbage collector.
func (b Block) Free() { giveBuffer(b.Data) }

// Blocks calls each for all blocks of a split that s begins, in order. Of the block that the limit falls into it hands on
// the part before. The reader must have no split open, and has none afterwards.
func (r *Reader) Blocks(ctx context.Context, s stream.Split, each func(Block) error) error {
	if err := r.Open(ctx, s); err != nil {
		return err
	}
	defer r.stop()
	for {
		b, err := r.Block(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		if err := each(b); err != nil {
			return err
		}
	}
}

// Block is the next block of the open split. io.EOF says that the split has no more rows and is no longer open; any other error,
// but for that of a ctx that ended, that it cannot be read on.
func (r *Reader) Block(ctx context.Context) (Block, error) {
	if r.failed != nil {
		return Block{}, r.failed
	}
	if !r.open {
		return Block{}, errors.New("no split is open")
	}
	if r.cursor.delivered >= r.cursor.stop {
		r.stop()
		return Block{}, io.EOF
	}
	b, err := r.fetch.queue.take(ctx)
	switch {
	case errors.Is(err, io.EOF):
		r.stop()
		return Block{}, io.EOF
	case err != nil && ctx.Err() != nil:
		return Block{}, ctx.Err()
	case err != nil:
		return Block{}, r.fail(readError(err))
	}
	if b, err = r.cut(b); err != nil {
		return Block{}, r.fail(&ReadError{Err: err})
	}
	out := Block{r.split.Stream, r.cursor.delivered, b.rows, b.data, b.progress}
	r.cursor.delivered += b.rows
	return out, nil
}

// OpenSchema is the schema of the open split.
func (r *Reader) OpenSchema() string { return r.split.Schema }

// cut shortens a block that goes beyond the stop. Where a row ends, only decoding tells.
func (r *Reader) cut(b block) (block, error) {
	rows := r.cursor.stop - r.cursor.delivered
	if b.rows <= rows {
		return b, nil
	}
	if r.split.Arrow {
		return block{b.data, rows, b.progress}, nil // whoever decodes it takes the first rows
	}
	end := 0
	for range rows {
		n, err := r.cursor.decoder.Decode(b.data[end:])
		if err != nil {
			return block{}, err
		}
		end += n
	}
	return block{b.data[:end:end], rows, b.progress}, nil
}
