package bigquery

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// ReadSession is a planned read, for programs without an engine. It holds no connection and needs no closing; the
// service forgets it at its end. Its methods may be called from several goroutines, and each of Rows and Blocks any
// number of times: they read the same rows again.
type ReadSession[T any] struct {
	source  *Source[T]
	session *storageread.Session
	schema  *table.Schema
}

// Block is the rows of one response of the service, as they came: Rows rows of the stream Stream, from Offset on, in
// Data, which belongs to the receiver. Data is what a block of an Avro container file with the session's AvroSchema
// holds.
type Block = storageread.Block

// Session plans the read, which costs nothing but, with FromQuery, the query.
func (s *Source[T]) Session(ctx context.Context) (*ReadSession[T], error) {
	planned, err := s.config.Plan(ctx, alone)
	if err != nil {
		return nil, err
	}
	d, err := s.config.Decoder(planned.Schema)
	if err != nil {
		return nil, err
	}
	return &ReadSession[T]{s, planned, d.Schema()}, nil
}

// Rows plans the read and yields every record. The last pair holds the error, if there was one. Ending the loop early
// ends the read.
func (s *Source[T]) Rows(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		session, err := s.Session(ctx)
		if err != nil {
			yield(*new(T), err)
			return
		}
		session.Rows(ctx)(yield)
	}
}

// alone is what readers know of a job when there is none.
var alone = storageread.Attempt{Lanes: runtime.GOMAXPROCS(0), Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)}

// Name is the session's resource name.
func (s *ReadSession[T]) Name() string { return s.session.Name }

// Table is what is read: the source's table, or the result of its query.
func (s *ReadSession[T]) Table() table.Destination { return s.session.Table }

// Schema is the columns of the rows, as the session tells them. What a session does not tell is unset: descriptions,
// lengths, defaults, policy tags. A BIGNUMERIC with a precision and scale that fit a NUMERIC is reported as one, since
// their values are the same. The schema must not be changed.
func (s *ReadSession[T]) Schema() *table.Schema { return s.schema }

// AvroSchema is the schema of the blocks, a record called __root__.
func (s *ReadSession[T]) AvroSchema() string { return s.session.Schema }

// Expires is the end of the session's life; zero when the service did not say.
func (s *ReadSession[T]) Expires() time.Time { return s.session.Expires }

// Streams is how many streams the service cut the read into; 0 when there is nothing to read.
func (s *ReadSession[T]) Streams() int { return len(s.session.Streams) }

// Estimate is the service's idea of how much there is to read, from metadata that may be stale; 0 where it has none. The
// rows are counted before RowRestriction.
func (s *ReadSession[T]) Estimate() (rows, bytes int64) { return s.session.Rows, s.session.Bytes }

// Rows yields every record. Up to GOMAXPROCS streams are read at once, so records of different streams come mixed. The
// last pair holds the error, if there was one. Ending the loop early ends the read.
func (s *ReadSession[T]) Rows(ctx context.Context) iter.Seq2[T, error] {
	batches := gather(ctx, s.session.Splits(), s.readRows)
	return func(yield func(T, error) bool) {
		for batch, err := range batches {
			for _, v := range batch {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// Blocks is Rows for programs that take the service's Avro as it is. Rows are not decoded, so nothing is said about
// their being right; SourceOptions.Limit holds here too.
func (s *ReadSession[T]) Blocks(ctx context.Context) iter.Seq2[Block, error] {
	return gather(ctx, s.session.Splits(), func(ctx context.Context, splits <-chan stream.Split, give func(Block) error) error {
		r := s.source.config.NewReader(alone)
		defer r.Close()
		for split := range splits {
			if err := r.Blocks(ctx, split, give); err != nil {
				return err
			}
		}
		return nil
	})
}

// readRows is one lane: it gives the records of its splits, batch by batch. A batch that was given is the receiver's.
func (s *ReadSession[T]) readRows(ctx context.Context, splits <-chan stream.Split, give func([]T) error) error {
	r := s.source.reader(alone)
	defer r.Close()
	var b stream.Batch[T]
	for split := range splits {
		if err := r.Open(ctx, split); err != nil {
			return err
		}
		for {
			err := r.Fetch(ctx, &b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			values := make([]T, 0, len(b.Records()))
			for _, rec := range b.Records() {
				values = append(values, rec.Value)
			}
			if err := give(values); err != nil {
				return err
			}
		}
	}
	return nil
}

// lanesFor is how many splits are read at once.
func lanesFor(splits int) int { return min(splits, runtime.GOMAXPROCS(0)) }
