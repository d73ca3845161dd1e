package bigquery

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// BlockReader reads the streams of a planned read, one at a time and from any row on, for programs that read several side by
// side and note how far they have come. It has a connection of its own, opened with the first stream, and belongs to one
// goroutine.
type BlockReader struct {
	in     *storageread.Reader
	splits []stream.Split
}

// BlockReader makes a reader of the session's streams. The caller closes it.
func (s *ReadSession[T]) BlockReader() *BlockReader {
	return &BlockReader{s.source.config.NewReader(alone), s.session.Splits()}
}

// BlockReader makes a reader of the session's streams. The caller closes it.
func (s *ArrowSession) BlockReader() *BlockReader {
	return &BlockReader{s.config.NewReader(alone), s.session.Splits()}
}

// Blocks calls each for the blocks of stream number n, of 0 to Streams()-1, from row from on and in order. Broken calls are
// repaired as everywhere. An error of each ends it and is answered as it is. Reading from the end of a stream on is no error
// and gives nothing.
func (r *BlockReader) Blocks(ctx context.Context, n int, from int64, each func(Block) error) error {
	split, err := r.split(n, from)
	if err != nil {
		return err
	}
	return r.in.Blocks(ctx, split, each)
}

// Parts is Blocks for programs that pass bytes on without looking at them: each gets them in the block's Parts, as they lie where
// they were received, which saves a copy of them. Giving them back with Free matters more here.
func (r *BlockReader) Parts(ctx context.Context, n int, from int64, each func(Block) error) error {
	split, err := r.split(n, from)
	if err != nil {
		return err
	}
	return r.in.Parts(ctx, split, each)
}

func (r *BlockReader) split(n int, from int64) (stream.Split, error) {
	if n < 0 || n >= len(r.splits) {
		return stream.Split{}, fmt.Errorf("stream %d of a session with %d", n, len(r.splits))
	}
	split := r.splits[n]
	split.Position = from
	return split, nil
}

// Close ends the connection. It is idempotent.
func (r *BlockReader) Close() error { return r.in.Close() }

// BlockDecoder makes rows of the blocks of a session in Avro. It belongs to one goroutine.
type BlockDecoder struct{ d *storageread.Decoder }

// BlockDecoder makes a decoder of the session's blocks.
func (s *ReadSession[T]) BlockDecoder() (*BlockDecoder, error) {
	d, err := s.source.config.Decoder(s.session.Schema)
	if err != nil {
		return nil, err
	}
	return &BlockDecoder{d}, nil
}

// Next decodes the first row of a block and takes it off: Offset, Rows and Data are those of the rows behind it. The row is
// valid until the next call. It must not be called for a block without rows. Errors are *row.Error values of the D kinds.
func (d *BlockDecoder) Next(b *Block) (*row.Row, error) {
	n, err := d.d.Decode(b.Data)
	if err != nil {
		return nil, err
	}
	b.Data, b.Rows, b.Offset = b.Data[n:], b.Rows-1, b.Offset+1
	if b.Rows == 0 && len(b.Data) > 0 {
		return nil, &row.Error{Kind: row.KindDecode, Offset: -1, Msg: fmt.Sprintf("the block has %d bytes more than its rows", len(b.Data))}
	}
	return d.d.Row(), nil
}

// Save is the session as bytes, with which another process reads on: with the same session, from whatever rows of its
// streams. They hold the schema and the names of the streams and no credentials; who may read the table may read them.
func (s *ReadSession[T]) Save() []byte { return s.session.Save() }

// Save is the session as bytes; see ReadSession.Save.
func (s *ArrowSession) Save() []byte { return s.session.Save() }

// Restore is a session that was saved by a source with the same options. It makes no call: that a session has expired,
// reading tells.
func (s *Source[T]) Restore(saved []byte) (*ReadSession[T], error) {
	session, err := s.config.Restore(saved)
	if err != nil {
		return nil, err
	}
	d, err := s.config.Decoder(session.Schema)
	if err != nil {
		return nil, err
	}
	return &ReadSession[T]{s, session, d.Schema()}, nil
}

// RestoreArrow is a session of ReadArrow that was saved; see Source.Restore.
func RestoreArrow(saved []byte, from Input, o SourceOptions) (*ArrowSession, error) {
	config, err := o.resolveArrow(from)
	if err != nil {
		return nil, err
	}
	session, err := config.Restore(saved)
	if err != nil {
		return nil, err
	}
	return &ArrowSession{config, session}, nil
}
