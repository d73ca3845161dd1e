package fileload_test

import (
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// TestBatchWithoutRows has what a lane promises of a batch without rows: a file that is not there.
func TestBatchWithoutRows(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T, d loadplan.Disposition) (*bench, loadplan.Committable) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Plan.Disposition = d
		b.cfg.Options.LoadEmpty = true
		b.cfg.Fixed = dst("t")
		return b, loadplan.Committable{Run: runA, Destination: dst("t"), Profile: b.cfg.Options.Plan.Profile()}
	}
	t.Run("FL-80 WRITE_TRUNCATE truncates", func(t *testing.T) {
		b, empty := setup(t, loadplan.Append)
		b.must(b.stage(dst("t"), "a", 1, 2).WithCheckpoint(1))
		b.cfg.Options.Plan.Disposition = loadplan.Truncate
		empty.Profile = b.cfg.Options.Plan.Profile()
		for range 2 {
			b.must(empty)
		}
		b.holds(dst("t"))
		if ids := b.jobIDs(); len(ids) != 2 {
			t.Errorf("jobs %v", ids)
		}
		if left := b.objects(); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
	t.Run("FL-80 the table is made", func(t *testing.T) {
		b, empty := setup(t, loadplan.Append)
		b.rows.of[dst("t")] = columns(field("more", table.String))
		b.must(empty)
		b.holds(dst("t"))
		if got := fieldsOf(b.table(dst("t")).Schema); !slices.Equal(got, []string{"id", "more"}) {
			t.Errorf("it has %v", got)
		}
	})
	t.Run("FL-80 rows of other lanes count", func(t *testing.T) {
		b, empty := setup(t, loadplan.Truncate)
		b.must(empty, b.stage(dst("t"), "a", 1))
		b.holds(dst("t"), 1)
		if loads := b.job(b.jobIDs()[0]).Configuration.Load.SourceUris; len(loads) != 1 {
			t.Errorf("loaded are %v", loads)
		}
	})
	t.Run("two lanes of two attempts promise the same", func(t *testing.T) {
		b, empty := setup(t, loadplan.Append)
		b.must(empty, empty)
		b.holds(dst("t"))
	})
}
