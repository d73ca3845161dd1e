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

// mutate is UPDATE, DELETE and MERGE: rows go by their ids, and new ones come in the same commit.
func (s *Server) mutate(j *job, ref store.TableRef, r *query.Result, c *change, out *jobResult) error {
	t, err := s.changeable(ref)
	if err != nil {
		return err
	}
	info, err := c.same(t)
	if err != nil {
		return err
	}
	ids, rows := c.picked(r)
	gone, err := pickedRows(ids)
	if err != nil || len(gone) == 0 && len(rows) == 0 {
		return err
	}
	w := store.Rows{Info: info, Since: info, Remove: gone}
	if len(rows) > 0 {
		columns := &schema.Schema{Fields: r.Schema.Fields[c.leading():]}
		if w.Batches, err = fit(without(rows, c.leading()), columns, w.Info.Schema, s.Clock.Now()); err != nil {
			return err
		}
	}
	_, err = s.commit(j, t, w, out)
	return err
}

// leading is how many columns of the rows are no columns of the table.
func (c *change) leading() int {
	if c.Kind == "MERGE" {
		return 2
	}
	return 1
}

// picked are the ids of the rows that go and the rows that come, which it counts.
func (c *change) picked(r *query.Result) (ids []int64, rows []arrow.RecordBatch) {
	for _, b := range r.Batches {
		id := b.Column(0).(*array.Int64)
		if c.Kind != "MERGE" {
			ids = append(ids, id.Int64Values()...)
			continue
		}
		first := b.NumRows() // of those that make a row; the actions are in ascending order
		for i, action := range b.Column(1).(*array.Int64).Int64Values() {
			switch action {
			case query.Deletes:
				c.deleted++
			case query.Updates:
				c.updated++
			case query.Inserts:
				c.inserted++
			}
			if action != query.Inserts {
				ids = append(ids, id.Value(i))
			}
			if action != query.Deletes {
				first = min(first, int64(i))
			}
		}
		if first < b.NumRows() {
			rows = append(rows, b.NewSlice(first, b.NumRows()))
		}
	}
	switch c.Kind {
	case "UPDATE":
		c.updated, rows = r.Rows, r.Batches
	case "DELETE":
		c.deleted = r.Rows
	}
	return ids, rows
}

// pickedRows are the rows that a statement picked, each of which it may pick once.
func pickedRows(ids []int64) ([]store.Range, error) {
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

// without leaves the first columns of batches out.
func without(batches []arrow.RecordBatch, columns int) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(batches))
	for i, b := range batches {
		out[i] = array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields()[columns:], nil), b.Columns()[columns:], b.NumRows())
	}
	return out
}
