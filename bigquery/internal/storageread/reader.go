package storageread

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// Reader reads splits, one at a time. Its methods are called from one goroutine; a fetcher of its own runs beside it
// while a split is open.
type Reader struct {
	config *Config
	log    *slog.Logger
	count  fetchCounters

	client *client // nil until a split is opened that has something to read

	open   bool
	split  Split
	cursor cursor
	fetch  *fetcher // nil when the open split's end is reached without it
	failed error    // what the open split failed with; it stays failed
}

// NewReader makes a reader that opens nothing yet.
func (c *Config) NewReader(a Attempt) *Reader {
	return &Reader{config: c, log: a.Log, count: fetchCounters{
		rows:    a.Meter.Counter(RowsRead),
		bytes:   a.Meter.Counter(BytesRead),
		retries: a.Meter.Counter(ReadRetries), throttled: a.Meter.Counter(ThrottledResponses),
	}}
}

// Open makes s the open split and begins to fetch its blocks from s.Position on.
func (r *Reader) Open(ctx context.Context, s stream.Split) error { return r.begin(ctx, s, false) }

// begin opens a split, whose blocks stay as they were received if parts says so: Fetch cannot take them then.
func (r *Reader) begin(ctx context.Context, s stream.Split, parts bool) error {
	if r.open {
		return errors.New("a split is open: read it to its end or close the reader")
	}
	split, err := decodeSplit(s)
	if err != nil {
		return err
	}
	if split.Arrow != r.config.Arrow {
		return &ReadError{Stream: split.Stream, Offset: s.Position, Err: errFormat}
	}
	d, err := r.decoder(split)
	if err != nil {
		return &ReadError{Stream: split.Stream, Offset: s.Position, Err: err}
	}
	r.cursor = cursor{decoder: d, maxRows: r.config.MaxRecordsPerFetch, maxBytes: r.config.MaxBytesPerFetch,
		stop: noStop, delivered: s.Position}
	if r.config.Limit > 0 {
		r.cursor.stop = r.config.Limit
	}
	r.split, r.open, r.failed = split, true, nil
	if r.cursor.delivered >= r.cursor.stop {
		return nil
	}
	return r.startFetching(ctx, s.Position, parts)
}

var errFormat = errors.New("the split is of a session in another format than the reader's")

// decoder keeps the decoder of the split before, if the schema is the same, as it is within a session.
func (r *Reader) decoder(s Split) (*Decoder, error) {
	if s.Arrow {
		return nil, nil
	}
	if r.cursor.decoder != nil && r.split.Schema == s.Schema {
		return r.cursor.decoder, nil
	}
	return r.config.Decoder(s.Schema)
}

func (r *Reader) startFetching(ctx context.Context, position int64, parts bool) error {
	if r.client == nil {
		// The connection outlives this call.
		c, err := r.config.dialer()(context.WithoutCancel(ctx))
		if err != nil {
			r.open = false
			return err
		}
		r.client = c
	}
	random := rand.Float64
	if r.config.Pacer.Rand != nil {
		random = r.config.Pacer.Rand
	}
	r.fetch = &fetcher{
		stream: r.split.Stream,
		open:   r.client.open,
		stall:  r.config.StallTimeout,
		resume: resume{maxAttempts: r.config.RetryMaxAttempts, random: random, received: position},
		queue:  newBlockQueue(r.config.FetchQueue * r.config.MaxBytesPerFetch),
		parts:  parts,
		log:    r.log,
		count:  r.count,
		shown:  r.config.Board.opened(r.split.Stream, position),
	}
	r.fetch.start(ctx)
	return nil
}

// Fetch makes one batch: it calls each for row after row until the batch is full, the split ends or ctx does. each gets
// the row, valid during the call, its position, and the bytes it took.
//
//   - nil: each was called, for every row of the batch.
//   - io.EOF: the split has no more rows and is no longer open. each was not called.
//   - ctx ended: nil when each was called, else ctx's error. The fetcher goes on; nothing is lost or read twice.
//   - an error of each: it is answered as it is, and the row counts as not delivered: the next Fetch begins with it.
//   - any other error: what each was given in this call is void, and the split cannot be read on.
func (r *Reader) Fetch(ctx context.Context, each func(r *row.Row, at int64, size int) error) error {
	if r.failed != nil {
		return r.failed
	}
	if !r.open {
		return errors.New("no split is open")
	}
	r.cursor.begin()
	for {
		next, err := r.cursor.next()
		if err != nil {
			return r.fail(&ReadError{Err: err})
		}
		switch next {
		case giveRow:
			if err := each(r.cursor.decoder.Row(), r.cursor.delivered, r.cursor.decoded); err != nil {
				return err
			}
			r.cursor.gave()
			if r.cursor.rows%64 == 0 && ctx.Err() != nil {
				return nil
			}
		case batchFull:
			return nil
		case splitEnded:
			return r.end()
		case needBlock:
			done, err := r.receive(ctx)
			if done || err != nil {
				return err
			}
		}
	}
}

// receive loads the next block. done says that the batch is finished, with that error.
func (r *Reader) receive(ctx context.Context) (done bool, err error) {
	if ctx.Err() != nil && r.cursor.rows > 0 {
		return true, nil
	}
	b, err := r.fetch.queue.take(ctx)
	switch {
	case err == nil:
		if err = r.cursor.load(b.data, b.rows); err != nil {
			return true, r.fail(&ReadError{Err: err})
		}
		return false, nil
	case errors.Is(err, io.EOF):
		return true, r.end()
	case ctx.Err() != nil:
		if r.cursor.rows > 0 {
			return true, nil
		}
		return true, ctx.Err()
	}
	return true, r.fail(readError(err))
}

// readError is a *ReadError of what the fetcher gave up with.
func readError(err error) *ReadError {
	if g, ok := errors.AsType[*gaveUp](err); ok {
		return &ReadError{Code: g.code, Attempts: g.attempts, Err: g.err}
	}
	return &ReadError{Err: err}
}

// fail completes a ReadError. Rows delivered in the fetch that failed do not count, since it hands over nothing.
func (r *Reader) fail(e *ReadError) error {
	e.Stream, e.Offset = r.split.Stream, r.cursor.delivered
	if !r.split.Expires.IsZero() && time.Now().After(r.split.Expires) {
		e.Expired = r.split.Expires
	}
	r.failed = e
	return e
}

// end finishes the split, once its last rows have been handed over.
func (r *Reader) end() error {
	if r.cursor.rows > 0 {
		return nil
	}
	r.stop()
	return io.EOF
}

// stop closes the open split, whatever is left of it.
func (r *Reader) stop() {
	if r.fetch != nil {
		r.fetch.stop()
		r.fetch = nil
	}
	r.open = false
	r.cursor = cursor{decoder: r.cursor.decoder}
}

// Close frees everything. It is idempotent.
func (r *Reader) Close() error {
	r.stop()
	if r.client == nil {
		return nil
	}
	c := r.client
	r.client = nil
	return c.close()
}
