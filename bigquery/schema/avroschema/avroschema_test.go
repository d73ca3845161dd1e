package avroschema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestNothingIsLost: schemas with every attribute come back the same, and are Avro to a second library.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 3).Draw(r, "schema")
		text, err := Write(want)
		if err != nil {
			r.Fatal(err)
		}
		if _, err := avro.Parse(text); err != nil {
			r.Fatalf("%v\n%s", err, text)
		}
		got, err := Read(text)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

// TestChangedSinceThen: the Avro schema counts, not what it was made of.
func TestChangedSinceThen(t *testing.T) {
	text, err := Write(&table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64, Collation: ""}, {Name: "j", Type: table.JSON, Description: `"quoted"`}}})
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(text, `"long"`, `"double"`, 1)
	got, err := Read(changed)
	if err != nil {
		t.Fatal(err)
	}
	if got.Fields[0].Type != table.Float64 || got.Fields[1].Type != table.JSON {
		t.Errorf("read as %s", got.JSON())
	}
	for _, broken := range []string{`{"type":"record","name":"R","fields":[],"bigquery.schema":[{"name":"a","type":"BOOL"}]}`, `{"bigquery.schema":1}`, "", "{"} {
		if s, err := Read(broken); err == nil {
			t.Errorf("%s is read as %s", broken, s.JSON())
		}
	}
}

func TestNames(t *testing.T) {
	_, err := Write(&table.Schema{Fields: []table.Field{{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: `1"st`[:1] + " st", Type: table.Int64}}}}})
	if err == nil || !strings.Contains(err.Error(), "C-NAME: field s.1 st: Avro names") {
		t.Errorf("a name that Avro has not: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	text, err := Write(&table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Read(text); err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("%q is read as a schema with %v", text, err)
			}
		}
	})
}
