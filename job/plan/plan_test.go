package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/plan"
)

// of plans a job with these keys of its sink, over the records of one file.
func of(t *testing.T, records, sink string, change func(*job.Parsed)) *plan.Plan {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.ndjson"), []byte(records), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "job: j\nsource: { files: { paths: [in.ndjson] } }\nparallelism: 4\nsink:\n  bigquery:\n"
	for line := range strings.Lines(sink) {
		text += "    " + strings.TrimSpace(line) + "\n"
	}
	parsed, err := job.Parse(filepath.Join(dir, "job.yaml"), []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(parsed)
	}
	p, err := plan.Of(t.Context(), parsed, job.Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func exactlyOnce(p *job.Parsed) { p.Sink.BigQuery.Method = "exactly-once" }

func needs(p *plan.Plan) []string {
	var all []string
	for _, n := range p.Permissions {
		all = append(all, fmt.Sprintf("%s on %s %s", n.Name, n.Kind, n.Resource))
	}
	return all
}

func TestPermissionsFollowTheMethodAndWhatIsAllowed(t *testing.T) {
	const one, infer = "table: p.d.t\n", "schema: { infer: {} }\n"
	for name, c := range map[string]struct {
		sink   string
		change func(*job.Parsed)
		want   []string
	}{
		"default": {one + infer, nil, []string{
			"bigquery.tables.create on dataset p.d", "bigquery.tables.updateData on table p.d.t", "bigquery.tables.get on table p.d.t"}},
		"a location is not looked up": {one + infer + "location: EU", nil, []string{
			"bigquery.tables.create on dataset p.d", "bigquery.tables.updateData on table p.d.t"}},
		"exactly once": {one + infer, exactlyOnce, []string{
			"bigquery.tables.create on dataset p.d", "bigquery.tables.updateData on table p.d.t", "bigquery.tables.get on table p.d.t"}},
		"never, widened": {one + infer + "create: { disposition: never }\nschemaUpdate: { allowNewFields: true }\nlocation: EU", nil, []string{
			"bigquery.tables.updateData on table p.d.t", "bigquery.tables.get on table p.d.t", "bigquery.tables.update on table p.d.t"}},
		"a pattern in the dataset, of a project with dots": {"table: example.com:p.d_{a.b}.{c}\n" + infer + "location: EU\ncreate: { datasets: true }", nil, []string{
			"bigquery.datasets.create on project example.com:p", "bigquery.tables.create on dataset example.com:p.d_{a.b}",
			"bigquery.tables.updateData on table example.com:p.d_{a.b}.{c}"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needs(of(t, `{"n": 1, "a": {"b": "x"}, "c": "y"}`, c.sink, c.change)); !slices.Equal(got, c.want) {
				t.Errorf("needs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// quota finds one by the beginning of its name.
func quota(t *testing.T, p *plan.Plan, name string) plan.Quota {
	t.Helper()
	for _, q := range p.Quotas {
		if strings.HasPrefix(q.Name, name) {
			if !strings.HasPrefix(q.Source, "https://cloud.google.com/bigquery/") {
				t.Errorf("%s: limit without a page: %q", q.Name, q.Source)
			}
			return q
		}
	}
	t.Fatalf("no quota %q in %+v", name, p.Quotas)
	return plan.Quota{}
}

func TestQuotaArithmetic(t *testing.T) {
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `{"k": "t%d", "n": 1}`+"\n", i)
	}
	const sink = "table: p.d.{k}\nschema: { infer: {} }\n"
	t.Run("connections and streams of exactly-once grow with lanes and tables", func(t *testing.T) {
		p := of(t, many.String(), sink+"location: us-east1\n", exactlyOnce)
		q := quota(t, p, "connections open at once")
		if !q.Over || q.Limit != "1,000 in us-east1" || !strings.HasPrefix(q.Uses, "up to 1,200: one for each of 4 lanes and each of 300 tables") {
			t.Errorf("%+v", q)
		}
		if q := quota(t, p, "streams made in an hour"); q.Over || !strings.HasPrefix(q.Uses, "1,200 to begin with") || q.Limit != "10,000" {
			t.Errorf("%+v", q)
		}
		p = of(t, many.String(), sink+"location: eu\n", exactlyOnce)
		if q := quota(t, p, "connections open at once"); q.Over || q.Limit != "10,000 in eu" {
			t.Errorf("%+v", q)
		}
		if !strings.Contains(p.Guarantee, "exactly once") {
			t.Errorf("guarantee %q", p.Guarantee)
		}
	})
	t.Run("those of the default method do not", func(t *testing.T) {
		p := of(t, many.String(), sink, nil)
		if q := quota(t, p, "connections open at once"); q.Over || q.Uses != "up to 20, shared by all lanes and tables" {
			t.Errorf("%+v", q)
		}
		for _, q := range p.Quotas {
			if strings.HasPrefix(q.Name, "streams made") {
				t.Errorf("%+v: no stream is made", q)
			}
		}
	})
	t.Run("partitions", func(t *testing.T) {
		for partition, want := range map[string]plan.Quota{
			"{ type: day }":                      {Uses: "one for each day: room for 27 years"},
			"{ type: month }":                    {Uses: "one for each month: room for 833 years"},
			"{ type: hour }":                     {Uses: "one for each hour: room for 416 days"},
			"{ type: hour, expiration: 24000h }": {Uses: "up to 24,001, one for each hour of the 1000 days that one is kept", Over: true},
		} {
			q := quota(t, of(t, `{"k": "a", "n": 1}`, sink+"create: { partition: "+partition+" }\n", nil), "partitions")
			if q.Uses != want.Uses || q.Over != want.Over {
				t.Errorf("%s: %+v, want %+v", partition, q, want)
			}
		}
	})
	t.Run("columns", func(t *testing.T) {
		p := of(t, `{"k": "wide", "s": {"a": 1, "b": {"c": 2}}}`+"\n"+`{"k": "small"}`, sink, nil)
		if q := quota(t, p, "columns"); q.Uses != "5 in p.d.wide" {
			t.Errorf("%+v", q)
		}
	})
}

func TestLineageIsTheFilesAndTheTables(t *testing.T) {
	p := of(t, `{"k": "a"}`+"\n"+`{"k": "b"}`, "table: p.d.{k}\nschema: { infer: {} }", nil)
	if len(p.Lineage.Inputs) != 1 || p.Lineage.Inputs[0].Namespace != "file" || !filepath.IsAbs(p.Lineage.Inputs[0].Name) {
		t.Errorf("inputs %v", p.Lineage.Inputs)
	}
	if want := []plan.Dataset{{Namespace: "bigquery", Name: "p.d.a"}, {Namespace: "bigquery", Name: "p.d.b"}}; !slices.Equal(p.Lineage.Outputs, want) {
		t.Errorf("outputs %v, want %v", p.Lineage.Outputs, want)
	}
}
