package projection_test

import (
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// FuzzOf chooses by any paths: what is chosen is the table's, and what is not there is named.
func FuzzOf(f *testing.F) {
	table := &schema.Schema{Fields: []*schema.Field{
		{Name: "a", Type: schema.Int64}, {Name: "s", Type: schema.Struct, Fields: []*schema.Field{
			{Name: "x", Type: schema.String, Mode: schema.Repeated}, {Name: "y", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "z", Type: schema.JSON}}},
		}},
	}}
	for _, paths := range []string{"a", "S.y.Z\ns", "s.x\ns.y\ns.none", "a.b", "", ".", strings.Repeat("s.", 10_000)} {
		f.Add(paths)
	}
	f.Fuzz(func(t *testing.T, text string) {
		paths := strings.Split(text, "\n")
		hostile.Proportional(t, len(text), 128, 1<<20, func() {
			p, unknown := projection.Of(table, paths)
			if p.Schema.Arrow().NumFields() != len(p.Schema.Fields) || len(p.Schema.Fields) > 2 || len(unknown) > len(paths) {
				t.Errorf("%q: %d columns, %d unknown", paths, len(p.Schema.Fields), len(unknown))
			}
			if len(unknown) == len(paths) && len(p.Schema.Fields) > 0 {
				t.Errorf("%q: nothing of it is there, and %d columns are", paths, len(p.Schema.Fields))
			}
		})
	})
}
