package loadplan_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var service = loadplan.ServiceLimits()

func TestIdsOfDirectLoads(t *testing.T) {
	a, b := staged("a.avro"), staged("b.avro")
	const want = "millrace-bq-load-" + runA + "-952762fff5b3ffd0"
	t.Run("FL-40 the order of files is none of the id's", func(t *testing.T) {
		for _, cs := range [][]loadplan.Committable{{a, b}, {b, a}} {
			p := only(t, build(t, loadplan.Config{}, service, cs...))
			equal(t, "id", p.Loads[0].ID, want)
			if diff := cmp.Diff([]string{a.URI, b.URI}, p.Loads[0].URIs); diff != "" {
				t.Error(diff)
			}
		}
		equal(t, "id of a", only(t, build(t, loadplan.Config{}, service, a)).Loads[0].ID, "millrace-bq-load-"+runA+"-902be38fab4e894a")
		equal(t, "id of b", only(t, build(t, loadplan.Config{}, service, b)).Loads[0].ID, "millrace-bq-load-"+runA+"-2f6c80a4ca9c3444")
	})
	t.Run("FL-41 the checkpoint is in sight and not in the hash", func(t *testing.T) {
		p := build(t, loadplan.Config{}, service, a.WithCheckpoint(42), b.WithCheckpoint(42))
		equal(t, "id", only(t, p).Loads[0].ID, "millrace-bq-load-"+runA+"-c42-952762fff5b3ffd0")
		p = build(t, loadplan.Config{}, service, a.WithCheckpoint(0), b.WithCheckpoint(0))
		equal(t, "id", only(t, p).Loads[0].ID, "millrace-bq-load-"+runA+"-c0-952762fff5b3ffd0")
	})
	t.Run("FL-42 the run is that of the committables", func(t *testing.T) {
		a := a
		a.Run = runB
		p := build(t, loadplan.Config{}, service, a)
		equal(t, "run", p.Run, runB)
		equal(t, "id", only(t, p).Loads[0].ID, "millrace-bq-load-"+runB+"-902be38fab4e894a")
	})
	t.Run("FL-87 a committable that is delivered twice counts once", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{}, service, b, a, b))
		equal(t, "id", p.Loads[0].ID, want)
		equal(t, "rows", p.Rows, 20)
		equal(t, "bytes", p.Bytes, 200)
	})
	t.Run("FL-87 a file with two descriptions is refused", func(t *testing.T) {
		for _, change := range []func(*loadplan.Committable){
			func(c *loadplan.Committable) { c.Rows++ },
			func(c *loadplan.Committable) { c.Bytes++ },
			func(c *loadplan.Committable) { c.Format = loadplan.Parquet },
			func(c *loadplan.Committable) { c.Destination.Table = "other" },
			func(c *loadplan.Committable) { c.Profile = "c06007e4" },
		} {
			other := b
			change(&other)
			for _, cs := range [][]loadplan.Committable{{a, b, other}, {other, a, b}, {b, staged("c.avro"), other, b}} {
				_, err := loadplan.Build(loadplan.Config{AllowProfileChange: true}, service, slices.Values(cs))
				if !errors.Is(err, loadplan.ErrDuplicateStagedFile) || !strings.Contains(err.Error(), b.URI) {
					t.Errorf("error is %v", err)
				}
			}
		}
	})
}

func TestOneCommitIsOneCheckpoint(t *testing.T) {
	t.Run("FL-43 runs or checkpoints mixed", func(t *testing.T) {
		other := staged("c")
		other.Run = runB
		for _, cs := range [][]loadplan.Committable{
			{staged("a").WithCheckpoint(1), staged("b").WithCheckpoint(2)},
			{staged("a").WithCheckpoint(0), staged("b")},
			{staged("a"), other},
			{staged("a").WithCheckpoint(1), staged("a").WithCheckpoint(2)},
		} {
			if p, err := loadplan.Build(loadplan.Config{}, service, slices.Values(cs)); !errors.Is(err, loadplan.ErrMixedCommit) {
				t.Errorf("plan %v, error %v", p, err)
			}
		}
	})
	t.Run("FL-89 two checkpoints have ids and tables of their own, merged they are refused", func(t *testing.T) {
		all := files(3)
		one := build(t, loadplan.Config{}, limits(1, 2), stamp(1, all[:2])...)
		two := build(t, loadplan.Config{}, limits(1, 2), stamp(2, all[2:])...)
		again := build(t, loadplan.Config{}, limits(1, 2), stamp(2, all[:2])...)
		ids := map[string]bool{}
		for _, p := range []*loadplan.Plan{one, two, again} {
			for _, j := range jobs(only(t, p)) {
				if ids[j.ID] {
					t.Errorf("%s is in two commits", j.ID)
				}
				ids[j.ID] = true
				if j.Temp && ids[j.Target.String()] {
					t.Errorf("%s is in two commits", j.Target)
				}
				ids[j.Target.String()] = j.Temp
			}
		}
		_, err := loadplan.Build(loadplan.Config{}, service, slices.Values(append(stamp(1, all[:2]), stamp(2, all[2:])...)))
		if !errors.Is(err, loadplan.ErrMixedCommit) || !strings.Contains(err.Error(), "checkpoint 1") || !strings.Contains(err.Error(), "checkpoint 2") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("FL-88 options that ids depend on have changed", func(t *testing.T) {
		cfg := loadplan.Config{TempDataset: "scratch"}
		_, err := loadplan.Build(cfg, service, slices.Values(files(1)))
		if !errors.Is(err, loadplan.ErrCommitProfileChanged) || !strings.Contains(err.Error(), "5561fba2") || !strings.Contains(err.Error(), "c06007e4") ||
			!strings.Contains(err.Error(), "AllowProfileChange") {
			t.Errorf("error is %v", err)
		}
		cfg.AllowProfileChange = true
		p, err := loadplan.Build(cfg, limits(1, 2), slices.Values(files(2)))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "dataset of leaves", only(t, p).Loads[0].Target.Dataset, "scratch")
	})
	t.Run("no committables, no jobs", func(t *testing.T) {
		p := build(t, loadplan.Config{}, service)
		equal(t, "parts", len(p.Parts), 0)
		equal(t, "phases", len(p.Phases(service)), 0)
	})
}

func TestPartitions(t *testing.T) {
	t.Run("FL-44 10,000 files a load", func(t *testing.T) {
		all := files(10_001)
		p := only(t, build(t, loadplan.Config{}, service, all[:10_000]...))
		if len(p.Loads) != 1 || !p.Direct() || len(p.Loads[0].URIs) != 10_000 {
			t.Errorf("%d loads, direct: %t", len(p.Loads), p.Direct())
		}
		p = only(t, build(t, loadplan.Config{}, service, all...))
		if len(p.Loads) != 2 || p.Direct() || len(p.Loads[0].URIs) != 10_000 || len(p.Loads[1].URIs) != 1 || len(p.Levels) != 0 || len(p.Final.Sources) != 2 {
			t.Errorf("%d loads, direct: %t", len(p.Loads), p.Direct())
		}
		if p.Loads[1].URIs[0] != all[10_000].URI {
			t.Errorf("the last file is %s", p.Loads[1].URIs[0])
		}
	})
	t.Run("FL-45 11 TiB a load", func(t *testing.T) {
		const tib = 1 << 40
		equal(t, "the limit", service.BytesPerLoad, 12_094_627_905_536)
		for _, c := range []struct{ sizes, loads []int64 }{
			{[]int64{6 * tib, 6 * tib}, []int64{6 * tib, 6 * tib}},
			{[]int64{5 * tib, 6 * tib}, []int64{11 * tib}},
			{[]int64{5 * tib, 6*tib + 1}, []int64{5 * tib, 6*tib + 1}},
			{[]int64{12 * tib}, []int64{12 * tib}},
			{[]int64{12 * tib, 0, 1}, []int64{12 * tib, 1}},
			{[]int64{1, 12 * tib, 1<<63 - 1, 1}, []int64{1, 12 * tib, 1<<63 - 1, 1}},
		} {
			cs := files(len(c.sizes))
			for i := range cs {
				cs[i].Bytes = c.sizes[i]
			}
			p := only(t, build(t, loadplan.Config{}, service, cs...))
			var got []int64
			for _, j := range p.Loads {
				got = append(got, j.Bytes)
			}
			if diff := cmp.Diff(c.loads, got); diff != "" || p.Direct() != (len(c.loads) == 1) {
				t.Errorf("files of %d bytes, direct: %t: %s", c.sizes, p.Direct(), diff)
			}
		}
	})
}

func TestTemporaryTables(t *testing.T) {
	two := []loadplan.Committable{staged("a.avro"), staged("b.avro")}
	const tmp = "millrace_tmp_" + runA
	t.Run("FL-46 in batch", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{}, limits(1, 1200), two...))
		want := []string{tmp + "_8e93e1634914_p0", tmp + "_8e93e1634914_p1"}
		if diff := cmp.Diff(want, names(p.Final.Sources)); diff != "" {
			t.Error(diff)
		}
		for i, id := range []string{"902be38fab4e894a-p0", "2f6c80a4ca9c3444-p1"} {
			j := p.Loads[i]
			equal(t, "id", j.ID, "millrace-bq-load-"+runA+"-"+id)
			equal(t, "target", j.Target, table.Destination{Project: "p", Dataset: "d", Table: want[i]})
			if !j.Temp || j.Write != loadplan.Truncate || j.SchemaUpdates {
				t.Errorf("a leaf is %+v", j)
			}
		}
		equal(t, "id", p.Final.ID, "millrace-bq-copy-"+runA+"-f158c2f664506c4a")
		if p.Final.Target != pdt || p.Final.Temp || p.Final.Write != loadplan.Append || p.Final.SchemaUpdates || p.FinalAction() != p.Final {
			t.Errorf("the final copy is %+v", p.Final)
		}
		if diff := cmp.Diff(want, names(slices.Collect(p.TempTables()))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"gs://b/x/a.avro", "gs://b/x/b.avro"}, slices.Collect(p.StagedFiles())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("FL-47 at a checkpoint", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{}, limits(1, 1200), stamp(7, two)...))
		if diff := cmp.Diff([]string{tmp + "_1be697aa93af_c7_p0", tmp + "_1be697aa93af_c7_p1"}, names(p.Final.Sources)); diff != "" {
			t.Error(diff)
		}
		equal(t, "id", p.Final.ID, "millrace-bq-copy-"+runA+"-c7-0fef6fcd946bd1df")
		next := only(t, build(t, loadplan.Config{}, limits(1, 1200), stamp(8, two)...))
		if next.Final.ID == p.Final.ID || next.Final.Sources[0] == p.Final.Sources[0] || next.Loads[0].ID == p.Loads[0].ID {
			t.Error("checkpoint 8 has names of checkpoint 7")
		}
	})
	t.Run("FL-56 elsewhere", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{TempDataset: "scratch"}, limits(1, 1200), two...))
		equal(t, "leaf", p.Loads[0].Target, table.Destination{Project: "p", Dataset: "scratch", Table: tmp + "_8e93e1634914_p0"})
		p = only(t, build(t, loadplan.Config{TempProject: "tp", TempDataset: "scratch"}, limits(1, 1200), two...))
		equal(t, "leaf", p.Loads[0].Target, table.Destination{Project: "tp", Dataset: "scratch", Table: tmp + "_8e93e1634914_p0"})
		equal(t, "id", p.Final.ID, "millrace-bq-copy-"+runA+"-efc7ce3919bb6a3c")
		equal(t, "target", p.Final.Target, pdt)
	})
	t.Run("jobs run in the project of their destination, or in the one that is set", func(t *testing.T) {
		equal(t, "project", only(t, build(t, loadplan.Config{TempProject: "tp", TempDataset: "scratch"}, service, two...)).JobProject, "p")
		equal(t, "project", only(t, build(t, loadplan.Config{JobProject: "billed"}, service, two...)).JobProject, "billed")
	})
}

func TestMixedFormats(t *testing.T) {
	mixed := []loadplan.Committable{stagedIn(loadplan.Parquet, "b.parquet"), staged("a.avro")}
	t.Run("FL-48 both fit: two loads", func(t *testing.T) {
		for _, d := range []loadplan.Disposition{loadplan.Append, loadplan.Empty} {
			p := only(t, build(t, loadplan.Config{Disposition: d}, service, mixed...))
			if !p.Direct() || len(p.Loads) != 2 || p.FinalAction() != nil || p.Query != nil {
				t.Fatalf("%v: %+v", d, p)
			}
			for i, f := range []loadplan.Format{loadplan.Avro, loadplan.Parquet} {
				j := p.Loads[i]
				if j.Format != f || len(j.URIs) != 1 || j.Write != d || j.Target != pdt || j.Temp || j.SchemaUpdates != (d == loadplan.Append) {
					t.Errorf("%v: load %d is %+v", d, i, j)
				}
			}
		}
	})
	t.Run("FL-49 WRITE_TRUNCATE: by way of a copy", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{Disposition: loadplan.Truncate}, service, mixed...))
		if len(p.Loads) != 2 || p.Levels != nil || p.Query != nil || p.Final.Write != loadplan.Truncate || p.Final.Target != pdt || p.Final.SchemaUpdates {
			t.Errorf("%+v", p)
		}
		want := []string{"millrace_tmp_RUN_1be697aa93af_p0", "millrace_tmp_RUN_f29a6ca27bfb_p0"}
		for i := range want {
			equal(t, "leaf", short(p.Final.Sources[i].Table), want[i])
		}
	})
	t.Run("FL-50 WRITE_TRUNCATE_DATA: by way of a query", func(t *testing.T) {
		cfg := loadplan.Config{Disposition: loadplan.TruncateData}
		p := only(t, build(t, cfg, service, mixed...))
		if len(p.Loads) != 2 || p.Levels != nil || p.Final.Write != loadplan.Truncate || !p.Final.Temp || p.Final.SchemaUpdates || p.FinalAction() != p.Query {
			t.Errorf("%+v", p)
		}
		q := p.Query
		if q.Kind != loadplan.QueryJob || q.Target != pdt || q.Temp || q.Write != loadplan.TruncateData || !q.SchemaUpdates {
			t.Errorf("%+v", q)
		}
		equal(t, "query", q.SQL, "SELECT * FROM `"+p.Final.Target.String()+"`")
		phases := build(t, cfg, service, mixed...).Phases(service)
		equal(t, "last phase", phases[len(phases)-1].Name, "queries")
		if diff := cmp.Diff(jobs(p), jobs(only(t, build(t, cfg, service, mixed[1], mixed[0])))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("FL-50 golden names of the aggregate", func(t *testing.T) {
		cfg := loadplan.Config{Disposition: loadplan.TruncateData}
		p := only(t, build(t, cfg, limits(1, 1200), staged("a.avro"), staged("b.avro")))
		equal(t, "aggregate", p.Final.Target.Table, "millrace_tmp_"+runA+"_f158c2f66450_aggregate")
		equal(t, "copy", p.Final.ID, "millrace-bq-copy-"+runA+"-1de11a3f2c788f8b")
		equal(t, "query", p.Query.ID, "millrace-bq-query-"+runA+"-50110bd9bc2d5966")
	})
	t.Run("FL-51 one overflows: both go by way of temporary tables", func(t *testing.T) {
		cs := []loadplan.Committable{staged("a.avro"), stagedIn(loadplan.Parquet, "b.parquet"), stagedIn(loadplan.Parquet, "c.parquet")}
		p := only(t, build(t, loadplan.Config{}, limits(1, 1200), cs...))
		want := []string{"millrace_tmp_RUN_1be697aa93af_p0", "millrace_tmp_RUN_f29a6ca27bfb_p0", "millrace_tmp_RUN_f29a6ca27bfb_p1"}
		if len(p.Loads) != 3 || len(p.Final.Sources) != 3 || p.Levels != nil {
			t.Fatalf("%+v", p)
		}
		for i := range want {
			equal(t, "leaf", short(p.Final.Sources[i].Table), want[i])
		}
	})
	t.Run("formats in order", func(t *testing.T) {
		var cs []loadplan.Committable
		for _, f := range []loadplan.Format{loadplan.Custom, loadplan.Avro, loadplan.CSV, loadplan.JSONL, loadplan.Parquet} {
			cs = append(cs, stagedIn(f, fmt.Sprintf("%d", loadplan.Custom-f)))
		}
		for i, j := range only(t, build(t, loadplan.Config{}, service, cs...)).Loads {
			equal(t, "format", j.Format, loadplan.Format(i))
		}
	})
}

func TestCopyLevels(t *testing.T) {
	t.Run("FL-52 1,200 tables a copy", func(t *testing.T) {
		all := files(1201)
		p := only(t, build(t, loadplan.Config{}, limits(1, 1200), all[:1200]...))
		if p.Levels != nil || len(p.Final.Sources) != 1200 {
			t.Errorf("%d levels, %d sources", len(p.Levels), len(p.Final.Sources))
		}
		p = only(t, build(t, loadplan.Config{}, limits(1, 1200), all...))
		if len(p.Levels) != 1 || len(p.Levels[0]) != 1 || len(p.Levels[0][0].Sources) != 1200 || len(p.Final.Sources) != 2 {
			t.Fatalf("%+v", p.Levels)
		}
		mid := p.Levels[0][0]
		if !strings.HasSuffix(mid.Target.Table, "_l1_g0") || !strings.HasSuffix(mid.ID, "-l1g0") || !mid.Temp || mid.Write != loadplan.Truncate {
			t.Errorf("the intermediate copy is %s into %s", mid.ID, mid.Target)
		}
		equal(t, "first source", p.Final.Sources[0], mid.Target)
		equal(t, "second source", p.Final.Sources[1], p.Loads[1200].Target)
	})
	t.Run("FL-53 a single table is carried up", func(t *testing.T) {
		p := only(t, build(t, loadplan.Config{}, limits(1, 3), files(10)...))
		if len(p.Levels) != 2 || len(p.Levels[0]) != 3 || len(p.Levels[1]) != 1 || len(p.Final.Sources) != 2 {
			t.Fatalf("%+v", p.Levels)
		}
		equal(t, "first source", p.Final.Sources[0], p.Levels[1][0].Target)
		equal(t, "second source", p.Final.Sources[1], p.Loads[9].Target)
	})
	t.Run("how many copies", func(t *testing.T) {
		for n, want := range map[int]int{1: 1, 1200: 1, 1201: 2, 2400: 3, 2401: 3, 100_000: 85, 1_440_000: 1201, 1_440_001: 1202} {
			equal(t, fmt.Sprintf("copies for %d tables", n), loadplan.Copies(n, 1200), want)
		}
	})
}

func TestBoundsOfACommit(t *testing.T) {
	t.Run("FL-54 more loads than a commit may have", func(t *testing.T) {
		lim := limits(1, 1200)
		lim.Loads = 3
		_, err := loadplan.Build(loadplan.Config{}, lim, slices.Values(files(4)))
		if !errors.Is(err, loadplan.ErrPlanTooLarge) || !strings.Contains(err.Error(), "needs 4 load jobs, limit 3") {
			t.Errorf("error is %v", err)
		}
		build(t, loadplan.Config{}, lim, files(3)...)

		build(t, loadplan.Config{}, limits(1, 1200), files(100_000)...)
		_, err = loadplan.Build(loadplan.Config{}, limits(1, 1200), slices.Values(files(100_001)))
		if !errors.Is(err, loadplan.ErrPlanTooLarge) || !strings.Contains(err.Error(), "commit needs 100001 load jobs, limit 100000: raise MaxStagingFileBytes or commit less at once") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("FL-54 many destinations count together", func(t *testing.T) {
		lim := service
		lim.Loads = 3
		cs := files(4)
		for i := range cs {
			cs[i].Destination.Table = fmt.Sprint("t", i)
		}
		if _, err := loadplan.Build(loadplan.Config{}, lim, slices.Values(cs)); !errors.Is(err, loadplan.ErrPlanTooLarge) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("more copies than a commit may have", func(t *testing.T) {
		lim := limits(1, 2)
		lim.Copies = 7
		build(t, loadplan.Config{}, lim, files(8)...)
		_, err := loadplan.Build(loadplan.Config{}, lim, slices.Values(files(10)))
		if !errors.Is(err, loadplan.ErrPlanTooLarge) || !strings.Contains(err.Error(), "needs 9 copy jobs, limit 7") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("limits that no plan can keep", func(t *testing.T) {
		for _, lim := range []loadplan.Limits{{}, limits(0, 2), limits(1, 1)} {
			if _, err := loadplan.Build(loadplan.Config{}, lim, slices.Values(files(1))); err == nil {
				t.Errorf("%+v is taken", lim)
			}
		}
	})
}

func TestWaves(t *testing.T) {
	t.Run("FL-55 loads in waves", func(t *testing.T) {
		lim := service
		lim.LoadWave = 2
		cs := files(3)
		for i := range cs {
			cs[i].Destination.Table = fmt.Sprint("t", i)
		}
		plan := build(t, loadplan.Config{}, lim, cs...)
		if diff := cmp.Diff([]string{"loads: t0 1, t1 1 | t2 1"}, phases(plan, lim)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a wave goes on through destinations, a phase does not begin before the last one is over", func(t *testing.T) {
		lim := limits(1, 2)
		lim.LoadWave, lim.QueryWave = 4, 1
		var cs []loadplan.Committable
		for i, n := range []int{5, 1, 3} {
			for _, c := range files(n) {
				c.Destination.Table = fmt.Sprint("t", i)
				c.URI += c.Destination.Table
				cs = append(cs, c)
			}
		}
		plan := build(t, loadplan.Config{Disposition: loadplan.TruncateData}, lim, cs...)
		want := []string{
			"loads: t0 4 | t0 1, t1 1, t2 2 | t2 1",
			"copies of level 1: t0 2, t2 1",
			"copies of level 2: t0 1",
			"final copies: t0 1, t2 1",
			"queries: t0 1 | t2 1",
		}
		if diff := cmp.Diff(want, phases(plan, lim)); diff != "" {
			t.Error(diff)
		}
	})
}

// phases writes the phases of a plan with how many jobs of which table are in each wave.
func phases(p *loadplan.Plan, lim loadplan.Limits) (all []string) {
	for _, phase := range p.Phases(lim) {
		var waves []string
		for _, w := range phase.Waves {
			var shares []string
			for _, s := range w {
				shares = append(shares, fmt.Sprintf("%s %d", s.Part.Destination.Table, len(s.Jobs)))
			}
			waves = append(waves, strings.Join(shares, ", "))
		}
		all = append(all, phase.Name+": "+strings.Join(waves, " | "))
	}
	return all
}

func TestDispositions(t *testing.T) {
	for d, want := range map[loadplan.Disposition]struct{ updates, query bool }{
		loadplan.Append: {updates: true}, loadplan.Truncate: {}, loadplan.TruncateData: {updates: true, query: true}, loadplan.Empty: {},
	} {
		cfg := loadplan.Config{Disposition: d}
		direct := only(t, build(t, cfg, service, files(3)...))
		if j := direct.Loads[0]; !direct.Direct() || j.Write != d || j.SchemaUpdates != want.updates {
			t.Errorf("%v: a direct load is %+v", d, j)
		}
		over := only(t, build(t, cfg, limits(2, 1200), files(3)...))
		if last := over.FinalAction(); (over.Query != nil) != want.query || last.Write != d || last.Temp || last.Target != pdt ||
			last.SchemaUpdates != (want.query && want.updates) {
			t.Errorf("%v: the final action is %+v", d, last)
		}
	}
}

func TestLoadSpecs(t *testing.T) {
	t.Run("FL-83 both dispositions are said, and URIs name objects", func(t *testing.T) {
		for d := loadplan.Append; d <= loadplan.Empty; d++ {
			for _, filesPerLoad := range []int{1, 3} {
				p := only(t, build(t, loadplan.Config{Disposition: d}, limits(filesPerLoad, 2), files(3)...))
				for _, j := range jobs(p) {
					create, write := loadplan.CreateNever, d
					if j.Temp {
						create, write = loadplan.CreateIfNeeded, loadplan.Truncate
					}
					if j.Create() != create || j.Write != write || (j.Target == pdt) == j.Temp {
						t.Errorf("%s into %s: %s, %s", j.ID, j.Target, j.Create(), j.Write)
					}
					if strings.Contains(strings.Join(j.URIs, ""), "*") {
						t.Errorf("%s loads %s", j.ID, j.URIs)
					}
				}
			}
		}
	})
}

func TestHostileCommittables(t *testing.T) {
	refused := func(name string, change func(*loadplan.Committable)) {
		t.Helper()
		c := staged("b.avro")
		change(&c)
		for _, cs := range [][]loadplan.Committable{{c}, {staged("a.avro"), c}} {
			p, err := loadplan.Build(loadplan.Config{}, service, slices.Values(cs))
			if !errors.Is(err, loadplan.ErrCommittable) && !errors.Is(err, loadplan.ErrMixedCommit) {
				t.Errorf("%s: plan %v, error %v", name, p, err)
			}
		}
	}
	for _, uri := range []string{
		"", "gs://", "gs://b", "gs://b/", "gs:///x", "GS://b/x", "s3://b/x", "b/x", "gs://b/x*", "gs://*/x", "gs://b/x\ngs://b/y", "gs://b/\x00", "gs://b/\x7f", "gs://b/\r",
	} {
		refused(fmt.Sprintf("URI %q", uri), func(c *loadplan.Committable) { c.URI = uri })
	}
	for _, name := range []string{"", "t\nAVRO", "t`", "t/../u", "t'; DROP", "t\x00", "t$x", "t\xff", strings.Repeat("t", 1025), "millrace_tmp_x", "Millrace_TMP_" + runA} {
		refused(fmt.Sprintf("table %.40q", name), func(c *loadplan.Committable) { c.Destination.Table = name })
	}
	for _, name := range []string{"", "d\nx", "d.e", "d`", "ü"} {
		refused(fmt.Sprintf("dataset %q", name), func(c *loadplan.Committable) { c.Destination.Dataset = name })
		refused(fmt.Sprintf("project %q", name), func(c *loadplan.Committable) { c.Destination.Project = strings.ReplaceAll(name, "d.e", "d/e") })
	}
	for _, run := range []string{"", "x", strings.ToUpper(runA), runA + "0", runA[:31] + "\n"} {
		refused(fmt.Sprintf("run %q", run), func(c *loadplan.Committable) { c.Run = run })
	}
	refused("negative bytes", func(c *loadplan.Committable) { c.Bytes = -1 })
	refused("negative rows", func(c *loadplan.Committable) { c.Rows = -1 })
	refused("unknown format", func(c *loadplan.Committable) { c.Format = 5 })
	refused("negative checkpoint", func(c *loadplan.Committable) { c.Checkpoint = loadplan.Checkpoint{ID: -1, Set: true} })
	refused("a checkpoint that is not set", func(c *loadplan.Committable) { c.Checkpoint.ID = 1 })

	for _, cfg := range []loadplan.Config{{TempDataset: "a`b"}, {TempDataset: "a\nb"}, {TempDataset: "a/b"}, {TempProject: "x/y", TempDataset: "d"}, {Disposition: 9}} {
		if p, err := loadplan.Build(cfg, limits(1, 2), slices.Values(under(cfg, files(2)))); err == nil {
			t.Errorf("%+v is planned as %+v", cfg, p)
		}
	}
	for _, uri := range []string{"gs://b/a b?c=d#e[f]'\"`\\$", "gs://b/../x", "gs://b//", "gs://b/ü\u2028"} {
		c := staged("")
		c.URI = uri
		if got := only(t, build(t, loadplan.Config{}, service, c)).Loads[0].URIs[0]; got != uri {
			t.Errorf("%q is loaded as %q", uri, got)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for name, want := range map[string]error{
		"millrace_tmp_": loadplan.ErrReserved, "Millrace_TMP_x": loadplan.ErrReserved, "millrace_tm": nil, "my_millrace_tmp_x": nil, "a`b": table.ErrDestination,
	} {
		if err := loadplan.CheckDestination(table.Destination{Project: "p", Dataset: "d", Table: name}); !errors.Is(err, want) {
			t.Errorf("%s: error is %v, want %v", name, err, want)
		}
	}
}

func TestSelectAll(t *testing.T) {
	t.Run("FL-82 names are quoted", func(t *testing.T) {
		for name, want := range map[string]string{
			"a`b\\c":           "SELECT * FROM `p.d.a\\`b\\\\c`",
			"plain":            "SELECT * FROM `p.d.plain`",
			"x` WHERE FALSE--": "SELECT * FROM `p.d.x\\` WHERE FALSE--`",
			"a\nb\rc":          "SELECT * FROM `p.d.a\\nb\\rc`",
		} {
			equal(t, "query", loadplan.SelectAll(table.Destination{Project: "p", Dataset: "d", Table: name}), want)
		}
	})
}

// TestEqualHashes: the tables t7787634 and t12554004 agree in the 48 bits that names of temporary tables have of them.
func TestEqualHashes(t *testing.T) {
	var cs []loadplan.Committable
	for _, name := range []string{"t7787634", "t12554004"} {
		for _, c := range stamp(7, files(2)) {
			c.Destination.Table = name
			c.URI += name
			cs = append(cs, c)
		}
	}
	plan := build(t, loadplan.Config{}, limits(1, 2), cs...)
	seen := map[table.Destination]bool{}
	for i := range plan.Parts {
		for temp := range plan.Parts[i].TempTables() {
			if seen[temp] {
				t.Errorf("%s is a table of two destinations", temp)
			}
			seen[temp] = true
		}
	}
	first, second := plan.Parts[0].Loads[0].Target.Table, plan.Parts[1].Loads[0].Target.Table
	hash := strings.TrimSuffix(strings.TrimPrefix(short(first), "millrace_tmp_RUN_"), "_c7_p0")
	if len(hash) != 12 || !strings.HasPrefix(short(second), "millrace_tmp_RUN_"+hash) || len(second)-len(first) != 52 {
		t.Errorf("the tables are %s and %s: expected one hash, the second time in full", first, second)
	}
	slices.Reverse(cs)
	if diff := cmp.Diff(plan, build(t, loadplan.Config{}, limits(1, 2), cs...)); diff != "" {
		t.Errorf("in another order: %s", diff)
	}
}

func TestBuildStopsAtAFault(t *testing.T) {
	looked := 0
	var cs iter.Seq[loadplan.Committable] = func(yield func(loadplan.Committable) bool) {
		for _, c := range []loadplan.Committable{staged("a"), staged("b").WithCheckpoint(1), staged("c")} {
			looked++
			if !yield(c) {
				return
			}
		}
	}
	if _, err := loadplan.Build(loadplan.Config{}, service, cs); !errors.Is(err, loadplan.ErrMixedCommit) || looked != 2 {
		t.Errorf("error %v after %d committables", err, looked)
	}
}
