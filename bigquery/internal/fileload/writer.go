package fileload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/objects"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Writer writes the rows of one lane to files on Cloud Storage, one open file for each destination. Nothing is kept of a row once it
// is written but the block it is in. All calls come from the lane's goroutine.
//
// The way of a record is Target and Row, or Skip or Reject instead of Row. A checkpoint is Flush, then Prepare.
//
// It takes about 4.5 MiB for each open file, 72 MiB with the default of 16, and a few hundred bytes for each finished one and each
// destination until the next commit. Files of Parquet add MaxFileBytes each.
type Writer struct {
	lane  *outcome.Lane
	m     *writerMeters
	cfg   Config
	names *namer
	depot depot
	clock func() time.Duration // time since some beginning

	shelf   shelf
	targets map[table.Destination]*Target
	spare   []*Target // without a file, and with a conversion; bounded as open files are
	said    saidSchemas
	scratch []byte
	final   bool  // the last Flush was the job's last
	ended   error // what ended the writer
	closed  bool
}

// New makes a writer. It makes no call before the first file is finished, or is larger than fits into memory.
func New(ctx context.Context, cfg Config) (*Writer, error) {
	begun := time.Now()
	store := cloudStorage{objects.New(cfg.Connection, requestDeadline)}
	return newWriter(ctx, cfg, store, func() time.Duration { return time.Since(begun) })
}

// requestDeadline is how long one request of an upload is repeated: as long as an outage that a stream's connection bears.
const requestDeadline = 5 * time.Minute

func newWriter(ctx context.Context, cfg Config, d depot, clock func() time.Duration) (*Writer, error) {
	cfg.Log = cfg.Log.With("lane", cfg.Lane)
	names, err := newNamer(&cfg)
	if err != nil {
		return nil, err
	}
	lane, err := outcome.NewLane(ctx, outcome.Config{Failures: cfg.Failures, Ledger: cfg.Ledger, PerDestinationMetrics: cfg.PerDestinationMetrics,
		Method: Method, Job: cfg.Job, Lane: cfg.Lane, Meter: cfg.Meter, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	if cfg.Choice == nil {
		cfg.Choice = staging.NewChoice(cfg.Options.Format)
	}
	o := &cfg.Options
	return &Writer{
		lane: lane, m: newWriterMeters(lane.Meters), cfg: cfg, names: names, depot: d, clock: clock,
		shelf:   shelf{maxOpen: o.MaxOpenDestinations, maxPending: o.MaxPendingFiles, idle: o.IdleTimeout},
		targets: map[table.Destination]*Target{},
	}, nil
}

// Target returns what the writer knows of a destination. It makes no calls. A name that cannot be a table's is an error, and so is one
// of temporary tables: loadplan.ErrReserved.
func (w *Writer) Target(dst table.Destination) (*Target, error) {
	t := w.targets[dst]
	if t == nil {
		if err := loadplan.CheckDestination(dst); err != nil {
			return nil, err
		}
		p, err := w.lane.Place(dst)
		if err != nil {
			return nil, err
		}
		t = &Target{Place: p}
		w.targets[dst] = t
	}
	return t, nil
}

// RowError is the error of a row that is wrong by itself: it is in no file, and belongs to the failure handler.
type RowError struct{ Err error }

func (e *RowError) Error() string { return e.Err.Error() }
func (e *RowError) Unwrap() error { return e.Err }

// Row writes a row to the destination's file, which it opens if there is none. A *RowError is the row's own fault; it has opened
// nothing, and the writer goes on. Any other error ends the writer. row is not kept.
func (w *Writer) Row(ctx context.Context, t *Target, row []byte) error {
	if w.ended != nil {
		return w.ended
	}
	now := w.clock()
	if err := w.finishStale(ctx, now); err != nil {
		return err
	}
	if most := w.cfg.Options.MaxRowBytes; len(row) > most {
		return &RowError{fmt.Errorf("encoded row is %d bytes long: expected at most %d (MaxSerializedRowBytes)", len(row), most)}
	}
	if err := w.ready(ctx, t); err != nil {
		return err
	}
	if t.file == nil {
		if err := w.open(ctx, t, row, now); err != nil {
			return err
		}
	}
	size := t.file.out.n
	if err := t.file.write(ctx, row); err != nil {
		return w.notWritten(t, err)
	}
	t.file.rows++
	t.rows++
	t.bytes += len(row)
	w.shelf.touched(t, now)
	if t.file.out.n > size {
		w.count(t)
	}
	if t.file.out.n < w.cfg.Options.MaxFileBytes {
		return nil
	}
	return w.roll(ctx, t)
}

// roll finishes a file that is large enough. The next row opens another one, under the same conversion.
func (w *Writer) roll(ctx context.Context, t *Target) error {
	c := t.conversion
	if err := w.finish(ctx, t); err != nil {
		return err
	}
	w.setAside(t, c)
	return nil
}

// ready sees to it that the destination's conversion is of the schema that rows have now. Rows of another one go to another file.
func (w *Writer) ready(ctx context.Context, t *Target) error {
	if c := t.conversion; c != nil {
		if c.fingerprint == 0 || w.cfg.Rows.Fingerprint(t.Dst) == c.fingerprint {
			return nil
		}
		if t.file != nil {
			if err := w.finish(ctx, t); err != nil {
				return err
			}
		}
		w.cfg.Log.InfoContext(ctx, "row schema changed", "destination", t.Name)
	}
	c, err := w.cfg.convert(t.Dst, w.cfg.Log)
	if err != nil {
		return w.end(err)
	}
	w.takeBack(t)
	w.setAside(t, c)
	return nil
}

// setAside gives a destination without a file a conversion. When there are many such, the one forgets its conversion that has been
// one for longest.
func (w *Writer) setAside(t *Target, c *conversion) {
	if len(w.spare) == w.shelf.maxOpen {
		w.spare[0].conversion = nil
		w.spare = slices.Delete(w.spare, 0, 1)
	}
	t.conversion = c
	w.spare = append(w.spare, t)
}

// takeBack takes a destination off those without a file.
func (w *Writer) takeBack(t *Target) {
	if i := slices.Index(w.spare, t); i >= 0 {
		w.spare = slices.Delete(w.spare, i, i+1)
	}
}

// open opens a file for a row, unless there is something wrong with the row.
func (w *Writer) open(ctx context.Context, t *Target, row []byte, now time.Duration) (err error) {
	if w.scratch, err = t.conversion.check.Append(w.scratch[:0], row); err != nil {
		return w.notWritten(t, err)
	}
	w.takeBack(t)
	evict, err := w.shelf.admit()
	if err != nil {
		return w.end(w.exceeded(err))
	}
	if evict != nil {
		if err := w.finish(ctx, evict); err != nil {
			return err
		}
		w.m.capacityEvictions.Add(1)
	}
	f, err := openFile(ctx, w.depot, w.names.next(t.Dst, t.conversion.encoding.Extension()), t.conversion.encoding, t.conversion.plan)
	if err != nil {
		return w.end(w.staging(t, err))
	}
	t.file = f
	w.shelf.opened(t, now)
	w.m.show(&w.shelf)
	return nil
}

// exceeded is an error of the shelf, which the next attempt at a batch would meet again.
func (w *Writer) exceeded(err error) error {
	if w.cfg.Streaming {
		return err
	}
	return misconfiguration{err}
}

// notWritten tells a row that is wrong from a file that cannot be written. A file that is without rows for it is given up.
func (w *Writer) notWritten(t *Target, err error) error {
	var bad *row.Error
	if !errors.As(err, &bad) {
		return w.end(w.staging(t, err))
	}
	if t.file != nil && t.file.rows == 0 {
		f := t.file
		w.detach(t)
		if err := f.abort(); err != nil {
			return w.end(w.staging(t, err))
		}
	}
	return &RowError{err}
}

func (w *Writer) staging(t *Target, err error) error {
	return fmt.Errorf("stage rows of %s: %w", t.Name, err)
}

// detach takes the file and the conversion from a destination: should it come back, it begins anew.
func (w *Writer) detach(t *Target) {
	w.count(t)
	w.shelf.removed(t)
	t.file, t.conversion = nil, nil
	w.m.show(&w.shelf)
}

// finish makes an object of a destination's file.
func (w *Writer) finish(ctx context.Context, t *Target) error {
	f := t.file
	if err := f.finish(ctx); err != nil {
		return w.end(w.staging(t, err))
	}
	w.detach(t)
	w.stage(t, f)
	return nil
}

// stage notes a file that is finished.
func (w *Writer) stage(t *Target, f *stagedFile) {
	w.shelf.staged(loadplan.Committable{Run: w.cfg.Run, Destination: t.Dst, URI: f.uri, Bytes: f.out.n, Rows: f.rows, Format: f.format,
		Profile: w.cfg.Options.Plan.Profile(), Schema: w.said.once(t.Dst, f.schema)})
	w.m.filesStaged.Add(1)
	w.m.BytesSent.Add(f.out.n)
	w.m.show(&w.shelf)
}

// finishStale finishes files that have got no row for long.
func (w *Writer) finishStale(ctx context.Context, now time.Duration) error {
	for t := w.shelf.stale(now); t != nil; t = w.shelf.stale(now) {
		if err := w.finish(ctx, t); err != nil {
			return err
		}
		w.m.idleEvictions.Add(1)
		w.cfg.Log.DebugContext(ctx, "idle file finished", "destination", t.Name)
	}
	return nil
}

// count counts the rows that were written since the last time.
func (w *Writer) count(t *Target) {
	if t.rows > 0 {
		w.lane.Sent(&t.Place, t.rows, 0)
		w.lane.Written(&t.Place, t.rows, t.bytes)
		t.rows, t.bytes = 0, 0
	}
}

func (w *Writer) countAll() {
	for t := w.shelf.oldest; t != nil; t = t.behind {
		w.count(t)
	}
}

// Skip counts a record that is to be written nowhere.
func (w *Writer) Skip() { w.lane.Skip() }

// Reject hands a record that is wrong by itself to the failure handler. t is nil for one that could not be routed.
func (w *Writer) Reject(ctx context.Context, t *Target, r *stream.FailedRecord) error {
	var p *outcome.Place
	if t != nil {
		p = &t.Place
	}
	if err := w.lane.Reject(ctx, p, r); err != nil {
		return w.end(err)
	}
	return nil
}

// Flush flushes the failure handler. Files go on until Prepare.
func (w *Writer) Flush(ctx context.Context, final bool) error {
	if w.ended != nil {
		return w.ended
	}
	w.countAll()
	w.final = final
	return w.lane.Flush(ctx)
}

// Every is how often Tick is to be called, so that idle files are found when no rows come.
func (w *Writer) Every() time.Duration { return min(w.cfg.Options.IdleTimeout/2, 15*time.Second) }

// Tick finishes idle files.
func (w *Writer) Tick(ctx context.Context) error {
	if w.ended != nil {
		return w.ended
	}
	w.countAll()
	return w.finishStale(ctx, w.clock())
}

// Tally says what became of the records so far.
func (w *Writer) Tally() stream.Tally {
	w.countAll()
	return w.lane.Tally()
}

// Log is the lane's log.
func (w *Writer) Log() *slog.Logger { return w.cfg.Log }

// end remembers what ended the writer.
func (w *Writer) end(err error) error {
	w.ended = err
	return err
}

// Close gives up all files that are open, so that they do not come to be. What Prepare has not returned is loaded by nobody.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.ended = errors.New("writer is closed")
	var errs []error
	for t := w.shelf.oldest; t != nil; t = t.behind {
		errs = append(errs, t.file.abort())
	}
	w.shelf, w.targets, w.spare = shelf{}, nil, nil
	w.m.show(&w.shelf)
	return errors.Join(append(errs, w.lane.Close(), w.depot.Close())...)
}
