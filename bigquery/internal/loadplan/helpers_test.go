package loadplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

const (
	runA = "0123456789abcdef0123456789abcdef"
	runB = "fedcba9876543210fedcba9876543210"
)

var pdt = table.Destination{Project: "p", Dataset: "d", Table: "t"}

// staged is a file of p.d.t as the default configuration stages it.
func staged(name string) loadplan.Committable {
	return loadplan.Committable{Run: runA, Destination: pdt, URI: "gs://b/x/" + name, Bytes: 100, Rows: 10, Profile: "5561fba2"}
}

// stagedIn is staged with another format.
func stagedIn(f loadplan.Format, name string) loadplan.Committable {
	c := staged(name)
	c.Format = f
	return c
}

// files are n files of p.d.t whose names sort as they come.
func files(n int) []loadplan.Committable {
	all := make([]loadplan.Committable, n)
	for i := range all {
		all[i] = staged(fmt.Sprintf("%08d.avro", i))
	}
	return all
}

func stamp(id int64, cs []loadplan.Committable) []loadplan.Committable {
	out := slices.Clone(cs)
	for i := range out {
		out[i] = out[i].WithCheckpoint(id)
	}
	return out
}

// build plans committables that have the profile of cfg.
func build(t testing.TB, cfg loadplan.Config, lim loadplan.Limits, cs ...loadplan.Committable) *loadplan.Plan {
	t.Helper()
	p, err := loadplan.Build(cfg, lim, slices.Values(under(cfg, cs)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// under are committables as they are staged with cfg.
func under(cfg loadplan.Config, cs []loadplan.Committable) []loadplan.Committable {
	out := slices.Clone(cs)
	for i := range out {
		out[i].Profile = cfg.Profile()
	}
	return out
}

// only is the one part of a plan.
func only(t testing.TB, p *loadplan.Plan) *loadplan.Part {
	t.Helper()
	if len(p.Parts) != 1 {
		t.Fatalf("%d parts, want 1", len(p.Parts))
	}
	return &p.Parts[0]
}

// jobs are all jobs of a part.
func jobs(p *loadplan.Part) (all []loadplan.Job) {
	all = slices.Clone(p.Loads)
	for _, level := range p.Levels {
		all = append(all, level...)
	}
	for _, j := range []*loadplan.Job{p.Final, p.Query} {
		if j != nil {
			all = append(all, *j)
		}
	}
	return all
}

// names are the tables' own names.
func names(tables []table.Destination) (all []string) {
	for _, t := range tables {
		all = append(all, t.Table)
	}
	return all
}

// short leaves the run out of a name.
func short(name string) string { return strings.ReplaceAll(name, runA, "RUN") }

// limits are the service's with small numbers of files for a load and of tables for a copy.
func limits(filesPerLoad, sourcesPerCopy int) loadplan.Limits {
	lim := loadplan.ServiceLimits()
	lim.FilesPerLoad, lim.SourcesPerCopy = filesPerLoad, sourcesPerCopy
	return lim
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
