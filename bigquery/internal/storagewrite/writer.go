package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// Config is what a writer needs, resolved.
type Config struct {
	Connection gcp.Connection
	Location   string // "" asks the service, once for each dataset
	Options    Options
	Rows       row.Schemas
	Columns    row.Unpacker // of rows that come by Extend
	Create     tableadmin.Create
	Update     table.UnionOptions // how far tables that exist may be changed
	SchemaWait retry.Schedule     // for rows whose columns the write service has not heard of yet
	Buffered   bool               // streams of the lane's own, whose rows a committer makes visible, instead of default streams
	States     []stream.State     // to go on from, with Buffered
	Failures   stream.FailurePolicy
	Ledger     *outcome.Ledger
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

// Writer writes for one lane: to default streams, where rows are visible and there for good when Flush returns, or to
// streams of its own, where they are there for good and wait for a committer. All calls come from the lane's goroutine.
//
// The way of a record is Enter, Target, then Begin and Commit around its encoding, or Skip or Reject instead of Commit.
type Writer struct {
	*failures
	cfg     Config
	way     delivery
	remote  remote
	tables  *tables
	buffers *bufferCache
	now     func() time.Time

	targets map[table.Destination]*Target
	order   []*Target // as first seen
	turn    int       // whose batch is sent next for want of memory, in order
	flight  inflight  // to default streams
	spare   []*batch  // to be used again
	pending int       // bytes of pending batches
	open    int       // targets with a handle
	appends int       // unanswered, to streams of the lane's own
	latched error     // what ended the writer
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
	cfg.Log = cfg.Log.With("lane", cfg.Lane) // what connect makes may be shared with other lanes, and does not say so
	f, err := newFailures(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	r := connect()
	w := &Writer{
		failures: f,
		cfg:      cfg,
		remote:   r,
		tables:   newTables(&cfg, r),
		// Room for the framing of rows of 16 bytes and more, and for a last row of some length.
		buffers: &bufferCache{bytes: cfg.Options.MaxAppendBytes + cfg.Options.MaxAppendBytes/8 + 64<<10},
		now:     time.Now,
		targets: map[table.Destination]*Target{},
	}
	w.way = toDefault{w}
	if cfg.Buffered {
		own := toBuffered{w}
		w.way = own
		if err := own.restore(cfg.States); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Enter comes before every record. It returns what ended the writer, and repairs what has failed since the last call.
func (w *Writer) Enter(ctx context.Context) error {
	if w.latched != nil {
		return w.latched
	}
	if w.attention.Load() {
		return w.way.mend(ctx)
	}
	return nil
}

// acked accounts for a batch that the service has taken.
func (w *Writer) acked(e entry) {
	w.Written(&e.target.Place, e.batch.count, e.batch.bytes)
	most := mostSpare
	if w.cfg.KeepOriginals {
		most = mostSpareOriginals
	}
	if len(w.spare) < most {
		e.batch.from.reset()
		*e.batch = batch{from: e.batch.from}
		w.spare = append(w.spare, e.batch)
	}
}

// Batches are kept for the memory that they note positions in, 8 bytes for a row. Fewer are where they hold originals, which may be
// longer than rows.
const (
	mostSpare          = 128
	mostSpareOriginals = 16
)

// Target returns what the writer knows of a destination, good until the next Flush. It makes no calls; a destination
// costs nothing remote before its first row. A name that cannot be a table's is an error.
func (w *Writer) Target(dst table.Destination) (*Target, error) {
	t := w.targets[dst]
	if t == nil {
		p, err := w.Place(dst)
		if err != nil {
			return nil, err
		}
		t = &Target{Place: p, guess: 1, lastAccess: w.now()}
		if w.cfg.Buffered {
			t.longer = ownNameBytes
		}
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
	data := t.pending.rows.data
	if cap(data)-len(data) < t.need {
		data = w.grow(t.pending, t.need)
	}
	t.start = len(data)
	return beginRow(data, t.guess)
}

// grow moves the rows of a batch to a larger buffer. Left to append, it would not be one that is used again.
func (w *Writer) grow(b *batch, need int) []byte {
	old := b.rows
	b.rows = w.buffers.get(w.buffers.larger(old, need))
	b.rows.data = append(b.rows.data, old.data...)
	old.free()
	return b.rows.data
}

// newBatch makes a batch about as large as the target's last one was.
func (w *Writer) newBatch(t *Target) *batch {
	b := &batch{}
	if n := len(w.spare); n > 0 {
		b, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	b.rows = w.buffers.get(t.usualBytes + t.usualBytes/8)
	return b
}

// Fill adds the row that was appended to what Begin returned if there is nothing more to it: nothing has failed, and the row has
// room in a batch that has rows. Otherwise it does nothing, and false leaves the row to Commit.
func (w *Writer) Fill(t *Target, buf []byte, at *stream.Position) bool {
	b, body := t.pending, t.start+1+t.guess
	n := len(buf) - body
	switch {
	case !t.steady || b.count == 0 || w.cfg.KeepOriginals || w.attention.Load():
		return false
	case n>>(7*(t.guess-1)) == 0 || n>>(7*t.guess) != 0: // the length is not as long as was guessed, or there is no row
		return false
	case buf[t.start] != rowTag || b.bytes+n > w.cfg.Options.MaxAppendBytes || t.overhead+len(buf) > maxRequestBytes:
		return false
	}
	if held := w.pending + 1 + t.guess + n; held > w.cfg.Options.MaxBufferedBytes/2 || held+int(w.load.Load()) > w.cfg.Options.MaxBufferedBytes {
		return false
	}
	if t.guess == 1 {
		buf[t.start+1] = byte(n)
	} else {
		protowire.AppendVarint(buf[:t.start+1], uint64(n))
	}
	b.rows.data = buf
	b.count++
	b.bytes += n
	b.from.add(at)
	w.pending += 1 + t.guess + n
	t.need = n + 8
	t.touched = true
	return true
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
	if err := w.way.ready(ctx, t); err != nil {
		return err
	}
	changed := t.schema.foreign || t.schema.fingerprint != 0 && w.cfg.Rows.Fingerprint(t.Dst) != t.schema.fingerprint
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
	t.need = length + 8
	t.touched = true
}

// describe reads the schema of the target's rows.
func (w *Writer) describe(t *Target) error {
	s, err := readSchema(w.cfg.Rows, t.Dst)
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
		w.cfg.Log.InfoContext(ctx, "row schema changed", "destination", t.Name)
	}
	if full.count == 0 {
		full.rows.free()
	} else if err := w.way.send(ctx, t, full); err != nil {
		return nil, err
	}
	if !changed || foreign {
		return buf, nil
	}
	return buf, w.way.refresh(ctx, t)
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

// limit keeps the lane within its memory: with half of it pending, some of that is sent; with all of it taken, the oldest appends
// are waited for.
func (w *Writer) limit(ctx context.Context) error {
	most := w.cfg.Options.MaxBufferedBytes
	if w.pending > most/2 {
		if err := w.relieve(ctx, max(most/4, most/2-w.cfg.Options.MaxAppendBytes)); err != nil {
			return err
		}
	}
	for int64(w.pending)+w.load.Load() > int64(most) {
		if any, err := w.way.await(ctx); !any || err != nil {
			return err
		}
	}
	return nil
}

// Prepare promises what was flushed since the last Snapshot. Nothing comes of it with default streams.
func (w *Writer) Prepare() []stream.Committable { return w.way.prepare() }

// Snapshot remembers how far each stream is written.
func (w *Writer) Snapshot(checkpoint int64) []stream.State { return w.way.snapshot(checkpoint) }

// Reject hands a record that is wrong by itself to the failure handler. t is nil for one that could not be routed.
func (w *Writer) Reject(ctx context.Context, t *Target, r *stream.FailedRecord) error {
	if t == nil {
		return w.Lane.Reject(ctx, nil, r)
	}
	return w.Lane.Reject(ctx, &t.Place, r)
}

func (w *Writer) tooLong(ctx context.Context, t *Target, row []byte, at *stream.Position, original []byte) error {
	err := fmt.Errorf("encoded row is %d bytes long: expected at most %d, and with its schema a request of at most %d",
		len(row), MaxRowBytes, maxRequestBytes)
	return w.Reject(ctx, t, &stream.FailedRecord{Reason: err.Error(), Err: err, Row: row, Original: original, At: at.Location(), Split: at.Split})
}

// about is what logs say about a failure on the way to a target. What the service says about single rows is not among it: it
// may quote them.
func (w *Writer) about(t *Target, v *verdict) []any {
	about := []any{"destination", t.Name, "code", v.codeName(), "kind", string(v.kind), "cause", v.err}
	if _, own := w.way.(toBuffered); !own {
		return append(about, "stream", streamName(t.Dst))
	}
	if t.own.name != "" {
		about = append(about, "stream", t.own.name)
	}
	return about
}

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
	// The handler is closed last and whatever happens before.
	defer func() { err = errors.Join(err, w.Lane.Close()) }()
	for _, t := range w.order {
		if t.run.columns != nil {
			t.run.columns.Release()
			t.run = run{}
		}
	}
	w.way.close()
	return w.remote.release()
}
