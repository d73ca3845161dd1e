package tablequeue

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/structrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/stream"
)

// Options tune a queue. The zero value is the default of each.
type Options struct {
	// Connection is which service to write to, and as whom. The default is the real one, with application default credentials.
	Connection bigquery.Connection
	// Location is where the dataset is. By default it is looked up.
	Location string
	// CreateDatasets creates the dataset too. It is meant for a local service.
	CreateDatasets bool
}

// Queue is the failure policy that appends failed records to a table.
type Queue struct {
	dst  table.Destination
	sink *bigquery.Sink[letterRow]
}

// maxBufferedBytes bounds what one lane holds in letters that are not acknowledged.
const maxBufferedBytes = 16 << 20

// New makes the policy of a table. Nothing is opened, no file is read and no call is made before the first letter.
func New(dst table.Destination, o Options) (*Queue, error) {
	rows, err := structrow.New[letterRow](structrow.Options{})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	sink, err := bigquery.NewSink(bigquery.To[letterRow](dst), rows, bigquery.SinkOptions{
		Connection: o.Connection,
		Location:   o.Location,
		Create: bigquery.Create{Datasets: o.CreateDatasets, Options: table.CreateOptions{
			Partition: table.Partition{Type: table.PartitionDay, Field: "time"}, Description: "Records that could not be written."}},
		DefaultStream: bigquery.DefaultStreamOptions{MaxBufferedBytes: maxBufferedBytes},
	})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Queue{dst, sink}, nil
}

// NewHandler makes the handler of one lane. What its writer counts is not of the job's rows, and goes nowhere.
func (q *Queue) NewHandler(ctx context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	if hc.Log == nil {
		hc.Log = slog.New(slog.DiscardHandler)
	}
	w, err := q.sink.NewWriter(ctx, stream.WriterContext{Job: hc.Job, Lane: hc.Lane, Lanes: hc.Lane + 1, Meter: stream.NoMeter, Log: hc.Log})
	if err != nil {
		return nil, fmt.Errorf("dead letters to %s: %w", q.dst, err)
	}
	return &handler{q: q, hc: hc, w: w, meters: deadletter.NewMeters(hc, "table")}, nil
}

// handler appends the letters of one lane.
type handler struct {
	q      *Queue
	hc     stream.HandlerContext
	w      stream.Writer[letterRow]
	meters *deadletter.Meters
}

// maxLetterBytes leaves room in the 9 MiB of a row for what the size of a letter is not exact about.
const maxLetterBytes = 9<<20 - 1024

// Handle appends the letter of a record, and waits while as many bytes as may be are not acknowledged.
func (h *handler) Handle(ctx context.Context, f *stream.FailedRecord) error {
	l := deadletter.Of(f, h.hc, time.Now())
	r := rowOf(&l)
	if n := r.size(); n > maxLetterBytes {
		return tooLarge{fmt.Errorf("dead letter of %s: %d bytes do not fit a row of %s, which has at most %d: use a file or fail the job", f.At, n, h.q.dst, maxLetterBytes)}
	}
	h.meters.Offered()
	err := h.w.Write(ctx, &stream.Record[letterRow]{Value: r, At: stream.Position{Split: f.Split, Row: f.At.Row, Locator: fixed(f.At)}})
	return h.named(err)
}

// fixed is the place that is known already.
type fixed stream.Location

func (f fixed) Locate(stream.Position) stream.Location { return stream.Location(f) }

func (h *handler) named(err error) error {
	if err != nil {
		return fmt.Errorf("dead letters to %s: %w", h.q.dst, err)
	}
	return nil
}

// tooLarge is an error that comes back at the next attempt.
type tooLarge struct{ error }

func (e tooLarge) Unwrap() error { return e.error }

// Permanent is true: see engine.Restart.
func (tooLarge) Permanent() bool { return true }

// Flush returns once BigQuery has acknowledged every letter.
func (h *handler) Flush(ctx context.Context) error {
	began, n := time.Now(), h.meters.InFlight()
	err := h.w.Flush(ctx, false)
	if err != nil {
		n = 0
	}
	h.meters.Waited(began, n)
	return h.named(err)
}

// Close frees the writer. What is not flushed is offered again.
func (h *handler) Close() error {
	h.meters.Closed()
	return h.named(h.w.Close())
}

// Letters reads the letters of a table, in no order.
func Letters(ctx context.Context, c bigquery.Connection, dst table.Destination, limit int64) iter.Seq2[deadletter.Letter, error] {
	return func(yield func(deadletter.Letter, error) bool) {
		rows, err := structrow.NewDeserializer[letterRow]()
		if err != nil {
			yield(deadletter.Letter{}, err)
			return
		}
		src, err := bigquery.NewSource(bigquery.FromTable(dst), rows, bigquery.SourceOptions{Connection: c, Limit: limit})
		if err != nil {
			yield(deadletter.Letter{}, fmt.Errorf("dead letters of %s: %w", dst, err))
			return
		}
		for r, err := range src.Rows(ctx) {
			if err != nil {
				yield(deadletter.Letter{}, fmt.Errorf("dead letters of %s: %w", dst, err))
				return
			}
			if !yield(r.letter(), nil) {
				return
			}
		}
	}
}
