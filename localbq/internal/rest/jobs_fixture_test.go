package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// transfers is a fixture with a bucket, b, and a dataset, d.
type transfers struct {
	*fixture
	objects *objects.Store
	mu      *sync.Mutex                 // guards reads
	reads   map[string][]objects.Object // what each job said it reads
}

var noConditions objects.Conditions

func (x *transfers) remember(job string, found []objects.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads[job] = found
}

// read is what a job said it reads.
func (x *transfers) read(job string) []objects.Object {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reads[job]
}

func setupTransfers(t *testing.T, change ...func(*Deps)) *transfers {
	t.Helper()
	kept, err := objects.New(objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.InsertBucket(objects.Bucket{Name: "b-1"}); err != nil {
		t.Fatal(err)
	}
	x := &transfers{objects: kept, mu: &sync.Mutex{}, reads: map[string][]objects.Object{}}
	wire := func(d *Deps) {
		d.Objects, d.Reads = kept, x.remember
	}
	x.fixture = setup(t, append([]func(*Deps){wire}, change...)...)
	if _, err := x.store.CreateDataset(store.DatasetRef{Project: "p", Dataset: "d"}, store.DatasetOptions{}); err != nil {
		t.Fatal(err)
	}
	return x
}

// in is the fixture for a subtest.
func (x *transfers) in(t *testing.T) *transfers {
	inner, sub := *x, *x.fixture
	sub.T, inner.fixture = t, &sub
	return &inner
}

// put makes an object of the bucket.
func (x *transfers) put(name string, content []byte) {
	x.Helper()
	w, err := x.objects.Create(context.Background(), "b-1", name)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		x.Fatal(err)
	}
}

func (x *transfers) puts(name string, lines ...string) {
	x.put(name, []byte(strings.Join(lines, "\n")+"\n"))
}

// table makes a table of fields such as "name:STRING:REQUIRED".
func (x *transfers) table(id string, fields ...string) {
	x.Helper()
	x.do("POST", "/projects/p/datasets/d/tables", fmt.Sprintf(`{"tableReference":{"tableId":%q},"schema":%s}`, id, schemaOf(fields...))).ok()
}

func schemaOf(fields ...string) string {
	var out []string
	for _, f := range fields {
		parts := append(strings.Split(f, ":"), "NULLABLE")
		out = append(out, fmt.Sprintf(`{"name":%q,"type":%q,"mode":%q}`, parts[0], parts[1], parts[2]))
	}
	return `{"fields":[` + strings.Join(out, ",") + `]}`
}

// insert sends a job's configuration, such as `"load":{…}`.
func (x *transfers) insert(id, configuration string) answer {
	x.Helper()
	return x.do("POST", "/projects/p/jobs", fmt.Sprintf(`{"jobReference":{"projectId":"p","jobId":%q},"configuration":{%s}}`, id, configuration))
}

// run sends a job and waits for its end.
func (x *transfers) run(id, configuration string) map[string]any {
	x.Helper()
	x.insert(id, configuration).ok()
	return x.wait(id)
}

func (x *transfers) wait(id string) map[string]any {
	x.Helper()
	for {
		a := x.do("GET", "/projects/p/jobs/"+id, "").ok()
		if status := a.body["status"].(map[string]any); status["state"] == "DONE" {
			return a.body
		}
	}
}

// failure is the reason and the message of a job that failed.
func failure(job map[string]any) string {
	e, _ := job["status"].(map[string]any)["errorResult"].(map[string]any)
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%v: %v", e["reason"], e["message"])
}

// done fails the test unless the job succeeds.
func (x *transfers) done(id, configuration string) map[string]any {
	x.Helper()
	job := x.run(id, configuration)
	if f := failure(job); f != "" {
		x.Fatalf("job %s failed: %s", id, f)
	}
	return job
}

// fails fails the test unless the job does, with such a message.
func (x *transfers) fails(id, configuration, message string) {
	x.Helper()
	if f := failure(x.run(id, configuration)); !strings.Contains(f, message) || f == "" {
		x.Errorf("job %s: got %q, want a failure with %q", id, f, message)
	}
}

// rows are a table's, one JSON object a line.
func (x *transfers) rows(id string) string {
	x.Helper()
	t, err := x.store.Table(store.TableRef{Project: "p", Dataset: "d", Table: id})
	if err != nil {
		x.Fatal(err)
	}
	s, err := t.Snapshot()
	if err != nil {
		x.Fatal(err)
	}
	var out strings.Builder
	for _, p := range s.Parts() {
		if err := array.RecordToJSON(p.Batch, &out); err != nil {
			x.Fatal(err)
		}
	}
	return strings.TrimSpace(out.String())
}

func (x *transfers) wantRows(id string, rows ...string) {
	x.Helper()
	if got, want := x.rows(id), strings.Join(rows, "\n"); got != want {
		x.Errorf("table %s holds\n%s, want\n%s", id, got, want)
	}
}

// columns are a table's, as name:type:mode.
func (x *transfers) columns(id string) string {
	x.Helper()
	t, err := x.store.Table(store.TableRef{Project: "p", Dataset: "d", Table: id})
	if err != nil {
		x.Fatal(err)
	}
	var out []string
	for _, f := range t.Info().Schema.Fields {
		out = append(out, f.Name+":"+f.Type.String()+":"+f.Mode.String())
	}
	return strings.Join(out, " ")
}

// loading is the configuration of a load job; more are further fields.
func loading(table, format, uri string, more ...string) string {
	fields := append([]string{
		fmt.Sprintf(`"destinationTable":{"projectId":"p","datasetId":"d","tableId":%q}`, table),
		fmt.Sprintf(`"sourceFormat":%q`, format), fmt.Sprintf(`"sourceUris":[%q]`, uri),
	}, more...)
	return `"load":{` + strings.Join(fields, ",") + `}`
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
