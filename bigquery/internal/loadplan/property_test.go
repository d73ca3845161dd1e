package loadplan_test

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// shape is a commit drawn at random, with bounds small enough to be met.
type shape struct {
	cfg loadplan.Config
	lim loadplan.Limits
	cs  []loadplan.Committable
}

func shapes(t *rapid.T) shape {
	number := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	s := shape{lim: loadplan.ServiceLimits()}
	s.cfg.Disposition = loadplan.Disposition(number("disposition", 0, 3))
	if rapid.Bool().Draw(t, "elsewhere") {
		s.cfg.TempDataset = "scratch"
	}
	s.lim.FilesPerLoad, s.lim.SourcesPerCopy = number("files per load", 1, 5), number("sources per copy", 2, 4)
	s.lim.BytesPerLoad = int64(number("bytes per load", 1, 100))
	s.lim.LoadWave, s.lim.QueryWave = number("wave", 1, 9), number("query wave", 1, 3)
	stamped, tables := rapid.Bool().Draw(t, "stamped"), number("tables", 1, 4)
	for i := range number("files", 0, 120) {
		c := staged(fmt.Sprintf("%d.avro", i*7919%120))
		c.Profile = s.cfg.Profile()
		c.Destination.Table = fmt.Sprint("t", number("table", 1, tables))
		c.Bytes, c.Rows = int64(number("bytes", 0, 60)), int64(number("rows", 0, 9))
		if number("other format", 0, 9) == 0 {
			c.Format = loadplan.Format(number("format", 1, 4))
		}
		if stamped {
			c = c.WithCheckpoint(3)
		}
		s.cs = append(s.cs, c)
	}
	return s
}

func TestAnyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shapes(t)
		p, err := loadplan.Build(s.cfg, s.lim, slices.Values(s.cs))
		if err != nil {
			t.Fatal(err)
		}
		if err := check(p, s.cfg, s.lim, slices.Values(s.cs)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(partitions(s), loaded(p)); diff != "" {
			t.Fatalf("loads are not filled one after the other: %s", diff)
		}
		again := rapid.Permutation(s.cs).Draw(t, "order")
		if len(again) > 0 {
			again = append(again, again[:1+len(again)/3]...)
		}
		q, err := loadplan.Build(s.cfg, s.lim, slices.Values(again))
		if diff := cmp.Diff(p, q); err != nil || diff != "" {
			t.Fatalf("in another order, some twice: %v %s", err, diff)
		}
	})
}

// partitions is what loads should have, in the obvious way: sorted by table, format and name, a new load at each bound.
func partitions(s shape) (loads [][]string) {
	cs := slices.Clone(s.cs)
	key := func(c loadplan.Committable) string { return c.Destination.Table + string(rune('0'+c.Format)) }
	slices.SortFunc(cs, func(a, b loadplan.Committable) int {
		if key(a)+a.URI < key(b)+b.URI {
			return -1
		}
		return 1
	})
	var bytes int64
	for i, c := range cs {
		if i == 0 || key(cs[i-1]) != key(c) || len(loads[len(loads)-1]) == s.lim.FilesPerLoad || bytes+c.Bytes > s.lim.BytesPerLoad {
			loads, bytes = append(loads, nil), 0
		}
		loads[len(loads)-1] = append(loads[len(loads)-1], c.URI)
		bytes += c.Bytes
	}
	return loads
}

func loaded(p *loadplan.Plan) (loads [][]string) {
	for i := range p.Parts {
		for _, j := range p.Parts[i].Loads {
			loads = append(loads, j.URIs)
		}
	}
	return loads
}

var manyFiles = flag.Int("files", 1_000_000, "how many files TestManyFiles plans; from 10_000_000 on, which is what the service's own limits "+
	"are made for, TestGoldenPlans has the plan of most leaves, too")

// TestManyFiles: bounds hold at a size that meets the service's own.
func TestManyFiles(t *testing.T) {
	const length = 17
	n := *manyFiles
	text := make([]byte, 0, n*length)
	for i := range n {
		text = fmt.Appendf(text, "gs://b/x/%08d", i)
	}
	all := string(text)
	// Every file but those of the second table is 8 MiB: 10,000 of them are 78 GiB. Those of the second are 2 GiB: a load takes 5,632.
	var cs iter.Seq[loadplan.Committable] = func(yield func(loadplan.Committable) bool) {
		c := staged("").WithCheckpoint(7)
		for i := n - 1; i >= 0; i-- {
			c.URI, c.Destination.Table, c.Bytes, c.Format = all[i*length:(i+1)*length], "t", 8<<20, loadplan.Avro
			switch {
			case i%100 == 0:
				c.Format = loadplan.Parquet
			case i >= n/10*9:
				c.Destination.Table, c.Bytes = "u", 2<<30
			}
			if !yield(c) {
				return
			}
		}
	}
	p, err := loadplan.Build(loadplan.Config{}, service, cs)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(p, loadplan.Config{}, service, cs); err != nil {
		t.Fatal(err)
	}
	// Of a million, t: 891,000 Avro files in 90 loads and 10,000 Parquet files in one; u: 99,000 Avro files in 18 loads.
	ofT, ofU := loadsOf(n/1000*891, 10_000)+loadsOf(n/100, 10_000), loadsOf(n/1000*99, 5_632)
	if len(p.Parts) != 2 || len(p.Parts[0].Loads) != ofT || len(p.Parts[1].Loads) != ofU || len(p.Parts[0].Levels)+len(p.Parts[1].Levels) != 0 {
		t.Errorf("%d parts, of %d and %d loads, want %d and %d", len(p.Parts), len(p.Parts[0].Loads), len(p.Parts[1].Loads), ofT, ofU)
	}
}

func loadsOf(files, each int) int { return (files + each - 1) / each }

var jobID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,1000}$`) // 1,024 with what retries add

// check holds a plan to everything that is promised of all of them.
func check(p *loadplan.Plan, cfg loadplan.Config, lim loadplan.Limits, cs iter.Seq[loadplan.Committable]) error {
	c := checker{cfg: cfg, lim: lim, ids: map[string]bool{}, made: map[table.Destination]int{}, read: map[table.Destination]bool{}}
	for i := range p.Parts {
		part := &p.Parts[i]
		if i > 0 && p.Parts[i-1].Destination.Path() >= part.Destination.Path() {
			c.fail("%s comes after %s", part.Destination, p.Parts[i-1].Destination)
		}
		c.part(part)
	}
	if c.loads > lim.Loads || c.copies > lim.Copies {
		c.fail("%d loads and %d copies", c.loads, c.copies)
	}
	c.files(p, cs)
	c.phases(p)
	return errors.Join(c.faults...)
}

type checker struct {
	cfg           loadplan.Config
	lim           loadplan.Limits
	ids           map[string]bool
	made          map[table.Destination]int // temporary tables, by the step that makes them
	read          map[table.Destination]bool
	loads, copies int
	faults        []error
}

func (c *checker) fail(format string, args ...any) {
	if len(c.faults) < 10 {
		c.faults = append(c.faults, fmt.Errorf(format, args...))
	}
}

func (c *checker) part(p *loadplan.Part) {
	formats := map[loadplan.Format]bool{}
	for i := range p.Loads {
		c.job(p, &p.Loads[i], loadplan.LoadJob, 0)
		formats[p.Loads[i].Format] = true
	}
	c.loads += len(p.Loads)
	if p.Direct() {
		if len(p.Loads) != len(formats) || len(formats) > 1 && c.cfg.Disposition.Replaces() || p.Levels != nil || p.Query != nil {
			c.fail("%d direct loads of %d formats into %s", len(p.Loads), len(formats), p.Destination)
		}
		return
	}
	for level := range p.Levels {
		for i := range p.Levels[level] {
			c.job(p, &p.Levels[level][i], loadplan.CopyJob, level+1)
			c.copies++
		}
	}
	c.job(p, p.Final, loadplan.CopyJob, len(p.Levels)+1)
	c.copies++
	if p.Query != nil {
		c.job(p, p.Query, loadplan.QueryJob, len(p.Levels)+2)
		c.read[p.Final.Target] = true
	}
	for t := range p.TempTables() {
		if !c.read[t] {
			c.fail("nothing reads %s", t)
		}
	}
	if loadplan.Copies(len(p.Loads), c.lim.SourcesPerCopy) != 1+lengths(p.Levels) {
		c.fail("%d leaves take %d copies", len(p.Loads), 1+lengths(p.Levels))
	}
}

func lengths(levels [][]loadplan.Job) (n int) {
	for _, l := range levels {
		n += len(l)
	}
	return n
}

func (c *checker) job(p *loadplan.Part, j *loadplan.Job, kind loadplan.Kind, step int) {
	if j.Kind != kind || c.ids[j.ID] || !jobID.MatchString(j.ID) {
		c.fail("%q is the id of a job of kind %d, or not the only one", j.ID, j.Kind)
	}
	c.ids[j.ID] = true
	if j.Temp {
		if _, ok := c.made[j.Target]; ok || j.Target.Validate() != nil || j.Write != loadplan.Truncate || j.SchemaUpdates || loadplan.CheckDestination(j.Target) == nil {
			c.fail("%+v makes a temporary table", j)
		}
		c.made[j.Target] = step
	} else if j.Target != p.Destination || j.Write != c.cfg.Disposition {
		c.fail("%+v writes to a destination", j)
	}
	if n := len(j.URIs); kind == loadplan.LoadJob && (n < 1 || n > c.lim.FilesPerLoad || n > 1 && j.Bytes > c.lim.BytesPerLoad) {
		c.fail("%s takes %d files of %d bytes", j.ID, n, j.Bytes)
	}
	if n := len(j.Sources); kind == loadplan.CopyJob && (n < 2 || n > c.lim.SourcesPerCopy) {
		c.fail("%s copies %d tables", j.ID, n)
	}
	for _, s := range j.Sources {
		if at, ok := c.made[s]; !ok || at >= step || c.read[s] {
			c.fail("%s is not there when %s copies it, or is copied a second time", s, j.ID)
		}
		c.read[s] = true
	}
}

// files: each is in one load, of its destination and format. The number in its name says which one it is.
func (c *checker) files(p *loadplan.Plan, cs iter.Seq[loadplan.Committable]) {
	type place struct {
		part *loadplan.Part
		job  *loadplan.Job
	}
	var where []place
	loaded := 0
	for i := range p.Parts {
		var rows, bytes int64
		for n := range p.Parts[i].Loads {
			j := &p.Parts[i].Loads[n]
			rows, bytes, loaded = rows+j.Rows, bytes+j.Bytes, loaded+len(j.URIs)
			for _, uri := range j.URIs {
				k := numberOf(uri)
				if k >= len(where) {
					where = append(where, make([]place, k+1-len(where))...)
				}
				if where[k].job != nil {
					c.fail("%s is in two loads", uri)
				}
				where[k] = place{&p.Parts[i], j}
			}
		}
		if rows != p.Parts[i].Rows || bytes != p.Parts[i].Bytes {
			c.fail("loads of %s have %d rows, the part %d", p.Parts[i].Destination, rows, p.Parts[i].Rows)
		}
	}
	for f := range cs {
		loaded--
		if k := numberOf(f.URI); k >= len(where) || where[k].job == nil || where[k].job.Format != f.Format || where[k].part.Destination != f.Destination {
			c.fail("%s is loaded elsewhere or not at all", f.URI)
		}
	}
	if loaded != 0 {
		c.fail("%d files too many are loaded", loaded)
	}
}

func numberOf(uri string) (n int) {
	for i := len("gs://b/x/"); i < len(uri) && uri[i] >= '0' && uri[i] <= '9'; i++ {
		n = 10*n + int(uri[i]-'0')
	}
	return n
}

// phases: every job is in one wave, none of which is too large, and the jobs of a destination are in order.
func (c *checker) phases(p *loadplan.Plan) {
	of := map[*loadplan.Part][]string{}
	for _, phase := range p.Phases(c.lim) {
		for i, wave := range phase.Waves {
			n, most := 0, c.lim.LoadWave
			if phase.Name == "queries" {
				most = c.lim.QueryWave
			}
			for _, share := range wave {
				n += len(share.Jobs)
				for _, j := range share.Jobs {
					of[share.Part] = append(of[share.Part], j.ID)
				}
			}
			if n > most || n == 0 || i < len(phase.Waves)-1 && n != most {
				c.fail("wave %d of %s has %d jobs", i, phase.Name, n)
			}
		}
	}
	for i := range p.Parts {
		var want []string
		for _, j := range jobs(&p.Parts[i]) {
			want = append(want, j.ID)
		}
		if diff := cmp.Diff(want, of[&p.Parts[i]]); diff != "" {
			c.fail("jobs of %s: %s", p.Parts[i].Destination, diff)
		}
	}
}
