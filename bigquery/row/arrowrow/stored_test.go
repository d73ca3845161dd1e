package arrowrow_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/arrowrow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
)

// TestBatchesStored: the rows of batches of any schema, laid out in any way, are stored bit for bit.
func TestBatchesStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		arrowrow.Plain(schema.Fields)
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		for _, values := range want {
			arrowrow.Tame(schema.Fields, values)
		}
		a := arrowrow.ArrowSchema(arrowrow.DrawnLayout(r), schema)
		record := arrowrow.BuildBatch(t, a, schema, want)
		defer record.Release()
		batch, err := arrowrow.NewBatch(record)
		if err != nil {
			r.Fatal(err)
		}
		defer batch.Release()
		o := arrowrow.Options{Schema: schema}
		if rapid.Bool().Draw(r, "derive") {
			o = arrowrow.Options{DeriveRequired: true}
		}
		s, err := arrowrow.New(a, o)
		if err != nil {
			r.Fatal(err)
		}
		var records []arrowrow.Row
		for i := range batch.Len() {
			records = append(records, arrowrow.Row{Batch: batch, Index: i})
		}
		if _, err := stored.Check(t.Context(), l, row.Serializer[arrowrow.Row](s), want, records...); err != nil {
			r.Fatalf("%v: %v", a, err)
		}
	})
}
