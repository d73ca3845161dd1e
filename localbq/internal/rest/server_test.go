package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"
	"google.golang.org/api/option"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a REST face over an empty store, served over HTTP.
type fixture struct {
	*testing.T
	store  *store.Store
	clock  *clock.Manual
	server *httptest.Server
	url    string // with the prefix
}

func setup(t *testing.T, change ...func(*Deps)) *fixture {
	manual := clock.NewManual(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	kept, err := store.Open(store.Options{Clock: manual})
	if err != nil {
		t.Fatal(err)
	}
	deps := Deps{Store: kept, Clock: manual, NoQueries: "tests of this room have none"}
	for _, c := range change {
		c(&deps)
	}
	face := New(deps)
	server := httptest.NewServer(face)
	t.Cleanup(func() {
		server.Close()
		if err := face.Close(); err != nil {
			t.Error(err)
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{T: t, store: kept, clock: manual, server: server, url: server.URL + "/bigquery/v2"}
}

// official is the official client, told of the endpoint and nothing else.
func (f *fixture) official() *bigquery.Client {
	c, err := bigquery.NewClient(f.Context(), "p", option.WithEndpoint(f.server.URL), option.WithoutAuthentication(),
		option.WithHTTPClient(f.server.Client()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	return c
}

// answer is what a call got.
type answer struct {
	t      *testing.T
	code   int
	header http.Header
	body   map[string]any
	raw    string
}

// do makes a call. body is JSON text, "" for none; headers are "Name: value".
func (f *fixture) do(method, path, body string, headers ...string) answer {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := f.server.Client().Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	a := answer{t: f.T, code: res.StatusCode, header: res.Header, raw: string(raw)}
	if len(raw) > 0 && json.Valid(raw) {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			f.Fatal(err)
		}
	}
	return a
}

// ok fails the test unless the call succeeded.
func (a answer) ok() answer {
	a.t.Helper()
	if a.code != http.StatusOK {
		a.t.Fatalf("got %d: %s", a.code, a.raw)
	}
	return a
}

// refused checks code, reason and message of an error body, everything in it.
func (a answer) refused(code int, reason, message string) {
	a.t.Helper()
	e, _ := a.body["error"].(map[string]any)
	if a.code != code || e == nil {
		a.t.Fatalf("got %d %s, want %d %s %q", a.code, a.raw, code, reason, message)
	}
	first := e["errors"].([]any)[0].(map[string]any)
	if int(e["code"].(float64)) != code || first["reason"] != reason || first["domain"] != "global" || first["message"] != e["message"] {
		a.t.Errorf("got %s, want %d %s", a.raw, code, reason)
	}
	if e["message"] != message {
		a.t.Errorf("message\n\t got %s\n\twant %s", e["message"], message)
	}
}

// at is the value at a path of keys.
func (a answer) at(path ...string) any {
	var v any = a.body
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// write adds rows, given as a JSON array in Arrow's form, to a table.
func (f *fixture) write(ref store.TableRef, rows string) {
	f.Helper()
	t, err := f.store.Table(ref)
	if err != nil {
		f.Fatal(err)
	}
	info := t.Info()
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, info.Schema.Arrow(), strings.NewReader(rows))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := t.Write(store.Rows{Info: info, Batches: []arrow.RecordBatch{batch}}); err != nil {
		f.Fatal(err)
	}
}

// dataset makes p:d.
func (f *fixture) dataset() {
	f.Helper()
	f.do("POST", "/projects/p/datasets", `{"datasetReference": {"datasetId": "d"}}`).ok()
}

func compact(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
