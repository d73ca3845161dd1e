package storageread

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/mem"

	"github.com/millrace-dev/millrace/stream"
)

// Block is the rows of one response: Avro datums one after the other, as the session's schema says, without a container
// around them, or one record batch message of Arrow.
type Block struct {
	Stream string
	Offset int64 // of the first row in its stream
	Rows   int64
	Data   []byte // the receiver's; see Free
	// Parts are the bytes of the block instead of Data, one after the other, where it was asked for in parts.
	Parts [][]byte
	// Progress is the share of the stream, 0 to 1, that ends with the block, as the service tells it; 0 when it does not.
	Progress float64

	received mem.BufferSlice // what Parts are of
}

// Free gives the bytes back, to receive others into: nothing of them may be used any more. It is called once, if at all: a Block
// that is not given back is left to the garbage collector.
func (b Block) Free() {
	giveBuffer(b.Data)
	b.received.Free()
}

// Blocks calls each for all blocks of a split that s begins, in order. Of the block that the limit falls into it hands on
// the part before. The reader must have no split open, and has none afterwards.
func (r *Reader) Blocks(ctx context.Context, s stream.Split, each func(Block) error) error {
	return r.blocks(ctx, s, false, each)
}

// Parts is Blocks for who passes bytes on: they are not put together, and each gets them in Parts.
func (r *Reader) Parts(ctx context.Context, s stream.Split, each func(Block) error) error {
	return r.blocks(ctx, s, true, each)
}

func (r *Reader) blocks(ctx context.Context, s stream.Split, parts bool, each func(Block) error) error {
	if err := r.begin(ctx, s, parts); err != nil {
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
		if parts && b.Data != nil {
			b.Parts, b.Data = [][]byte{b.Data}, nil
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
	out := Block{Stream: r.split.Stream, Offset: r.cursor.delivered, Rows: b.rows, Data: b.data, Progress: b.progress, received: b.parts}
	for _, p := range b.parts {
		out.Parts = append(out.Parts, p.ReadOnlyData())
	}
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
		b.rows = rows
		return b, nil // whoever decodes it takes the first rows
	}
	if b.parts != nil {
		b.data, b.parts = whole(b.parts), nil
	}
	end := 0
	for range rows {
		n, err := r.cursor.decoder.Decode(b.data[end:])
		if err != nil {
			return block{}, err
		}
		end += n
	}
	b.data, b.rows = b.data[:end:end], rows
	return b, nil
}
