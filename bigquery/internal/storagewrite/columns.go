package storagewrite

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// Rows of Arrow batches travel as they are: a run of consecutive rows of one batch becomes one request, or several where it is long.
// A run that is short becomes row messages, which share a request with others. So do the rows of a request of which the service
// refuses some, once those are handed to the failure handler: that is the way that every row can go.

// shortRun is the part of a request that a run has to fill to be sent as it is: a request of its own costs more than making
// the rows of less.
const shortRun = 8

// run is consecutive rows of an Arrow batch that wait to be sent.
type run struct {
	columns  row.Columns // nil when there is none
	from, to int
	most     int // rows, of a request
	charged  int // of the writer's pending bytes
	origins  origins
}

// The first rows of a target become row messages, to see how long they are: so many, and taken to be so long until then.
const (
	firstRows     = 64
	firstRowBytes = 512
)

// Extend takes row i of an Arrow batch for the target. The way of such a record is Enter, Target and Extend.
func (w *Writer) Extend(ctx context.Context, t *Target, c row.Columns, i int, at *stream.Position, original []byte) error {
	r := &t.run
	if r.columns != nil && (r.columns != c || i != r.to || r.to-r.from >= r.most) {
		if err := w.endRun(ctx, t); err != nil {
			return err
		}
	}
	if r.columns == nil {
		c.Retain()
		*r = run{columns: c, from: i, to: i, most: firstRows, origins: r.origins}
		if t.rowBytes > 0 {
			r.most = max(1, w.cfg.Options.MaxAppendBytes/t.rowBytes)
		}
	}
	r.to++
	r.origins.add(at)
	if w.cfg.KeepOriginals {
		r.origins.keep(original)
	}
	charge := cmp.Or(t.rowBytes, firstRowBytes)
	r.charged += charge
	w.pending += charge
	t.touched = true
	return w.limit(ctx)
}

// endRun sends the target's run, or makes rows of it. An error leaves rows in nobody's hands, so it ends the writer.
func (w *Writer) endRun(ctx context.Context, t *Target) error {
	r := t.run
	if r.columns == nil {
		return nil
	}
	defer r.columns.Release()
	t.run = run{}
	w.pending -= r.charged
	err := w.deliver(ctx, t, &r, r.from, r.to)
	if err != nil {
		return w.latch(err)
	}
	if t.run.columns == nil {
		r.origins.reset()
		t.run.origins = r.origins
	}
	return nil
}

// deliver sends the rows from to to of a run's batch, in halves where they are too long for one request.
func (w *Writer) deliver(ctx context.Context, t *Target, r *run, from, to int) error {
	if t.rowBytes == 0 || (to-from)*t.rowBytes < w.cfg.Options.MaxAppendBytes/shortRun {
		return w.convert(ctx, t, r, from, to)
	}
	b, err := w.pack(t, r, from, to)
	if err != nil {
		return err
	}
	overhead := header{stream: streamName(t.Dst), schema: b.schema, traceID: traceID()}.maxBytes()
	if overhead+b.size() > maxRequestBytes {
		b.rows.free()
		if to-from == 1 {
			return w.convert(ctx, t, r, from, to)
		}
		middle := from + (to-from)/2
		if err := w.deliver(ctx, t, r, from, middle); err != nil {
			return err
		}
		return w.deliver(ctx, t, r, middle, to)
	}
	if t.schema == nil { // of the rows that it may become
		if err := w.describe(t); err != nil {
			return err
		}
	}
	if err := w.way.ready(ctx, t); err != nil {
		return err
	}
	t.rowBytes = max(1, b.bytes/b.count)
	w.pending += b.size()
	return w.way.send(ctx, t, b)
}

// pack makes a batch of rows of a run.
func (w *Writer) pack(t *Target, r *run, from, to int) (*batch, error) {
	size := (to - from) * t.rowBytes
	guess := protowire.SizeVarint(uint64(size))
	rows := w.buffers.get(size + size/8 + 4<<10)
	data, err := r.columns.Append(beginRow(rows.data, guess), from, to)
	if err != nil {
		rows.free()
		return nil, fmt.Errorf("rows of %s: %w", t.Name, err)
	}
	body, err := openRow(data, 0, guess)
	if err != nil {
		rows.free()
		return nil, fmt.Errorf("rows of %s: %w", t.Name, err)
	}
	b := &batch{rows: rows, count: to - from, bytes: len(body), schema: t.arrowSchema(r.columns.Schema())}
	rows.data, _ = endRow(data, 0, guess)
	for i := from; i < to; i++ {
		at := r.origins.at(i - r.from)
		b.from.add(&at)
		if w.cfg.KeepOriginals {
			b.from.keep(r.origins.original(i - r.from))
		}
	}
	return b, nil
}

// arrowSchema is the schema that a target's batches are sent with, the same one for as long as they have it.
func (t *Target) arrowSchema(serialized []byte) *schema {
	s := &schema{encoded: encodeSchema(serialized), arrow: true}
	if !s.same(t.columns) {
		t.columns = s
	}
	return t.columns
}

// convert makes rows of a run.
func (w *Writer) convert(ctx context.Context, t *Target, r *run, from, to int) error {
	bytes := 0
	for i := from; i < to; i++ {
		at, original := r.origins.at(i-r.from), r.origins.original(i-r.from)
		start := w.Begin(t)
		buf, err := r.columns.AppendRow(start, i)
		if err == nil {
			bytes += len(buf) - len(start)
			err = w.Commit(ctx, t, buf, &at, original)
		} else {
			err = w.Reject(ctx, t, &stream.FailedRecord{Reason: err.Error(), Err: err, Original: original, At: at.Location(), Split: at.Split})
		}
		if err != nil {
			return err
		}
	}
	t.rowBytes = max(1, bytes/(to-from))
	return nil
}

// routeColumns is route for a batch of Arrow: what it has left are rows.
func (w *Writer) routeColumns(ctx context.Context, t *Target, b *batch, v *verdict, bad map[int]bool) (*batch, int, error) {
	left := &batch{rows: w.buffers.get(b.size()), schema: t.schema}
	i, lost := 0, 0
	data, _, err := nextRow(b.rows.data)
	if err != nil {
		return nil, 0, err
	}
	serialized, err := decodeSchema(b.schema.encoded)
	if err != nil {
		return nil, 0, err
	}
	err = w.cfg.Columns.Unpack(t.Dst, serialized, data, func(row []byte, err error) error {
		at, original := b.position(i), b.from.original(i)
		refused := bad[i]
		i++
		f := &stream.FailedRecord{Original: original, At: at.Location(), Split: at.Split}
		switch {
		case refused:
			f.Reason, f.Row = v.reason(i-1), row
			f.Err = &refusal{f.Reason, v.err}
		case err != nil:
			f.Reason, f.Err = err.Error(), err
		default:
			left.push(row)
			left.from.add(&at)
			if w.cfg.KeepOriginals {
				left.from.keep(original)
			}
			return nil
		}
		lost++
		return w.Reject(ctx, t, f)
	})
	if err == nil && i != b.count {
		err = fmt.Errorf("rows of %s: an Arrow batch of %d rows was taken apart into %d", t.Name, b.count, i)
	}
	if err != nil {
		return nil, 0, err
	}
	b.rows.free()
	if left.count == 0 {
		left.rows.free()
		return nil, lost, nil
	}
	return left, lost, nil
}
