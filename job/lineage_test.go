package job

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/lineage"
	"github.com/millrace-dev/millrace/localbq"
)

// What a job is configured to read and write, from its file alone: neither inputs nor key files are looked at.
func TestConfiguredLineage(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		table, paths    string
		inputs, outputs []string
	}{
		"SW-154 decorator":       {"p.d.t$20260101", "[nowhere.ndjson]", []string{wd + "/dir/nowhere.ndjson"}, []string{"p.d.t$20260101"}},
		"SW-154 case":            {"My-Project.Data.Tab", "[/a/b.ndjson, /a/b.ndjson, ../c]", []string{"/a/b.ndjson", wd + "/c"}, []string{"My-Project.Data.Tab"}},
		"SW-154 template":        {"p.d.{kind}", "[/a]", []string{"/a"}, nil},
		"patterns":               {"p.d.t", "['/data/2026-*/part-?.gz', '/data/[ab]/x', '*']", []string{"/data", wd + "/dir"}, []string{"p.d.t"}},
		"standard input":         {"p.d.t", `["-"]`, nil, []string{"p.d.t"}},
		"names with anything":    {"p.d.\"t`é\"", `["/a\nb\u0001<script>"]`, []string{"/a\nb\x01<script>"}, nil},
		"domain-scoped projects": {"example.com:p.d.t", "[/a]", []string{"/a"}, []string{"example.com:p.d.t"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "job: j\nsource: { files: { paths: " + c.paths + " } }\nsink: { bigquery: { table: " + yamlOf(c.table) +
				", schema: { infer: {} }, connection: { keyFile: /nowhere/key.json } } }\n"
			p, err := Parse("dir/job.yaml", []byte(text), nil)
			if err != nil {
				if c.outputs == nil && !strings.Contains(c.table, "{") {
					return // no name of a table, which is found before
				}
				t.Fatal(err)
			}
			in, out, err := p.Datasets()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.inputs, namesOf(in, "file")); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.outputs, namesOf(out, "bigquery")); d != "" {
				t.Error(d)
			}
			for _, d := range out {
				g := d.Facets.GCP
				if g.Kind != "bigquery-table" || g.Project+"."+g.Dataset+"."+g.Table != d.Name {
					t.Errorf("facet gcp of %s is %+v", d.Name, g)
				}
			}
		})
	}
}

func yamlOf(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func namesOf(all []lineage.Dataset, namespace string) (names []string) {
	for _, d := range all {
		if d.Namespace == namespace {
			names = append(names, d.Name)
		}
	}
	return names
}

// told is a job that tells its lineage, in a folder of its own, against a local service.
type told struct {
	*testing.T
	dir   string
	local *localbq.Instance
	log   bytes.Buffer
}

func newTold(t *testing.T) *told {
	t.Helper()
	i, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return &told{T: t, dir: t.TempDir(), local: i}
}

func (o *told) put(name, text string) {
	o.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
}

// run runs a job that reads in.ndjson.
func (o *told) run(ctx context.Context, table, section string, change func(*RunOptions)) (engine.Result, error) {
	o.Helper()
	o.put("job.yaml", "job: shop\nsource: { files: { paths: [in.ndjson] } }\nsink: { bigquery: { table: '"+table+"', schema: { infer: {} } } }\n"+
		"checkpoint: { store: 'mem://' }\nrestart: { policy: none }\nlineage: "+section+"\n")
	p, err := Load(filepath.Join(o.dir, "job.yaml"), nil)
	if err != nil {
		return engine.Result{}, err
	}
	pl, err := p.Prepare(o.Context(), Surroundings{Connection: &bigquery.Connection{GRPCEndpoint: o.local.GRPC(), RESTEndpoint: o.local.REST()}, CreateDatasets: true})
	if err != nil {
		o.Fatal(err)
	}
	opts := RunOptions{Log: slog.New(slog.NewTextHandler(&o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&opts)
	}
	return pl.Run(ctx, opts)
}

func (o *told) events() (all []lineage.RunEvent) {
	o.Helper()
	f, err := os.Open(filepath.Join(o.dir, "lineage.ndjson"))
	if err != nil {
		o.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e lineage.RunEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			o.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestLineageOfARun(t *testing.T) {
	o := newTold(t)
	o.put("in.ndjson", `{"sku":"cup","tags":["a"],"at":{"x":1}}`+"\n"+`{"sku":"tea","tags":[],"at":{"x":2}}`+"\n")
	begun := time.Now()
	if _, err := o.run(t.Context(), "p.d.Orders", "{ file: lineage.ndjson, namespace: 'shops & co' }", nil); err != nil {
		t.Fatal(err)
	}
	all := o.events()
	if len(all) != 2 || all[0].Type != lineage.Start || all[1].Type != lineage.Complete || all[0].Run.ID != all[1].Run.ID ||
		all[0].Time.Before(begun.Add(-time.Second)) || all[1].Time.Before(all[0].Time) {
		t.Fatalf("events %+v", all)
	}
	for _, e := range all {
		if e.Job.Namespace != "shops & co" || e.Job.Name != "shop" || e.Job.Facets.Type.Processing != "BATCH" || e.Run.Facets.Engine.Name != "millrace" ||
			len(e.Inputs) != 1 || e.Inputs[0].Name != filepath.Join(o.dir, "in.ndjson") || len(e.Outputs) != 1 || e.Outputs[0].Name != "p.d.Orders" {
			t.Errorf("event %+v", e)
		}
		want := []lineage.Field{{Name: "at", Type: "STRUCT", Fields: []lineage.Field{{Name: "x", Type: "INT64"}}}, {Name: "sku", Type: "STRING"},
			{Name: "tags", Type: "ARRAY<STRING>"}}
		got := e.Outputs[0].Facets.Schema.Fields
		if d := cmp.Diff(want, sorted(got)); d != "" {
			t.Error(d)
		}
	}
	if all[0].Outputs[0].OutputFacets.Statistics != nil || all[0].Inputs[0].InputFacets.Statistics != nil {
		t.Errorf("numbers before anything was done: %+v", all[0])
	}
	if w, r := all[1].Outputs[0].OutputFacets.Statistics, all[1].Inputs[0].InputFacets.Statistics; w.Rows != 2 || w.Size == 0 || r.Rows != 2 || r.Size == 0 {
		t.Errorf("at the end: %+v, %+v", w, r)
	}
}

func sorted(fields []lineage.Field) []lineage.Field {
	byName := map[string]lineage.Field{}
	for _, f := range fields {
		f.Description = ""
		byName[f.Name] = f
	}
	return []lineage.Field{byName["at"], byName["sku"], byName["tags"]}
}

// With placeholders the tables are those that rows went to; names from data are text in JSON and nothing else.
func TestLineageOfTablesFromData(t *testing.T) {
	o := newTold(t)
	name := `</script>é "x"`
	o.put("in.ndjson", `{"kind":"a"}`+"\n"+`{"kind":"b"}`+"\n"+`{"kind":"b"}`+"\n"+`{"kind":`+yamlOf(name)+`}`+"\n")
	_, err := o.run(t.Context(), "p.d.{kind}", "{ file: lineage.ndjson }", nil)
	if err == nil {
		t.Fatal("a name that no table can have was taken")
	}
	all := o.events()
	last := all[len(all)-1]
	if len(all[0].Outputs) != 0 || all[0].Job.Namespace != "default" || last.Type != lineage.Fail || last.Run.Facets.Error.Message != err.Error() ||
		last.Run.Facets.Error.Language != "Go" {
		t.Errorf("events %+v", all)
	}
	o.put("in.ndjson", `{"kind":"a"}`+"\n"+`{"kind":"b"}`+"\n"+`{"kind":"b"}`+"\n")
	if _, err := o.run(t.Context(), "p.d.{kind}", "{ file: lineage.ndjson }", nil); err != nil {
		t.Fatal(err)
	}
	all = o.events()
	rows := map[string]int64{}
	for _, out := range all[len(all)-1].Outputs {
		rows[out.Name] = out.OutputFacets.Statistics.Rows
		if out.Facets.Schema == nil {
			t.Errorf("no columns of %s", out.Name)
		}
	}
	if d := cmp.Diff(map[string]int64{"p.d.a": 1, "p.d.b": 2}, rows); d != "" {
		t.Error(d)
	}
	text, err := os.ReadFile(filepath.Join(o.dir, "lineage.ndjson"))
	if err != nil || bytes.ContainsAny(text, "<>") {
		t.Errorf("%v: %s", err, text)
	}
}

// A run that is stopped, or cut short, ends with ABORT; one that goes on says so.
func TestLineageOfAStoppedRun(t *testing.T) {
	o := newTold(t)
	in, feed := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	text := "job: shop\nsource: { files: { paths: ['-'] } }\nsink: { bigquery: { table: p.d.t, schema: { file: s.json } } }\n" +
		"lineage: { file: lineage.ndjson, every: 5ms }\n"
	o.put("s.json", `[{"name":"a","type":"INTEGER"}]`)
	o.put("job.yaml", text)
	p, err := Load(filepath.Join(o.dir, "job.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	pl, err := p.Prepare(ctx, Surroundings{Stdin: in, Connection: &bigquery.Connection{GRPCEndpoint: o.local.GRPC(), RESTEndpoint: o.local.REST()}, CreateDatasets: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := pl.Run(ctx, RunOptions{}); ended <- err }()
	io.WriteString(feed, "{\"a\":1}\n")
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	path := filepath.Join(o.dir, "lineage.ndjson")
	for text := []byte(nil); !bytes.Contains(text, []byte(`"RUNNING"`)); text, _ = os.ReadFile(path) {
		<-tick.C
	}
	cancel()
	feed.Close()
	<-ended
	all := o.events()
	if going := all[1]; going.Type != lineage.Running || going.Outputs[0].Facets.Schema != nil || going.Outputs[0].OutputFacets.Statistics == nil {
		t.Errorf("under way: %+v", going)
	}
	if last := all[len(all)-1]; last.Type != lineage.Abort || all[0].Type != lineage.Start || all[0].Inputs == nil || len(all[0].Inputs) != 0 || last.Run.Facets.Error != nil {
		t.Errorf("events %+v", all)
	}
}

// A server gets the events with the token; what it does with them is nothing to the job, and the token is nowhere else.
func TestLineageOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	status := http.StatusCreated
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") == "Bearer s3cret-token" {
			bodies = append(bodies, string(body))
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	t.Setenv("LINEAGE_TOKEN", " s3cret-token\n")
	o := newTold(t)
	o.put("in.ndjson", `{"a":1}`)
	section := "{ http: { url: '" + server.URL + "/?key=hidden', tokenEnv: LINEAGE_TOKEN, timeout: 2s } }"
	if _, err := o.run(t.Context(), "p.d.t", section, nil); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || !strings.Contains(bodies[1], `"eventType":"COMPLETE"`) {
		t.Errorf("the server got %q", bodies)
	}
	status = http.StatusBadRequest
	if r, err := o.run(t.Context(), "p.d.t", section, nil); err != nil || r.Outcome != engine.Finished || r.Tally.Written != 1 {
		t.Errorf("a server that takes nothing: %+v, %v", r, err)
	}
	if log := o.log.String(); strings.Contains(log, "s3cret") || strings.Contains(log, "hidden") || !strings.Contains(log, "lineage event given up") {
		t.Errorf("logged %s", log)
	}
}

// A server that does not answer does not hold the job up: it ends, and only then does the server answer.
func TestLineageServerThatHangs(t *testing.T) {
	release := make(chan struct{})
	var answered atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release; answered.Add(1) }))
	defer server.Close()
	h := new(engine.Handle)
	go func() { // ends when the job has
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for h.Status().State != engine.Ended {
			<-tick.C
		}
		close(release)
	}()
	o := newTold(t)
	o.put("in.ndjson", `{"a":1}`)
	r, err := o.run(t.Context(), "p.d.t", "{ http: { url: '"+server.URL+"', timeout: 1m } }", func(opts *RunOptions) { opts.Handle = h })
	if err != nil || r.Outcome != engine.Finished || answered.Load() != 2 {
		t.Errorf("%+v, %d answers: %v", r, answered.Load(), err)
	}
}

func TestLineageFaults(t *testing.T) {
	replace := func(section string) string { return good + "lineage: " + section + "\n" }
	for section, want := range map[string]string{
		"{}":                                     "lineage: says nowhere to tell it: expected file, http or both",
		"{ namespace: n }":                       "says nowhere to tell it",
		"{ http: {} }":                           "lineage.http.url: this key is missing",
		"{ http: { url: h } }":                   "lineage.http.url: is no address of a server",
		"{ http: { url: 'http://u:Sekret@h' } }": "lineage.http.url: has a user or a password",
		"{ http: { url: 'http://h', tokenEnv: 'Sekret-x' } }":   "lineage.http.tokenEnv: is no name of an environment variable",
		"{ http: { url: 'http://h', tokenEnv: '$Sekret' } }":    "lineage.http.tokenEnv: is no name of an environment variable",
		"{ http: { url: 'http://h', timeout: -1s } }":           "is negative",
		"{ file: f, namespace: \"a\\nb\" }":                     "lineage.namespace: ",
		"{ file: \"a\\0b\" }":                                   "lineage.file: ",
		"{ file: f, every: soon }":                              "lineage.every: ",
		"{ fil: f }":                                            "lineage.fil: unknown key",
		"{ file: f, http: { url: 'http://h', tokenEnv: A_1 } }": "",
		"{ file: f, every: 10s, namespace: 'a b/c:d' }":         "",
	} {
		got := strings.Join(faults(t, replace(section)), "\n")
		if !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "Sekret") {
			t.Errorf("%s: got %q, want %q", section, got, want)
		}
	}
	o := newTold(t)
	o.put("in.ndjson", `{"a":1}`)
	for section, want := range map[string]string{
		"{ http: { url: 'http://h', tokenEnv: SEKRET_NOT_THERE } }": "lineage.http.tokenEnv: names an environment variable that is empty or not there",
		"{ file: in.ndjson }": "lineage.file: is among the files that are read",
	} {
		_, err := o.run(t.Context(), "p.d.t", section, nil)
		if _, invalid := err.(*InvalidError); !invalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SEKRET") {
			t.Errorf("%s: %v", section, err)
		}
	}
}
