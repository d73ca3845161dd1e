package bigquery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/stream"
)

// fileWriter is the writer of one lane with MethodFileLoads. What it does ends at the serializer; rows go on in fileload.
type fileWriter[T any] struct {
	front[T]
	core *fileload.Writer
	row  []byte // of the record under way

	last *fileload.Target // of the record before, nil after a flush
}

var (
	_ stream.Writer[int] = (*fileWriter[int])(nil)
	_ stream.Tallier     = (*fileWriter[int])(nil)
	_ stream.Ticking     = (*fileWriter[int])(nil)
)

func (s *Sink[T]) newFileWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[T], error) {
	c := s.config.files
	c.Job, c.Lane, c.Run, c.Attempt, c.Streaming, c.Meter, c.Log = wc.Job, wc.Lane, wc.Run, wc.Attempt, wc.Streaming, wc.Meter, wc.Log
	if wc.Checkpoint != 0 {
		c.Options.LoadEmpty = false // what had no row now may have had some before, which an empty load would replace
	}
	core, err := fileload.New(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("bigquery sink: %w", err)
	}
	return &fileWriter[T]{front: s.front(c.Log), core: core}, nil
}

// Write finds the record's table, makes its row, and writes it to the table's file.
func (w *fileWriter[T]) Write(ctx context.Context, r *stream.Record[T]) error {
	t := w.last
	if t == nil || !w.single {
		var err error
		if t, err = w.target(ctx, r); t == nil || err != nil {
			return err
		}
	}
	row, err := w.encode(w.row[:0], t.Destination(), r.Value)
	switch {
	case err == nil:
		w.row = row
		return w.add(ctx, t, r)
	case skipped(err):
		w.core.Skip()
		return nil
	case misconfigured(err):
		return misconfigurationOf(t.Destination(), &r.At, err)
	}
	return w.core.Reject(ctx, t, w.failed(r, err))
}

// add writes the row of a record, unless there is something wrong with it.
func (w *fileWriter[T]) add(ctx context.Context, t *fileload.Target, r *stream.Record[T]) error {
	err := w.core.Row(ctx, t, w.row)
	if err == nil {
		return nil
	}
	if own := (*fileload.RowError)(nil); !errors.As(err, &own) {
		return err
	}
	f := w.failed(r, err)
	f.Row = w.row
	return w.core.Reject(ctx, t, f)
}

// target finds the record's table; nil without an error is a record that belongs to none and was handed to the failure
// handler.
func (w *fileWriter[T]) target(ctx context.Context, r *stream.Record[T]) (*fileload.Target, error) {
	dst, err := w.resolve(ctx, r)
	if err != nil {
		f, err := w.unresolved(r, err)
		if err != nil {
			return nil, err
		}
		return nil, w.core.Reject(ctx, nil, f)
	}
	if w.last == nil || w.last.Destination() != dst {
		t, err := w.core.Target(dst)
		if errors.Is(err, loadplan.ErrReserved) && !w.single { // who writes records must not be able to stop the job
			return nil, w.core.Reject(ctx, nil, w.failed(r, &Unroutable{Reason: err.Error(), Err: err}))
		}
		if err != nil {
			return nil, &stream.PositionError{At: r.At.Location(), Err: err}
		}
		w.last = t
	}
	return w.last, nil
}

// Flush returns once the failure handler has everything that it was handed. Files are finished by Prepare.
func (w *fileWriter[T]) Flush(ctx context.Context, final bool) error {
	w.last = nil
	return w.core.Flush(ctx, final)
}

// Prepare finishes all files and promises them.
func (w *fileWriter[T]) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	return w.core.Prepare(ctx, checkpoint)
}

// Snapshot has nothing to remember: what is staged has been promised.
func (w *fileWriter[T]) Snapshot(context.Context, int64) ([]stream.State, error) { return nil, nil }

// Close gives up what is being staged.
func (w *fileWriter[T]) Close() error { return w.core.Close() }

// Tally says what became of the records.
func (w *fileWriter[T]) Tally() stream.Tally { return w.core.Tally() }

// Every is how often Tick looks for files that have been idle.
func (w *fileWriter[T]) Every() time.Duration { return w.core.Every() }

// Tick finishes them.
func (w *fileWriter[T]) Tick(ctx context.Context) error { return w.core.Tick(ctx) }
