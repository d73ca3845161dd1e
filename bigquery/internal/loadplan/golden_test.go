package loadplan_test

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestGoldenPlans: a plan that comes out otherwise gives jobs other ids, and what was under way when a program was replaced is loaded
// twice.
func TestGoldenPlans(t *testing.T) {
	const a, q = loadplan.Avro, loadplan.Parquet
	few := func(formats ...loadplan.Format) (cs []loadplan.Committable) {
		for i, f := range formats {
			cs = append(cs, stagedIn(f, fmt.Sprintf("%d%s", i, map[loadplan.Format]string{a: ".avro", q: ".parquet"}[f])))
		}
		return cs
	}
	golden(t, "direct", loadplan.Config{}, service, few(a, a))
	golden(t, "direct_at_a_checkpoint", loadplan.Config{}, service, stamp(0, few(a, a)))
	golden(t, "overflow", loadplan.Config{}, limits(2, 1200), few(a, a, a))
	golden(t, "overflow_elsewhere", loadplan.Config{TempProject: "tp", TempDataset: "scratch", JobProject: "billed"}, limits(2, 1200), stamp(7, few(a, a, a)))
	golden(t, "levels", loadplan.Config{Disposition: loadplan.TruncateData}, limits(1, 3), files(10))
	for d := loadplan.Append; d <= loadplan.Empty; d++ {
		name := strings.ToLower(strings.TrimPrefix(d.String(), "WRITE_"))
		golden(t, "mixed_"+name, loadplan.Config{Disposition: d}, service, few(a, q))
		golden(t, "mixed_overflow_"+name, loadplan.Config{Disposition: d}, limits(1, 1200), few(a, q, q))
	}
	t.Run("several destinations", func(t *testing.T) {
		cs := stamp(7, files(7))
		for i, table := range []string{"t", "ü", "t$20260101", "T", "t", "t-1", "t"} {
			cs[i].Destination.Table = table
		}
		cs[3].Destination.Project = "example.com:p"
		golden(t, "destinations", loadplan.Config{}, limits(2, 1200), cs)
	})
	golden(t, "1201_leaves", loadplan.Config{}, limits(1, 1200), stamp(7, files(1201)))
	lim := limits(1, 120)
	lim.LoadWave = 5_000
	goldenOfLeaves(t, "14400_leaves", lim, 14_400)
	if *manyFiles >= 10_000_000 {
		goldenOfLeaves(t, "1440000_leaves", limits(1, 1200), 1_440_000)
	}
}

// goldenOfLeaves is the plan of as many load jobs as two levels of copies can join.
func goldenOfLeaves(t *testing.T, name string, lim loadplan.Limits, leaves int) {
	t.Helper()
	lim.Loads = leaves
	goldenOf(t, name, loadplan.Config{}, lim, func(yield func(loadplan.Committable) bool) {
		c := staged("")
		for i := range lim.Loads {
			c.URI = "gs://b/x/" + strconv.Itoa(10_000_000+i)
			if !yield(c) {
				return
			}
		}
	})
}

// golden holds the plan of cs to a file.
func golden(t *testing.T, name string, cfg loadplan.Config, lim loadplan.Limits, cs []loadplan.Committable) {
	t.Helper()
	goldenOf(t, name, cfg, lim, slices.Values(under(cfg, cs)))
}

func goldenOf(t *testing.T, name string, cfg loadplan.Config, lim loadplan.Limits, cs iter.Seq[loadplan.Committable]) {
	t.Helper()
	p, err := loadplan.Build(cfg, lim, cs)
	if err != nil {
		t.Fatal(err)
	}
	got := text(p, lim)
	path := filepath.Join("testdata", "plan_"+name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// text writes a plan, of long lists the first and the last lines and a hash of all.
func text(p *loadplan.Plan, lim loadplan.Limits) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s, %s\n", p.Run, p.Checkpoint)
	for i := range p.Parts {
		part := &p.Parts[i]
		fmt.Fprintf(&b, "\n%s: %d rows in %d bytes, jobs in %s\n", part.Destination, part.Rows, part.Bytes, part.JobProject)
		if last := part.FinalAction(); last != nil {
			fmt.Fprintf(&b, "final action %s\n", last.ID)
		}
	}
	for _, phase := range p.Phases(lim) {
		fmt.Fprintf(&b, "\n%s\n", phase.Name)
		b.WriteString(abridged("  ", phase.Waves, waveKey, waveText))
	}
	var temp, staged []string
	for i := range p.Parts {
		for t := range p.Parts[i].TempTables() {
			temp = append(temp, t.String())
		}
		staged = slices.AppendSeq(staged, p.Parts[i].StagedFiles())
	}
	fmt.Fprintf(&b, "\nto delete: tables\n%s\nto delete: files\n%s", abridged("  ", temp, same, same), abridged("  ", staged, same, same))
	return b.String()
}

func same(s string) string { return s }

func waveKey(w loadplan.Wave) string {
	var b strings.Builder
	for _, share := range w {
		for _, j := range share.Jobs {
			b.WriteString(j.ID)
		}
	}
	return b.String()
}

func waveText(w loadplan.Wave) string {
	var all []*loadplan.Job
	for _, share := range w {
		all = append(all, share.Jobs...)
	}
	return fmt.Sprintf("wave of %d jobs\n", len(all)) + abridged("  ", all, jobKey, jobText)
}

func jobKey(j *loadplan.Job) string { return j.ID + j.Target.Table }

func jobText(j *loadplan.Job) string {
	head := fmt.Sprintf("%s\n  into %s, %s, %s", j.ID, j.Target, j.Create(), j.Write)
	if j.SchemaUpdates {
		head += ", with schema updates"
	}
	switch j.Kind {
	case loadplan.LoadJob:
		return fmt.Sprintf("%s\n  of %d %s files, %d rows in %d bytes\n%s", head, len(j.URIs), j.Format, j.Rows, j.Bytes, abridged("    ", j.URIs, same, same))
	case loadplan.CopyJob:
		return fmt.Sprintf("%s\n  of %d tables\n%s", head, len(j.Sources), abridged("    ", j.Sources, table.Destination.String, table.Destination.String))
	}
	return head + "\n    " + j.SQL + "\n"
}

// abridged writes the first and last few items of a list, and between them what there is more.
func abridged[T any](indent string, all []T, key, show func(T) string) string {
	var b strings.Builder
	sum := sha256.New()
	for i, item := range all {
		sum.Write([]byte(key(item) + "\n"))
		if i < 3 || i >= len(all)-3 {
			for line := range strings.Lines(show(item)) {
				b.WriteString(indent + strings.TrimSuffix(line, "\n") + "\n")
			}
		} else if i == len(all)-4 {
			fmt.Fprintf(&b, "%s… %d more; all up to here: %x\n", indent, len(all)-6, sum.Sum(nil)[:8])
		}
	}
	return b.String()
}
