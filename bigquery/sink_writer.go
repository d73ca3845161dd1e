package bigquery

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// sinkWriter is the writer of one lane. What it does ends at the serializer; rows go on in storagewrite.
type sinkWriter[T any] struct {
	front[T]
	columns  row.Columnar[T] // nil: every record becomes a row
	core     *storagewrite.Writer
	interval time.Duration

	last   *storagewrite.Target        // of the record before, nil after a flush
	near   [slots]*storagewrite.Target // of tables that have come lately
	routed []*storagewrite.Target      // reused
}

var (
	_ stream.Writer[int]        = (*sinkWriter[int])(nil)
	_ stream.RecordsWriter[int] = (*sinkWriter[int])(nil)
	_ stream.Tallier            = (*sinkWriter[int])(nil)
	_ stream.Ticking            = (*sinkWriter[int])(nil)
	_ stream.EncodedWriter      = (*sinkWriter[int])(nil)
)

// Write finds the record's table, makes its row, and puts it into the table's next append.
func (w *sinkWriter[T]) Write(ctx context.Context, r *stream.Record[T]) error {
	if err := w.core.Enter(ctx); err != nil {
		return err
	}
	t := w.last
	if t == nil || !w.single {
		var err error
		if t, err = w.target(ctx, r); t == nil || err != nil {
			return err
		}
	}
	if w.columns != nil {
		if c, i := w.columns.Columns(t.Destination(), r.Value); c != nil {
			return w.core.Extend(ctx, t, c, i, &r.At, w.kept(r))
		}
	}
	buf, err := w.encode(w.core.Begin(t), t.Destination(), r.Value)
	return w.encoded(ctx, t, r, buf, err)
}

// encoded goes on with a record whose row is at the end of buf, unless there is an error.
func (w *sinkWriter[T]) encoded(ctx context.Context, t *storagewrite.Target, r *stream.Record[T], buf []byte, err error) error {
	switch {
	case err == nil:
		return w.core.Commit(ctx, t, buf, &r.At, w.kept(r))
	case skipped(err):
		w.core.Skip()
		return nil
	case misconfigured(err):
		return misconfigurationOf(t.Destination(), &r.At, err)
	}
	return w.core.Reject(ctx, t, w.failed(r, err))
}

// WriteRecords writes records as Write does, and spares most of what each would cost by itself.
func (w *sinkWriter[T]) WriteRecords(ctx context.Context, rs []stream.Record[T]) (n int, err error) {
	for n < len(rs) {
		run, plain := w.route(ctx, rs[n:])
		for len(run) > 0 {
			if err := w.core.Enter(ctx); err != nil {
				return n, err
			}
			done, buf, err := w.burst(run, rs[n:])
			if n += done; done < len(run) {
				if err := w.encoded(ctx, run[done], &rs[n], buf, err); err != nil {
					return n, err
				}
				n, done = n+1, done+1
			}
			run = run[done:]
		}
		if !plain {
			if err := w.Write(ctx, &rs[n]); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// mostRouted is how many records are routed before they are encoded. Lookups that do not wait for each other take half the time.
const mostRouted = 64

// route finds the tables of the first records. It stops in front of one that there is more to, and says that it is not plain.
func (w *sinkWriter[T]) route(ctx context.Context, rs []stream.Record[T]) (run []*storagewrite.Target, plain bool) {
	if w.columns != nil {
		return nil, false
	}
	run = w.routed[:0]
	for i := range rs[:min(len(rs), mostRouted)] {
		t := w.last
		if t == nil || !w.single {
			var err error
			if t, err = w.find(ctx, &rs[i]); err != nil {
				return run, false
			}
		}
		run = append(run, t)
	}
	w.routed = run
	return run, true
}

// burst writes the records of a run for as long as there is nothing more to any than its row, and returns how many. The record
// behind them is encoded: it has buf or err.
func (w *sinkWriter[T]) burst(run []*storagewrite.Target, rs []stream.Record[T]) (n int, buf []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = w.panicked(run[n].Dst, p)
		}
	}()
	for n = range run {
		t := run[n]
		buf, err = w.rows.AppendRow(w.core.Begin(t), t.Dst, rs[n].Value)
		if err != nil || !w.core.Fill(t, buf, &rs[n].At) {
			return n, buf, err
		}
	}
	return len(run), nil, nil
}

// target finds the record's table; nil without an error is a record that belongs to none and was handed to the failure
// handler.
func (w *sinkWriter[T]) target(ctx context.Context, r *stream.Record[T]) (*storagewrite.Target, error) {
	t, err := w.find(ctx, r)
	var name *nameError
	switch {
	case err == nil:
		return t, nil
	case errors.As(err, &name):
		return nil, &stream.PositionError{At: r.At.Location(), Err: name.error}
	}
	f, err := w.unresolved(r, err)
	if err != nil {
		return nil, err
	}
	return nil, w.core.Reject(ctx, nil, f)
}

// nameError is the error of a table whose name cannot be one.
type nameError struct{ error }

// find asks the resolver, and looks its answer up.
func (w *sinkWriter[T]) find(ctx context.Context, r *stream.Record[T]) (*storagewrite.Target, error) {
	dst, err := w.resolve(ctx, r)
	if err != nil {
		return nil, err
	}
	if is(w.last, dst) {
		return w.last, nil
	}
	near := &w.near[slot(dst.Table)]
	if !is(*near, dst) {
		t, err := w.core.Target(dst)
		if err != nil {
			return nil, &nameError{err}
		}
		*near = t
	}
	w.last = *near
	return w.last, nil
}

// is compares what differs first.
func is(t *storagewrite.Target, dst table.Destination) bool {
	return t != nil && t.Dst.Table == dst.Table && t.Dst == dst
}

// slots is how many tables are found without a map.
const slots = 512

// slot is where a table is looked for. Names of tables that are many differ at their ends.
func slot(name string) uint {
	h := uint(len(name))
	for i := max(0, len(name)-4); i < len(name); i++ {
		h = h*31 + uint(name[i])
	}
	return h % slots
}

// forget lets go of targets, which are good until a flush.
func (w *sinkWriter[T]) forget() {
	w.last = nil
	clear(w.near[:])
	clear(w.routed[:cap(w.routed)])
}

// kept is the record's original where the core keeps originals.
func (w *sinkWriter[T]) kept(r *stream.Record[T]) []byte {
	if !w.core.KeepsOriginals() {
		return nil
	}
	return w.original(r)
}

// Flush returns once every record written before is acknowledged by BigQuery, where a commit can make it visible if it is not
// visible yet, or taken by the failure handler.
func (w *sinkWriter[T]) Flush(ctx context.Context, final bool) error {
	w.forget()
	return w.core.Flush(ctx, final)
}

// Prepare promises what was flushed since the last snapshot. With MethodDefault it is visible already.
func (w *sinkWriter[T]) Prepare(context.Context, int64) ([]stream.Committable, error) {
	return w.core.Prepare(), nil
}

// Snapshot remembers how far each stream is written. MethodDefault has nothing to remember.
func (w *sinkWriter[T]) Snapshot(_ context.Context, checkpoint int64) ([]stream.State, error) {
	return w.core.Snapshot(checkpoint), nil
}

// Close frees everything without flushing.
func (w *sinkWriter[T]) Close() error { return w.core.Close() }

// Tally says what became of the records.
func (w *sinkWriter[T]) Tally() stream.Tally { return w.core.Tally() }

// Every is the flush interval.
func (w *sinkWriter[T]) Every() time.Duration { return w.interval }

// Tick flushes, so that rows do not wait for a checkpoint.
func (w *sinkWriter[T]) Tick(ctx context.Context) error { return w.Flush(ctx, false) }

// WriteEncoded takes a batch that an Encoder of the same sink made, here or in another process.
func (w *sinkWriter[T]) WriteEncoded(ctx context.Context, b stream.EncodedBatch) error {
	w.last = nil
	return w.core.WriteEncoded(ctx, b)
}
