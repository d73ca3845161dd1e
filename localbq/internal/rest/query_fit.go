package rest

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// fit gives batches the columns of a table, which they meet by name. Columns that they lack take their default, or NULL; now is
// the time of defaults such as CURRENT_TIMESTAMP(). Types have been compared before.
func fit(batches []arrow.RecordBatch, from, to *schema.Schema, now time.Time) ([]arrow.RecordBatch, error) {
	out := make([]arrow.RecordBatch, len(batches))
	for k, b := range batches {
		columns := make([]arrow.Array, len(to.Fields))
		for i, f := range to.Fields {
			var err error
			if at := from.Index(f.Name); at >= 0 {
				columns[i], err = fitColumn(b.Column(at), f)
			} else {
				columns[i], err = standardColumn(f, int(b.NumRows()), now)
			}
			if err != nil {
				return nil, err
			}
		}
		out[k] = array.NewRecordBatch(arrowOf(to, columns), columns, b.NumRows())
	}
	return out, nil
}

// arrowOf is the schema of columns that the store gives its own types.
func arrowOf(s *schema.Schema, columns []arrow.Array) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: s.Fields[i].Name, Type: c.DataType(), Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// fitColumn checks what a column's mode and parameters ask of its values.
func fitColumn(a arrow.Array, f *schema.Field) (arrow.Array, error) {
	if f.Mode == schema.Required && a.NullN() > 0 {
		return nil, refusal.New(refusal.InvalidQuery, "Required field %s cannot be null", f.Name)
	}
	if f.MaxLength == 0 && f.Precision == 0 {
		if bound := bounded(f.Fields); bound != nil {
			return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement writing query results to members with a length, a precision or mode REQUIRED: %s.%s", f.Name, bound.Name)
		}
		return a, nil
	}
	if f.Mode == schema.Repeated {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement writing query results to arrays of elements with a length or a precision: %s", f.Name)
	}
	b, err := column.New(&schema.Schema{Fields: []*schema.Field{f}}, column.Options{})
	if err != nil {
		return nil, err
	}
	for i := range a.Len() {
		if err := b.Add(column.Record{{Name: f.Name, Value: cell(a, i)}}); err != nil {
			return nil, refusal.New(refusal.InvalidQuery, "%v", err)
		}
	}
	return b.Take().Column(0), nil
}

// bounded is the first member whose values are checked; nil for none.
func bounded(fields []*schema.Field) *schema.Field {
	for _, f := range fields {
		if f.MaxLength != 0 || f.Precision != 0 || f.Mode == schema.Required {
			return f
		}
		if inner := bounded(f.Fields); inner != nil {
			return inner
		}
	}
	return nil
}

// cell is a value of a column with a length or a precision.
func cell(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	if b, ok := a.(*array.Binary); ok {
		return b.Value(i)
	}
	return a.ValueStr(i)
}

// standardColumn is a column of a table that a result does not have.
func standardColumn(f *schema.Field, rows int, now time.Time) (arrow.Array, error) {
	b, err := column.New(&schema.Schema{Fields: []*schema.Field{f}}, column.Options{Now: now})
	if err != nil {
		return nil, err
	}
	for range rows {
		if err := b.Add(nil); err != nil {
			return nil, refusal.New(refusal.InvalidQuery, "%v", err)
		}
	}
	return b.Take().Column(0), nil
}
