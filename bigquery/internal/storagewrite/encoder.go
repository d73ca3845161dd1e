package storagewrite

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// encodedBytes is how large encoded batches grow: between 256 KiB, below which moving them costs more than encoding, and
// 1 MiB, above which host engines choke (spec/beam.md, point 7).
const encodedBytes = 512 << 10

// Encoder collects rows by destination into encoded batches. It belongs to one goroutine.
//
// The way of a record is Packer, then Begin and Commit around its encoding, or Skip or Reject instead of Commit.
type Encoder struct {
	*failures
	rows    row.Schemas
	packers map[table.Destination]*Packer
	order   []*Packer // as first seen
}

// NewEncoder makes an encoder. Of cfg it uses what is about rows and failures.
func NewEncoder(ctx context.Context, cfg Config) (*Encoder, error) {
	f, err := newFailures(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	return &Encoder{failures: f, rows: cfg.Rows, packers: map[table.Destination]*Packer{}}, nil
}

// Packer returns the collection of a destination's rows, good until the next Flush. A name that cannot be a table's is
// an error.
func (e *Encoder) Packer(dst table.Destination) (*Packer, error) {
	p := e.packers[dst]
	if p == nil {
		at, err := e.Lane.Place(dst)
		if err != nil {
			return nil, err
		}
		p = &Packer{Place: at, rows: e.rows, guess: 1}
		e.packers[dst] = p
		e.order = append(e.order, p)
	}
	return p, nil
}

// Reject hands a record that is wrong by itself to the failure handler. p is nil for one that could not be routed.
func (e *Encoder) Reject(ctx context.Context, p *Packer, r *stream.FailedRecord) error {
	if p == nil {
		return e.Lane.Reject(ctx, nil, r)
	}
	return e.Lane.Reject(ctx, &p.Place, r)
}

// Flush emits what is left and forgets all destinations.
func (e *Encoder) Flush(ctx context.Context, emit func(stream.EncodedBatch) error) error {
	for _, p := range e.order {
		if err := p.flush(emit); err != nil {
			return err
		}
	}
	clear(e.packers)
	e.order = nil
	return e.Lane.Flush(ctx)
}

// Close frees everything without flushing.
func (e *Encoder) Close() error { return e.Lane.Close() }

// Packer collects the rows of one destination.
type Packer struct {
	outcome.Place
	rows   row.Schemas
	schema *schema
	buf    []byte
	count  int
	start  int
	guess  int
}

// Begin returns where to append the next row. An encoding that fails is simply left there.
func (p *Packer) Begin() []byte {
	p.start = len(p.buf)
	return beginRow(p.buf, p.guess)
}

// Commit adds the row that was appended to what Begin returned. It emits the batch when it is full, and before the row
// is added when a schema change separates the two. The error ErrRowTooLong is the record's own.
func (p *Packer) Commit(buf []byte, emit func(stream.EncodedBatch) error) error {
	row, err := openRow(buf, p.start, p.guess)
	if err != nil {
		return err
	}
	if len(row) > MaxRowBytes {
		return fmt.Errorf("%w: it has %d", ErrRowTooLong, len(row))
	}
	if p.schema == nil || p.schema.fingerprint != 0 && p.rows.Fingerprint(p.Dst) != p.schema.fingerprint {
		s, err := readSchema(p.rows, p.Dst)
		if err != nil {
			return err
		}
		if p.count > 0 {
			row = slices.Clone(row)
			if err := p.flush(emit); err != nil {
				return err
			}
			buf = append(p.Begin(), row...)
		}
		p.schema = s
	}
	p.buf, p.guess = endRow(buf, p.start, p.guess)
	p.count++
	if len(p.buf) >= encodedBytes {
		return p.flush(emit)
	}
	return nil
}

// flush emits the rows collected, if there are any.
func (p *Packer) flush(emit func(stream.EncodedBatch) error) error {
	if p.count == 0 {
		return nil
	}
	b := make([]byte, 0, 2+2*binary.MaxVarintLen64+len(p.schema.encoded)+len(p.buf))
	b = append(b, encodedKind, encodedVersion)
	b = binary.AppendUvarint(b, uint64(len(p.schema.encoded)))
	b = append(b, p.schema.encoded...)
	b = binary.AppendUvarint(b, uint64(p.count))
	b = append(b, p.buf...)
	p.buf, p.count = p.buf[:0], 0
	return emit(stream.EncodedBatch{Destination: p.Name, Data: b})
}
