package storagewrite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// An encoded batch is rows on their way to a writer in another process:
//
//	'R' 1                kind and version
//	uvarint, bytes       ProtoSchema of the rows, so that the two processes need not agree on one
//	uvarint              number of rows
//	bytes                the rows, framed as ProtoRows
const (
	encodedKind    = 'R'
	encodedVersion = 1
)

// ErrRowTooLong is found in the error of a row that no request can hold.
var ErrRowTooLong = fmt.Errorf("encoded row is longer than %d bytes", MaxRowBytes)

var errEncoded = errors.New("encoded batch is damaged")

// unpack checks an encoded batch and takes it apart. The parts share its memory.
func unpack(data []byte) (s *schema, count int, rows []byte, err error) {
	if len(data) < 2 || data[0] != encodedKind {
		return nil, 0, nil, fmt.Errorf("%w: it does not begin with its kind", errEncoded)
	}
	if data[1] != encodedVersion {
		return nil, 0, nil, fmt.Errorf("encoded batch has version %d: expected %d; a newer millrace may read it", data[1], encodedVersion)
	}
	rest := data[2:]
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return nil, 0, nil, fmt.Errorf("%w: its schema is cut off", errEncoded)
	}
	s = &schema{encoded: rest[size : size+int(n) : size+int(n)]}
	rest = rest[size+int(n):]
	want, size := binary.Uvarint(rest)
	if size <= 0 {
		return nil, 0, nil, fmt.Errorf("%w: its row count is cut off", errEncoded)
	}
	rows = rest[size:]
	for left := rows; len(left) > 0; count++ {
		var row []byte
		if row, left, err = nextRow(left); err != nil {
			return nil, 0, nil, fmt.Errorf("%w: row %d: %w", errEncoded, count, err)
		}
		if len(row) > MaxRowBytes {
			return nil, 0, nil, fmt.Errorf("%w: row %d: %w", errEncoded, count, ErrRowTooLong)
		}
	}
	if uint64(count) != want {
		return nil, 0, nil, fmt.Errorf("%w: it has %d rows and says %d", errEncoded, count, want)
	}
	return s, count, rows, nil
}

// WriteEncoded takes what an Encoder made, in this process or another. A batch about as large as a request travels as it is,
// without a copy; rows of smaller ones are collected.
func (w *Writer) WriteEncoded(ctx context.Context, b stream.EncodedBatch) error {
	if err := w.Enter(ctx); err != nil {
		return err
	}
	dst, err := table.ParseDestination(b.Destination)
	if err != nil {
		return fmt.Errorf("encoded batch: %w", err)
	}
	s, count, rows, err := unpack(b.Data)
	if err != nil {
		return fmt.Errorf("encoded batch for %s: %w", dst, err)
	}
	t, err := w.Target(dst)
	if err != nil {
		return err
	}
	if err := w.adopt(ctx, t, s); err != nil {
		return err
	}
	if whole := (&batch{count: count, bytes: rowBytes(rows, count), schema: t.schema}); w.fills(t, whole.bytes, len(rows)) {
		whole.rows = borrowed(rows)
		return w.pass(ctx, t, whole)
	}
	for left := rows; len(left) > 0; {
		var row []byte
		row, left, _ = nextRow(left) // checked by unpack
		if err := w.add(ctx, t, row); err != nil {
			return err
		}
	}
	return nil
}

// rowBytes is the sum of the lengths of framed rows, which are known to be sound.
func rowBytes(framed []byte, count int) (sum int) {
	for range count {
		var row []byte
		row, framed, _ = nextRow(framed)
		sum += len(row)
	}
	return sum
}

// fills reports whether rows are neither more than a request holds nor so few that they should wait for others.
func (w *Writer) fills(t *Target, bytes, framed int) bool {
	most := w.cfg.Options.MaxAppendBytes
	return bytes >= most/4 && bytes <= most && t.overhead+framed <= maxRequestBytes
}

// pass sends a batch that was not pending.
func (w *Writer) pass(ctx context.Context, t *Target, b *batch) error {
	t.touched = true
	w.pending += b.size() // send takes it off again
	if err := w.way.send(ctx, t, b); err != nil {
		return err
	}
	return w.limit(ctx)
}

// adopt makes the schema of an encoded batch the target's, and opens the target.
func (w *Writer) adopt(ctx context.Context, t *Target, s *schema) error {
	if !s.same(t.schema) {
		if t.pending != nil && t.pending.count > 0 {
			b := t.pending
			t.pending = nil
			t.sized(b)
			if err := w.way.send(ctx, t, b); err != nil {
				return err
			}
		}
		t.setSchema(&schema{encoded: slices.Clone(s.encoded), foreign: true})
	}
	return w.way.ready(ctx, t)
}

// add adds one row that is encoded already.
func (w *Writer) add(ctx context.Context, t *Target, row []byte) error {
	if t.overhead+frameBytes(len(row))+len(row) > maxRequestBytes {
		return w.tooLong(ctx, t, row, &stream.Position{}, nil)
	}
	buf := append(w.Begin(t), row...)
	if !t.pending.room(len(row), w.cfg.Options.MaxAppendBytes, t.overhead) {
		var err error
		if buf, err = w.roll(ctx, t, row, false); err != nil {
			return err
		}
	}
	w.seal(t, buf, &stream.Position{}, nil)
	return w.limit(ctx)
}
