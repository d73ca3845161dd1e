package rowtest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// TestEncode holds what is drawn and encoded to both ways of reading a row.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schemas(Types(), 3).Draw(t, "schema")
		want := Rows(s).Draw(t, "row")
		data := Encode(s.Fields, want)
		d, err := row.NewDecoder(s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := Diff(s, want, r.Values); diff != "" {
			t.Fatal(diff)
		}
		m, err := row.Descriptor(s)
		if err != nil {
			t.Fatal(err)
		}
		md, err := standalone(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(md, s.Fields, data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := Diff(s, want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
