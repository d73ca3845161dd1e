package fileload_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// TestFilesKnowTheirColumns: the serializer of the process that commits has forgotten what that of the process that staged had learned.
func TestFilesKnowTheirColumns(t *testing.T) {
	t.Parallel()
	noted, wide := columns(field("note", table.String)), columns(required("note", table.String))
	for _, d := range []loadplan.Disposition{loadplan.Append, loadplan.Truncate, loadplan.Empty} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, localbq.Config{})
			b.cfg.Update = table.UnionOptions{AllowNewFields: true}
			b.cfg.Options.Plan.Disposition = d
			b.cfg.Options.Limits.FilesPerLoad = 1
			if d != loadplan.Empty {
				b.must(b.stage(dst("t"), "before", 0)) // the table has the id only
			}
			narrow, told, silent := b.stage(dst("t"), "narrow", 1), b.stageAs(dst("t"), "told", noted, 2), b.stageAs(dst("t"), "silent", noted, 3)
			told.Schema = string(wide.CompactJSON())
			narrow.Schema = string(columns().CompactJSON())
			b.must(narrow, told, silent)
			if got := fieldsOf(b.table(dst("t")).Schema); !slices.Equal(got, []string{"id", "note"}) {
				t.Errorf("the table has the columns %v", got)
			}
		})
	}
	t.Run("columns that cannot go together end the job for good", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		one, two := b.stageAs(dst("t"), "one", columns(field("x", table.Int64)), 1), b.stageAs(dst("t"), "two", columns(field("x", table.String)), 2)
		one.Schema, two.Schema = string(columns(field("x", table.Int64)).CompactJSON()), string(columns(field("x", table.String)).CompactJSON())
		err := b.commit(one, two)
		if err == nil || !strings.Contains(err.Error(), "p.d.t do not go together") || !permanent(err) {
			t.Errorf("got %v", err)
		}
		if calls := b.calls("jobs.insert", "tables.insert"); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
	})
}
