package fileload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	t.Run("rows are there once, whoever commits and how often", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		a, c := b.stage(dst("t"), "a", 1, 2), b.stage(dst("t"), "b", 3)
		u := b.stage(dst("u"), "a", 4)
		for range 3 {
			b.must(a, c, u)
		}
		b.holds(dst("t"), 1, 2, 3)
		b.holds(dst("u"), 4)
		if ids := b.jobIDs(); len(ids) != 2 {
			t.Errorf("jobs %v, want two", ids)
		}
		if loads, _ := b.meter.of("load_jobs_submitted"); loads != 6 {
			t.Errorf("%d load jobs are counted, want two for each commit", loads)
		}
	})
	t.Run("FL-42 ids are of the run that wrote the files", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.must(b.stage(dst("t"), "a", 1).WithCheckpoint(42))
		ids := b.jobIDs()
		if len(ids) != 1 || !strings.HasPrefix(ids[0], "millrace-bq-load-"+runA+"-c42-") {
			t.Errorf("jobs %v", ids)
		}
	})
	t.Run("FL-25 nothing to commit makes no call", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Connection.KeyFile = "/nowhere" // a client could not be made
		if err := b.commit(); err != nil {
			t.Error(err)
		}
	})
	t.Run("FL-89 checkpoints are committed one after the other", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		c := b.committer()
		defer c.Close()
		one, two := b.stage(dst("t"), "a", 1).WithCheckpoint(1), b.stage(dst("t"), "b", 2).WithCheckpoint(2)
		for i, cs := range [][]loadplan.Committable{{one}, {two}} {
			if err := c.Commit(t.Context(), b.encode(cs)); err != nil {
				t.Fatal(err)
			}
			if ids := b.jobIDs(); len(ids) != i+1 {
				t.Errorf("after checkpoint %d: jobs %v", i+1, ids)
			}
		}
		b.holds(dst("t"), 1, 2)
	})
}

// TestRefused has commits that are refused before anything is touched. They would be again.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	one := b.stage(dst("t"), "a", 1).WithCheckpoint(1)
	otherRun := one
	otherRun.Run = strings.Repeat("f", 32)
	otherRows := one
	otherRows.Rows++
	otherProfile := one
	otherProfile.Profile = "c06007e4"
	pattern := one
	pattern.URI = "gs://staged/s/*"
	custom := one
	custom.Format = loadplan.Custom
	for name, c := range map[string]struct {
		cs    []loadplan.Committable
		limit func(*loadplan.Limits)
		want  error
	}{
		"FL-43 FL-89 two checkpoints":              {cs: []loadplan.Committable{one, b.stage(dst("t"), "b", 2).WithCheckpoint(2)}, want: loadplan.ErrMixedCommit},
		"FL-43 two runs":                           {cs: []loadplan.Committable{one, otherRun}, want: loadplan.ErrMixedCommit},
		"FL-87 one file in two ways":               {cs: []loadplan.Committable{one, otherRows}, want: loadplan.ErrDuplicateStagedFile},
		"FL-88 another temp dataset":               {cs: []loadplan.Committable{otherProfile}, want: loadplan.ErrCommitProfileChanged},
		"FL-54 more jobs than allowed":             {cs: []loadplan.Committable{one, b.stage(dst("u"), "a", 1).WithCheckpoint(1)}, limit: func(l *loadplan.Limits) { l.Loads = 1 }, want: loadplan.ErrPlanTooLarge},
		"FL-83 a pattern for a file":               {cs: []loadplan.Committable{pattern}, want: loadplan.ErrCommittable},
		"a format that only another program knows": {cs: []loadplan.Committable{custom}, want: loadplan.ErrCommittable},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(b.calls())
			saved := b.cfg
			defer func() { b.cfg = saved }()
			if c.limit != nil {
				c.limit(&b.cfg.Options.Limits)
			}
			refuses(t, b.commit(c.cs...), c.want)
			if calls := b.calls()[before:]; len(calls) > 0 {
				t.Errorf("calls %v", calls)
			}
		})
	}
	t.Run("FL-88 another temp dataset, when that is allowed", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.Plan.AllowProfileChange = true
		other := b.stage(dst("t"), "a", 1)
		other.Profile = "c06007e4"
		b.must(other)
		b.holds(dst("t"), 1)
	})
	t.Run("rows of one commit do not pass for those of another", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		second := []loadplan.Committable{b.stage(dst("t"), "c", 3), b.stage(dst("t"), "d", 4)}
		refuses(t, b.commit(second...), loadplan.ErrMixedCommit) // of the same run, and neither of a checkpoint
		b.holds(dst("t"), 1, 2)
		if len(b.objects()) != 2 {
			t.Errorf("left are %v", b.objects())
		}
	})
	t.Run("FL-38 bytes of a later version", func(t *testing.T) {
		err := b.committer().Commit(t.Context(), []stream.Committable{{Key: "k", Data: []byte{9}}})
		refuses(t, err, loadplan.ErrCommittable)
		if !strings.Contains(err.Error(), "9") || !strings.Contains(err.Error(), "1") {
			t.Errorf("%v does not name both versions", err)
		}
	})
}

// refuses requires an error that ends the job.
func refuses(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	if !permanent(err) {
		t.Errorf("%v is tried again", err)
	}
}

// permanent is how an engine reads an error.
func permanent(err error) bool {
	said, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && said.Permanent()
}

func TestCleanUp(t *testing.T) {
	t.Parallel()
	temporary := func(b *bench) (left []string) {
		return slices.DeleteFunc(b.tables("d"), func(name string) bool { return !strings.HasPrefix(name, "millrace_tmp_") })
	}
	t.Run("FL-75 temporary tables and files are gone", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2), b.stage(dst("u"), "a", 3))
		b.holds(dst("t"), 1, 2)
		if tables, objects := temporary(b), b.objects(); len(tables) > 0 || len(objects) > 0 {
			t.Errorf("left are %v and %v", tables, objects)
		}
		if calls := b.calls("tables.delete", "objects.delete"); !slices.Equal(calls, []string{"tables.delete", "tables.delete", "objects.delete", "objects.delete", "objects.delete"}) {
			t.Errorf("calls %v, want tables deleted before files", calls)
		}
	})
	t.Run("FL-75 KeepStagedFiles", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Options.KeepFiles = true
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		if tables, objects := temporary(b), b.objects(); len(tables) > 0 || len(objects) != 2 {
			t.Errorf("left are %v and %v", tables, objects)
		}
	})
	t.Run("FL-75 what cannot be deleted is logged", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.leaves()
		b.arm(answer("tables.delete", localbq.FaultMatch{}, 403, "accessDenied", localbq.FaultAlways),
			answer("objects.delete", localbq.FaultMatch{}, 403, "accessDenied", localbq.FaultAlways))
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
		b.holds(dst("t"), 1, 2)
		if lines := b.log.with("level=WARN", "temporary tables are left behind", "tables=2", "accessDenied"); len(lines) != 1 {
			t.Errorf("%q", b.log.with("WARN"))
		}
		if lines := b.log.with("level=WARN", "staged files are left behind", "files=2"); len(lines) != 1 {
			t.Errorf("%q", b.log.with("WARN"))
		}
	})
}
