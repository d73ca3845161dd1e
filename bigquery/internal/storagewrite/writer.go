package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// Connector is the name that failed records carry.
const Connector = "bigquery"

// Config is what a writer needs, resolved.
type Config struct {
	Connection gcp.Connection
	Location   string // "" asks the service, once for each dataset
	Options    Options
	Rows       Schemas
	Create     Create
	Update     table.UnionOptions // how far tables that exist may be changed
	SchemaWait retry.Schedule     // for rows whose columns the write service has not heard of yet
	Failures   stream.FailurePolicy
	Ledger     *Ledger
	Pacer      retry.Pacer

	// KeepOriginals keeps what records were read as until their rows are acknowledged, for failed records to carry.
	KeepOriginals bool

	// PerDestinationMetrics adds series for each destination, which stay for the life of the process.
	PerDestinationMetrics bool

	Job   string
	Lane  int
	Meter stream.Meter
	Log   *slog.Logger
}

// Create says what to do about tables that do not exist.
type Create struct {
	Never    bool
	Options  func(table.Destination) (table.CreateOptions, error)
	Datasets bool // create missing datasets too
}

// Writer writes to default streams for one lane: rows are there, visible and for good, when Flush returns. All calls
// come from the lane's goroutine.
//
// The way of a record is Enter, Target, then Begin and Commit around its encoding, or Skip or Reject instead of Commit.
type Writer struct {
	*failures
	cfg     Config
	remote  remote
	tables  *tables
	buffers *bufferCache
	now     func() time.Time

	targets map[table.Destination]*Target
	order   []*Target // as first seen
	flight  inflight
	spare   []*batch // to be used again
	pending int      // bytes of pending batches
	open    int      // targets with a handle
	latched error    // what ended the writer
	closed  bool

	// Written by connections.
	attention atomic.Bool  // an append has failed, or its answer has news
	load      atomic.Int64 // bytes of unanswered appends
}

// New makes a writer. It opens nothing before the first row.
func New(ctx context.Context, cfg Config) (*Writer, error) {
	return newWriter(ctx, cfg, func() remote { return newLink(cfg.Connection, cfg) })
}

func newWriter(ctx context.Context, cfg Config, connect func() remote) (*Writer, error) {
	f, err := newFailures(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	r := connect()
	return &Writer{
		failures: f,
		cfg:      cfg,
		remote:   r,
		tables:   newTables(&cfg, r),
		// Room for the framing of rows of 16 bytes and more, and for a last row of some length.
		buffers: &bufferCache{bytes: cfg.Options.MaxAppendBytes + cfg.Options.MaxAppendBytes/8 + 64<<10},
		now:     time.Now,
		targets: map[table.Destination]*Target{},
	}, nil
}

// Enter comes before every record. It returns what ended the writer, and repairs what has failed since the last call.
func (w *Writer) Enter(ctx context.Context) error {
	if w.latched != nil {
		return w.latched
	}
	if w.attention.Load() {
		return w.mend(ctx)
	}
	return nil
}

// mend handles the failures among the appends that are answered, in order of sending.
func (w *Writer) mend(ctx context.Context) error {
	w.attention.Store(false)
	for {
		e, failed := w.flight.sweep(w.acked)
		w.m.inFlightBatches.Set(int64(len(w.flight.entries)))
		if !failed {
			return w.heed(ctx)
		}
		if err := w.repairBatch(ctx, e); err != nil {
			return err
		}
	}
}

// acked accounts for a batch that the service has taken.
func (w *Writer) acked(e entry) {
	w.tally.Written += int64(e.batch.count)
	w.tally.Bytes += int64(e.batch.bytes)
	e.target.page.rows.Add(int64(e.batch.count))
	e.target.page.bytes.Add(int64(e.batch.bytes))
	if len(w.spare) < 16 {
		e.batch.from.reset()
		*e.batch = batch{from: e.batch.from}
		w.spare = append(w.spare, e.batch)
	}
}

// Target returns what the writer knows of a destination, good until the next Flush. It makes no calls; a destination
// costs nothing remote before its first row. A name that cannot be a table's is an error.
func (w *Writer) Target(dst table.Destination) (*Target, error) {
	t := w.targets[dst]
	if t == nil {
		p, err := w.place(dst)
		if err != nil {
			return nil, err
		}
		t = &Target{place: p, guess: 1, lastAccess: w.now()}
		w.targets[dst] = t
		w.order = append(w.order, t)
	}
	return t, nil
}

// Begin returns where to append the row of the next record of t. An encoding that fails is simply left there.
func (w *Writer) Begin(t *Target) []byte {
	if t.pending == nil {
		t.pending = w.newBatch(t)
	}
	t.start = len(t.pending.rows.data)
	return beginRow(t.pending.rows.data, t.guess)
}

// newBatch makes a batch about as large as the target's last one was.
func (w *Writer) newBatch(t *Target) *batch {
	b := &batch{}
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	b.rows = w.buffers.get(max(t.usualBytes, 4<<10))
	return b
}

// Commit adds the row that was appended to what Begin returned. original is what the record was read as, nil when it
// cannot say; it is copied when originals are kept.
func (w *Writer) Commit(ctx context.Context, t *Target, buf []byte, at *stream.Position, original []byte) error {
	row, err := openRow(buf, t.start, t.guess)
	if err != nil {
		return err
	}
	if t.schema == nil {
		if err := w.describe(t); err != nil {
			return err
		}
	}
	if n := len(row); n > MaxRowBytes || t.overhead+frameBytes(n)+n > maxRequestBytes {
		return w.tooLong(ctx, t, row, at, original)
	}
	if t.handle == nil {
		if err := w.openTarget(ctx, t); err != nil {
			return err
		}
	}
	changed := t.schema.foreign || t.schema.fingerprint != 0 && w.cfg.Rows.Fingerprint(t.dst) != t.schema.fingerprint
	if changed || !t.pending.room(len(row), w.cfg.Options.MaxAppendBytes, t.overhead) {
		if buf, err = w.roll(ctx, t, row, changed); err != nil {
			return err
		}
	}
	w.seal(t, buf, at, original)
	return w.limit(ctx)
}

// seal makes the row at the end of buf part of the pending batch.
func (w *Writer) seal(t *Target, buf []byte, at *stream.Position, original []byte) {
	b := t.pending
	length := len(buf) - (t.start + 1 + t.guess)
	buf, t.guess = endRow(buf, t.start, t.guess)
	b.rows.data = buf
	if b.count == 0 {
		b.schema = t.schema
	}
	b.count++
	b.bytes += length
	b.from.add(at)
	if w.cfg.KeepOriginals {
		b.from.keep(original)
	}
	w.pending += len(buf) - t.start
	t.touched = true
}

// describe reads the schema of the target's rows.
func (w *Writer) describe(t *Target) error {
	s, err := readSchema(w.cfg.Rows, t.dst)
	if err != nil {
		return err
	}
	t.setSchema(s)
	return nil
}

// roll sends the pending batch and moves the row that did not fit into the next one, under a new schema where that is
// why.
func (w *Writer) roll(ctx context.Context, t *Target, row []byte, changed bool) ([]byte, error) {
	full := t.pending
	t.sized(full)
	t.pending = w.newBatch(t)
	t.start = 0
	buf := append(beginRow(t.pending.rows.data, t.guess), row...)
	foreign := t.schema.foreign
	if changed {
		if err := w.describe(t); err != nil {
			return nil, w.latch(err)
		}
		w.cfg.Log.InfoContext(ctx, "row schema changed", "destination", t.name)
	}
	if full.count == 0 {
		full.rows.free()
	} else if err := w.send(ctx, t, full); err != nil {
		return nil, err
	}
	if !changed || foreign {
		return buf, nil
	}
	return buf, w.refresh(ctx, t)
}

// send hands a batch to the target's handle.
func (w *Writer) send(ctx context.Context, t *Target, b *batch) error {
	w.pending -= b.size()
	c := w.newCall(b)
	c.news = &t.news
	if err := t.handle.append(ctx, c); err != nil {
		// The batch is in nobody's hands now: going on would lose it.
		return w.latch(fmt.Errorf("append to %s: %w", t.name, err))
	}
	w.m.recordsSent.Add(int64(b.count))
	w.m.bytesSent.Add(int64(b.bytes))
	if t.sent != nil {
		t.sent.Add(int64(b.count))
	}
	w.flight.add(entry{t, b, c})
	if w.flight.due() {
		w.flight.sweep(w.acked) // failures have raised the attention flag
	}
	w.m.inFlightBatches.Set(int64(len(w.flight.entries)))
	return nil
}

func (w *Writer) newCall(b *batch) *call {
	return &call{batch: b, size: b.size(), offset: noOffset, updates: w.tables.updates(), resends: w.m.streamResends, attention: &w.attention,
		load: &w.load, done: make(chan struct{})}
}

// latch remembers what ended the writer.
func (w *Writer) latch(err error) error {
	w.latched = err
	return err
}

// limit keeps the lane within its memory: with half of it pending, everything pending is sent; with all of it taken,
// the oldest appends are waited for.
func (w *Writer) limit(ctx context.Context) error {
	most := w.cfg.Options.MaxBufferedBytes
	if w.pending > most/2 {
		if err := w.sendPending(ctx); err != nil {
			return err
		}
	}
	for int64(w.pending)+w.load.Load() > int64(most) && len(w.flight.entries) > 0 {
		if err := wait(ctx, w.flight.entries[0].call); err != nil {
			return err
		}
		if err := w.mend(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Reject hands a record that is wrong by itself to the failure handler. t is nil for one that could not be routed.
func (w *Writer) Reject(ctx context.Context, t *Target, r *stream.FailedRecord) error {
	if t == nil {
		return w.reject(ctx, nil, r)
	}
	return w.reject(ctx, &t.place, r)
}

func (w *Writer) tooLong(ctx context.Context, t *Target, row []byte, at *stream.Position, original []byte) error {
	err := fmt.Errorf("encoded row is %d bytes long: expected at most %d, and with its schema a request of at most %d",
		len(row), MaxRowBytes, maxRequestBytes)
	return w.Reject(ctx, t, &stream.FailedRecord{Reason: err.Error(), Err: err, Row: row, Original: original, At: at.Location(), Split: at.Split})
}

// Tally says what became of the records so far.
func (w *Writer) Tally() stream.Tally { return w.tally }

// KeepsOriginals reports whether Commit has a use for originals.
func (w *Writer) KeepsOriginals() bool { return w.cfg.KeepOriginals }

// Log is the lane's log.
func (w *Writer) Log() *slog.Logger { return w.cfg.Log }

// Close frees everything. Pending rows are not sent and unanswered appends are not waited for.
func (w *Writer) Close() (err error) {
	if w.closed {
		return nil
	}
	w.closed = true
	w.latch(errors.New("writer is closed"))
	w.m.inFlightBatches.Set(0)
	w.m.openDestinations.Set(0)
	// The handler is closed last and whatever happens before.
	defer func() { err = errors.Join(err, w.handler.Close()) }()
	return w.remote.release()
}
