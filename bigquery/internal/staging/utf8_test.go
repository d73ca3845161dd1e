package staging_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestTextIsUTF8: whatever its length, and wherever a byte is wrong.
func TestTextIsUTF8(t *testing.T) {
	s := schemaOf(table.Field{Name: "s", Type: table.String})
	p := mustPlan(t, s)
	for _, e := range []staging.Encoding{staging.AvroFiles, staging.JSONFiles, staging.CSVFiles} {
		f, err := e.NewFile(&strings.Builder{}, p)
		if err != nil {
			t.Fatal(err)
		}
		refuses := func(text string) bool {
			return f.Write(rowtest.Encode(s.Fields, []row.Value{rowtest.Text(text)})) != nil
		}
		for n := range 100 {
			plain := strings.Repeat("x", n)
			if refuses(plain) {
				t.Errorf("%v: %d letters are refused", e.Format(), n)
			}
			for i := range n {
				if !refuses(plain[:i] + "\x80" + plain[i+1:]) {
					t.Errorf("%v: byte %d of %d is wrong, and taken", e.Format(), i, n)
				}
			}
		}
		rapid.Check(t, func(r *rapid.T) {
			text := string(rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 80), rapid.Map(rapid.StringN(0, 40, 80), func(s string) []byte { return []byte(s) })).Draw(r, "text"))
			if refuses(text) == utf8.ValidString(text) {
				r.Fatalf("%v: %q", e.Format(), text)
			}
		})
	}
}
