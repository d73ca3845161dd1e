package rest

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// rowIDs is a table of a statement with the ids of its rows behind its other columns.
func rowIDs(t query.Table, snapshot *store.Snapshot) *query.Table {
	t.Pseudo = append(slices.Clone(t.Pseudo), &schema.Field{Name: query.RowID, Type: schema.Int64})
	bare := t.Batches
	t.Batches = func() ([]arrow.RecordBatch, error) {
		batches, err := bare()
		if err != nil {
			return nil, err
		}
		out := make([]arrow.RecordBatch, len(batches))
		for i, p := range snapshot.Parts() {
			ids := array.NewInt64Builder(memory.DefaultAllocator)
			for _, r := range p.Ranges() {
				for id := r.First; id < r.First+r.Count; id++ {
					ids.Append(id)
				}
			}
			b := batches[i]
			fields := append(slices.Clone(b.Schema().Fields()), arrow.Field{Name: query.RowID, Type: arrow.PrimitiveTypes.Int64})
			columns := append(slices.Clone(b.Columns()), arrow.Array(ids.NewArray()))
			out[i] = array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
		}
		return out, nil
	}
	return &t
}

// mutate is UPDATE and DELETE: rows go by their ids, and new ones come in the same commit.
func (s *Server) mutate(ref store.TableRef, r *query.Result, c *change, out *jobResult) error {
	t, err := s.writable(ref)
	if err != nil {
		return err
	}
	ids, err := pickedRows(r.Batches)
	if err != nil || len(ids) == 0 {
		return err
	}
	w := store.Rows{Info: t.Info(), Remove: ids}
	if c.Kind == "UPDATE" {
		rest := &schema.Schema{Fields: r.Schema.Fields[1:]}
		if w.Batches, err = fit(withoutIDs(r.Batches), rest, w.Info.Schema, s.Clock.Now()); err != nil {
			return err
		}
		c.updated = r.Rows
	} else {
		c.deleted = r.Rows
	}
	written, err := t.Write(w)
	out.version = written.After
	return err
}

// pickedRows are the rows that a statement picked, each of which it may pick once.
func pickedRows(batches []arrow.RecordBatch) ([]store.Range, error) {
	var ids []int64
	for _, b := range batches {
		ids = append(ids, b.Column(0).(*array.Int64).Int64Values()...)
	}
	slices.Sort(ids)
	var out []store.Range
	for i, id := range ids {
		switch n := len(out); {
		case i > 0 && ids[i-1] == id:
			return nil, refusal.New(refusal.InvalidQuery, "UPDATE/MERGE must match at most one source row for each target row")
		case n > 0 && out[n-1].First+out[n-1].Count == id:
			out[n-1].Count++
		default:
			out = append(out, store.Range{First: id, Count: 1})
		}
	}
	return out, nil
}

func withoutIDs(batches []arrow.RecordBatch) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(batches))
	for i, b := range batches {
		out[i] = array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields()[1:], nil), b.Columns()[1:], b.NumRows())
	}
	return out
}
