package arrowschema

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestNothingIsLost: schemas with every attribute come back the same, by way of a stream of bytes.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 3).Draw(r, "schema")
		a, err := Write(want)
		if err != nil {
			r.Fatal(err)
		}
		var out bytes.Buffer
		if err := ipc.NewWriter(&out, ipc.WithSchema(a)).Close(); err != nil {
			r.Fatal(err)
		}
		in, err := ipc.NewReader(&out)
		if err != nil {
			r.Fatal(err)
		}
		defer in.Release()
		got, err := Read(in.Schema())
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

// TestChangedSinceThen: the Arrow schema counts, not what it was made of.
func TestChangedSinceThen(t *testing.T) {
	a, err := Write(&table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64, Description: "x"}, {Name: "b", Type: table.JSON, Mode: table.Repeated}}})
	if err != nil {
		t.Fatal(err)
	}
	m := a.Metadata()
	got, err := Read(arrow.NewSchema(append(a.Fields(), arrow.Field{Name: "new", Type: arrow.BinaryTypes.String}), &m))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64}, {Name: "b", Type: table.JSON, Mode: table.Repeated},
		{Name: "new", Type: table.String, Mode: table.Required}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Write(&table.Schema{}); err == nil {
		t.Error("a schema without columns is written")
	}
}
