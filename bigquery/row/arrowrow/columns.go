package arrowrow

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var _ row.Columnar[Row] = (*Serializer)(nil)

// asIs is a batch on its way as it is.
type asIs struct {
	*Batch
	serializer *Serializer
	direct     *Direct // nil: its rows go one by one
}

// Columns answers the batch of rec, where BigQuery takes it as it is (see NewDirect and Direct.Check), and nil where not. The batch is
// looked at once, with its first row.
func (s *Serializer) Columns(_ table.Destination, rec Row) (row.Columns, int) {
	b := rec.Batch
	if b == nil || uint(rec.Index) >= uint(b.rows) {
		return nil, 0 // AppendRow tells
	}
	a := b.asIs.Load()
	if a == nil || a.serializer != s {
		a = &asIs{Batch: b, serializer: s, direct: s.directOf(b)}
		b.asIs.Store(a)
	}
	if a.direct == nil {
		return nil, 0
	}
	return a, rec.Index
}

// directOf is the Direct that takes a batch, nil when there is none.
func (s *Serializer) directOf(b *Batch) *Direct {
	p, err := s.plan(b.record.Schema())
	if err != nil {
		return nil
	}
	p.once.Do(func() {
		if d, err := NewDirect(p.arrow, s.first.schema); err == nil {
			p.direct = d
		}
	})
	if p.direct == nil || p.direct.Check(b) != nil {
		return nil
	}
	return p.direct
}

func (a *asIs) Schema() []byte { return a.direct.Schema() }

func (a *asIs) Append(buf []byte, from, to int) ([]byte, error) {
	return a.direct.AppendBatch(buf, a.Batch, from, to)
}

func (a *asIs) AppendRow(buf []byte, i int) ([]byte, error) {
	return a.serializer.AppendRow(buf, table.Destination{}, Row{a.Batch, i})
}

func (a *asIs) Retain() { a.record.Retain() }

// Unpack makes rows of a batch that was sent as it is.
func (s *Serializer) Unpack(dst table.Destination, schema, batch []byte, each func(row []byte, err error) error) error {
	r, err := ipc.NewReader(io.MultiReader(bytes.NewReader(schema), bytes.NewReader(batch)))
	if err != nil {
		return err
	}
	defer r.Release()
	if !r.Next() {
		return cmp.Or(r.Err(), errors.New("there is no Arrow batch"))
	}
	b, err := NewBatch(r.RecordBatch())
	if err != nil {
		return err
	}
	defer b.Release()
	var buf []byte
	for i := range b.rows {
		made, err := s.AppendRow(buf[:0], dst, Row{b, i})
		buf = made
		if err != nil {
			made = nil
		}
		if err := each(made, err); err != nil {
			return err
		}
	}
	return nil
}
