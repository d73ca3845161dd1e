package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/internal/telemetry"
	"github.com/millrace-dev/millrace/stream"
)

const hostileName = "</script><b>\"'\x1b[31m\xff\u2028"

// fullStatus has something in every field.
func fullStatus(at time.Time) (engine.Status, []tableReport) {
	return engine.Status{
			Job: "j", State: engine.Running, Started: at,
			Tally:      stream.Tally{Read: 20, Written: 9, DeadLettered: 3, Skipped: 2, Failed: 1, Bytes: 900},
			InputBytes: 800, TotalBytes: 1600,
			Lanes: []engine.LaneStatus{{Lane: 1, Doing: engine.LaneReading, Split: hostileName, Position: 77,
				Tally: stream.Tally{Read: 10, Written: 4, DeadLettered: 2, Skipped: 1, Bytes: 500}}},
			Splits:     engine.SplitStatus{Assigned: 5, Finished: 4},
			Checkpoint: engine.CheckpointStatus{ID: 12},
			Recent: []engine.CheckpointStatus{{ID: 12, Taken: at, Savepoint: true, Bytes: 321, Aligned: 40 * time.Millisecond,
				Duration: 55 * time.Millisecond}},
			Checkpoints: 3, FailedCheckpoints: 1, ResumedFrom: 9, StartedAnew: true, Restarts: 2,
			LastFailure: errors.New(hostileName), LastFailureAt: at,
		}, []tableReport{{Destination: table.Destination{Project: "p", Dataset: "d", Table: "t"}, Rows: 9, Bytes: 900, DeadLettered: 3, Created: true,
			Changes: []string{hostileName}, AppendErrors: 4, AppendRetries: 5, LastError: &appendFailure{At: at, Code: "UNAVAILABLE", Text: hostileName}}}
}

// TestJobStatus holds every field of /api/job.
func TestJobStatus(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status, tables := fullStatus(at)
	nothingMissing(t, "Status", reflect.ValueOf(status))
	nothingMissing(t, "tables", reflect.ValueOf(tables))
	reading := &bigquery.SourceReport{Session: "s", Expires: at, Streams: 8, Waiting: 3, Reading: []bigquery.ReadingReport{{Stream: hostileName, Received: 70, Progress: 0.5,
		Throttled: 25, Retries: 2, LastError: errors.New(hostileName), LastErrorAt: at, Since: at}}}
	nothingMissing(t, "reading", reflect.ValueOf(*reading))
	w := httptest.NewRecorder()
	answer(w, http.StatusOK, jobStatus(status, tables, reading))
	for _, r := range w.Body.String() {
		if r == '<' || r == '>' || r == '\x1b' || r == '\u2028' {
			t.Errorf("the answer has %q as it is", r)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	clean := strings.ToValidUTF8(hostileName, "\uFFFD")
	want := map[string]any{
		"job": "j", "state": "running", "started": "2026-01-02T03:04:05Z",
		"read": 20., "written": 9., "dead_lettered": 3., "skipped": 2., "failed": 1., "buffered": 5., "bytes": 900.,
		"input_bytes": 800., "total_bytes": 1600.,
		"lanes": []any{map[string]any{"lane": 1., "doing": "reading", "split": clean, "position": 77., "read": 10., "written": 4.,
			"dead_lettered": 2., "skipped": 1., "buffered": 3., "bytes": 500.}},
		"splits": map[string]any{"assigned": 5., "finished": 4.},
		"reading": map[string]any{"session": "s", "expires": "2026-01-02T03:04:05Z", "streams": 8., "waiting": 3., "open": []any{map[string]any{
			"stream": clean, "received": 70., "progress": 0.5, "throttled": 25., "retries": 2., "since": "2026-01-02T03:04:05Z",
			"last_error": map[string]any{"at": "2026-01-02T03:04:05Z", "code": "UNCLASSIFIED", "message": clean}}}},
		"destinations": []any{map[string]any{"destination": "p.d.t", "rows": 9., "bytes": 900., "dead_lettered": 3., "created": true,
			"changes":       []any{clean},
			"append_errors": 4., "append_retries": 5.,
			"last_error": map[string]any{"at": "2026-01-02T03:04:05Z", "code": "UNAVAILABLE", "message": clean}}},
		"checkpoint": 12., "checkpoints": 3., "failed_checkpoints": 1.,
		"recent_checkpoints": []any{map[string]any{"id": 12., "taken": "2026-01-02T03:04:05Z", "savepoint": true, "bytes": 321.,
			"aligned_ms": 40., "duration_ms": 55.}},
		"resumed_from": 9., "started_anew": true, "restarts": 2., "last_failure": clean, "last_failure_at": "2026-01-02T03:04:05Z",
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	empty := httptest.NewRecorder()
	answer(empty, http.StatusOK, jobStatus(engine.Status{}, nil, nil))
	for _, list := range []string{`"lanes":[]`, `"destinations":[]`, `"recent_checkpoints":[]`} {
		if !strings.Contains(empty.Body.String(), list) {
			t.Errorf("no %s in %s", list, empty.Body)
		}
	}
}

// nothingMissing checks that the example has something in every field, so that none is added without a look here.
func nothingMissing(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			nothingMissing(t, path, v.Index(i))
		}
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok || v.Type().Name() == "CheckpointStatus" && path == "Status.Checkpoint" {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Field(i).IsZero() && f.Name != "Failed" {
				t.Errorf("%s.%s has nothing in this test", path, f.Name)
			}
			nothingMissing(t, path+"."+f.Name, v.Field(i))
		}
	}
}

// TestHTTPPage holds docs/reference/http.md to the fields, both ways.
func TestHTTPPage(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\|").FindAllStringSubmatch(page(t, "http.md"), -1) {
		documented[m[1]] = true
	}
	known := map[string]bool{}
	jsonFields(reflect.TypeFor[jobStatusJSON](), "", known)
	for f := range known {
		if !documented[f] {
			t.Errorf("%s is not on the page", f)
		}
	}
	for f := range documented {
		if !known[f] {
			t.Errorf("the page has %s, which /api/job has not", f)
		}
	}
}

func jsonFields(t reflect.Type, parent string, into map[string]bool) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at, of := parent+name, f.Type
		switch {
		case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
			jsonFields(of.Elem(), at+"[].", into)
		case of.Kind() == reflect.Pointer:
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]() {
			jsonFields(of, at+".", into)
		}
		into[at] = true
	}
}

// ask makes a request of a server as it would come over the network.
func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:9090"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWebPagesAreRefused(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	g := &webGuard{[]string{"jobs.example.com"}, served}
	for _, c := range []struct {
		headers []string
		ok      bool
	}{
		{[]string{"Host", "127.0.0.1:9090"}, true},
		{[]string{"Host", "[::1]:9090"}, true},
		{[]string{"Host", "localhost:9090"}, true},
		{[]string{"Host", "LOCALHOST."}, true},
		{[]string{"Host", "a.localhost"}, true},
		{[]string{"Host", "prometheus-target:9090"}, true},
		{[]string{"Host", "Jobs.Example.com:9090"}, true},
		{[]string{"Host", "evil.example.com:9090"}, false},
		{[]string{"Host", "127.0.0.1.evil.com"}, false},
		{[]string{"Host", "evil.com"}, false},
		{[]string{"Host", "localhost", "Origin", "http://localhost"}, true},
		{[]string{"Host", "localhost", "Origin", "http://evil.com"}, false},
		{[]string{"Host", "localhost", "Origin", "null"}, false},
		{[]string{"Host", "localhost", "Origin", "://"}, false},
		{[]string{"Host", "localhost", "Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Host", "localhost", "Sec-Fetch-Site", "same-site"}, false},
		{[]string{"Host", "localhost", "Sec-Fetch-Site", "same-origin"}, true},
		{[]string{"Host", "localhost", "Sec-Fetch-Site", "none"}, true},
	} {
		w := ask(g, "GET", "/", c.headers...)
		if got := w.Code == http.StatusOK && w.Body.String() == "served"; got != c.ok {
			t.Errorf("%q: answered %d %s", c.headers, w.Code, w.Body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: %v", c.headers, w.Header())
		}
	}
}

func TestReadyAndHealthy(t *testing.T) {
	meters, err := telemetry.New()
	if err != nil {
		t.Fatal(err)
	}
	defer meters.Close(context.Background())
	w := &watcher{name: "j", handle: new(engine.Handle), meters: meters}
	h := w.routes("")
	if r := ask(h, "GET", "/api/job"); r.Code != http.StatusOK || !strings.HasPrefix(r.Body.String(), `{"job":"j","state":"not started",`) {
		t.Errorf("before it begins: %d %s", r.Code, r.Body)
	}
	if r := ask(h, "GET", "/healthz"); r.Code != http.StatusOK || r.Body.String() != "ok\n" {
		t.Errorf("healthz: %d %s", r.Code, r.Body)
	}
	if r := ask(h, "GET", "/readyz"); r.Code != http.StatusServiceUnavailable || r.Body.String() != "not started\n" {
		t.Errorf("readyz: %d %s", r.Code, r.Body)
	}
	for _, c := range [][2]string{{"POST", "/metrics"}, {"POST", "/healthz"}, {"PUT", "/api/job"}, {"DELETE", "/api/job"}, {"GET", "/api/stop"}, {"GET", "/api/savepoint"}} {
		if r := ask(h, c[0], c[1]); r.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", c[0], c[1], r.Code)
		}
	}
	for _, path := range []string{"/", "/api", "/api/job/x", "/debug/pprof/", "/api/../metrics/x"} {
		if r := ask(h, "GET", path); r.Code == http.StatusOK {
			t.Errorf("GET %s: %d", path, r.Code)
		}
	}
}

func TestOnlyTheTokenSteers(t *testing.T) {
	for _, verb := range []string{"/api/savepoint", "/api/stop"} {
		for _, c := range []struct {
			token, header string
			want          int
		}{
			{"", "", http.StatusForbidden},
			{"", "Bearer ", http.StatusForbidden},
			{"s3cret", "", http.StatusUnauthorized},
			{"s3cret", "Bearer", http.StatusUnauthorized},
			{"s3cret", "Bearer s3cre", http.StatusUnauthorized},
			{"s3cret", "Bearer s3crets", http.StatusUnauthorized},
			{"s3cret", "Basic s3cret", http.StatusUnauthorized},
			{"s3cret", "s3cret", http.StatusUnauthorized},
		} {
			w := &watcher{handle: new(engine.Handle), meters: new(telemetry.Meter)}
			h := (&control{w.handle, c.token})
			do := h.stop
			if verb == "/api/savepoint" {
				do = h.savepoint
			}
			r := ask(h.withToken(do), "POST", verb, "Authorization", c.header)
			if r.Code != c.want || strings.Contains(r.Body.String(), "s3cret") {
				t.Errorf("POST %s with %q where the token is %q: %d %s", verb, c.header, c.token, r.Code, r.Body)
			}
		}
	}
}

// liveJob is a command that reads standard input until the test ends it.
type liveJob struct {
	*testing.T
	input          *io.PipeWriter
	stdout, stderr syncBuffer
	base           string
	code           chan int
}

type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var served = regexp.MustCompile(`http://([^/]+)/metrics`)

func startLive(t *testing.T, more ...string) *liveJob {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "schema.json"), `[{"name":"a","type":"INTEGER"}]`)
	in, input := io.Pipe()
	l := &liveJob{T: t, input: input, code: make(chan int, 1)}
	args := append([]string{"write", "p.d.t", "-", "--schema", dir + "/schema.json", "--local=" + dir + "/bq", "--parallelism", "1",
		"--http", "127.0.0.1:0", "--dead-letters", dir + "/dead"}, more...)
	go func() { l.code <- run(context.Background(), args, in, &l.stdout, &l.stderr) }() // joined by end
	l.until(func() bool { return served.MatchString(l.stderr.String()) })
	l.base = "http://" + served.FindStringSubmatch(l.stderr.String())[1]
	return l
}

// until waits for something that the command is about to do.
func (l *liveJob) until(is func() bool) {
	l.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !is(); {
		select {
		case <-tick.C:
		case code := <-l.code:
			l.Fatalf("the command ended with %d: %s", code, l.stderr.String())
		case <-deadline:
			l.Fatalf("it did not happen: %s", l.stderr.String())
		}
	}
}

func (l *liveJob) write(lines string) {
	l.Helper()
	if _, err := io.WriteString(l.input, lines); err != nil {
		l.Fatal(err)
	}
}

func (l *liveJob) call(method, path string, headers ...string) (int, string) {
	l.Helper()
	r, err := http.NewRequestWithContext(l.Context(), method, l.base+path, nil)
	if err != nil {
		l.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		l.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (l *liveJob) status() (s jobStatusJSON) {
	l.Helper()
	code, body := l.call("GET", "/api/job")
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != http.StatusOK {
		l.Fatalf("%d %s: %v", code, body, err)
	}
	return s
}

// end waits for the command to end.
func (l *liveJob) end() int {
	l.Helper()
	select {
	case code := <-l.code:
		return code
	case <-time.After(time.Minute):
		l.Fatalf("it does not end: %s", l.stderr.String())
	}
	return -1
}

// A running job over HTTP: what it shows, what it counts, and the two things that can be done to it.
func TestWatchingAJob(t *testing.T) {
	t.Setenv("JOB_TOKEN", "s3cret")
	l := startLive(t, "--http-token-env", "JOB_TOKEN", "--log-format", "json", "-v")
	l.write("{\"a\":1}\n{\"a\":2}\nnonsense\n")
	l.until(func() bool { return l.status().Read == 3 })
	code, ready := l.call("GET", "/readyz")
	if code != http.StatusOK || ready != "ok\n" {
		t.Errorf("readyz: %d %s", code, ready)
	}
	if code, body := l.call("POST", "/api/savepoint"); code != http.StatusUnauthorized {
		t.Errorf("a savepoint without the token: %d %s", code, body)
	}
	if code, body := l.call("POST", "/api/stop", "Authorization", "Bearer s3cret", "Origin", "http://evil.example"); code != http.StatusForbidden {
		t.Errorf("a page stops a job: %d %s", code, body)
	}
	code, body := l.call("POST", "/api/savepoint", "Authorization", "Bearer s3cret")
	if code != http.StatusOK || !regexp.MustCompile(`^{"checkpoint":\d+}\n$`).MatchString(body) {
		t.Errorf("savepoint: %d %s", code, body)
	}
	s := l.status()
	if s.State != "running" || s.Written != 2 || s.DeadLettered != 1 || s.Buffered != 0 || len(s.Lanes) != 1 || s.Lanes[0].Split == "" ||
		s.Lanes[0].Position == 0 || s.Splits.Assigned != 1 || s.Splits.Finished != 0 {
		t.Errorf("status %+v", s)
	}
	newest := s.RecentCheckpoints[len(s.RecentCheckpoints)-1]
	if newest.ID != s.Checkpoint || newest.Bytes == 0 || newest.Taken.IsZero() || !s.RecentCheckpoints[0].Savepoint && s.Checkpoints == 1 {
		t.Errorf("checkpoints %+v", s.RecentCheckpoints)
	}
	if len(s.Destinations) != 1 {
		t.Fatalf("destinations %+v", s.Destinations)
	}
	d := s.Destinations[0]
	// The table was not there: the append that found that out is an error, and its repair a retry.
	if d.Destination != "p.d.t" || d.Rows != 2 || d.Bytes == 0 || d.DeadLettered != 1 || !d.Created || d.AppendErrors+d.AppendRetries > 2 ||
		(d.AppendErrors > 0) != (d.LastError != nil) {
		t.Errorf("destination %+v", d)
	}
	for _, at := range []string{l.base, strings.TrimPrefix(l.base, "http://")} {
		var stdout, stderr syncBuffer
		code := run(t.Context(), []string{"checkpoints", "savepoint", "--http", at, "--http-token-env", "JOB_TOKEN"}, nil, &stdout, &stderr)
		if want := fmt.Sprintln(l.status().Checkpoint); code != exitDone || stdout.String() != want {
			t.Errorf("savepoint of %s: %d, %q, want %q: %s", at, code, stdout.String(), want, stderr.String())
		}
	}
	checkMetrics(t, l)
	if code, body := l.call("POST", "/api/stop", "Authorization", "Bearer s3cret"); code != http.StatusAccepted || body != "{\"state\":\"stopping\"}\n" {
		t.Errorf("stop: %d %s", code, body)
	}
	if code := l.end(); code != exitFailed { // the input did not end
		t.Errorf("ended with %d", code)
	}
	l.input.Close()
	checkLog(t, l.stderr.String())
	if strings.Contains(l.stderr.String()+l.stdout.String(), "s3cret") {
		t.Errorf("the token is told: %s%s", l.stderr.String(), l.stdout.String())
	}
}

// What asks for a savepoint tells its token to nobody but whom it asked, and believes no answer that is not a job's.
func TestSavepointOfOthers(t *testing.T) {
	t.Setenv("JOB_TOKEN", "s3cret")
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "307 Temporary Redirect"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "not as a job of millrace does"},
		{"no checkpoint", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }, "not as a job of millrace does"},
		{"no end", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"error":"`+strings.Repeat("x", 1<<20))
		}, "not as a job of millrace does"},
		{"another token", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusUnauthorized, failure{"expected\x1b[31m the header"})
		}, "expected·[31m the header"},
		{"an end", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusConflict, failure{engine.ErrEnded.Error()})
		}, engine.ErrEnded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			var stdout, stderr syncBuffer
			code := run(t.Context(), []string{"checkpoints", "savepoint", "--http", server.URL, "--http-token-env", "JOB_TOKEN"}, nil, &stdout, &stderr)
			if code != exitFailed || !strings.Contains(stderr.String(), c.want) || strings.Contains(stderr.String(), "s3cret") || stdout.String() != "" {
				t.Errorf("%d %s%s", code, stdout.String(), stderr.String())
			}
		})
	}
	if asked.Load() > 0 {
		t.Error("another server was asked")
	}
}

// checkLog holds a log in JSON to the reference page: every line is an object, with attributes of the page.
func checkLog(t *testing.T, log string) {
	t.Helper()
	known := map[string]bool{"msg": true, "reason": true}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+`(?:, `[a-z_]+`)*) \\|").FindAllStringSubmatch(page(t, "logs.md"), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			known[strings.Trim(name, "`")] = true
		}
	}
	lines := 0
	for line := range strings.Lines(log) {
		var attributes map[string]any
		if err := json.Unmarshal([]byte(line), &attributes); err != nil {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
		for name := range attributes {
			if !known[name] {
				t.Errorf("%s is not on the page: %s", name, line)
			}
		}
		lines++
	}
	if lines < 5 {
		t.Errorf("%d lines: %s", lines, log)
	}
}

// checkMetrics holds what is served to the reference page: names, kinds, meanings.
func checkMetrics(t *testing.T, l *liveJob) {
	t.Helper()
	_, text := l.call("GET", "/metrics")
	type metric struct{ kind, help string }
	want := map[string]metric{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(millrace[^`]+)` \\| (counter|gauge) \\| [^|]* \\| (.*) \\|$").FindAllStringSubmatch(page(t, "metrics.md"), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		if m[2] == "counter" {
			name += "_total"
		}
		want[name] = metric{m[2], m[3]}
	}
	got := map[string]metric{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (millrace\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		got[m[1]] = metric{kind: m[2]}
	}
	for _, m := range regexp.MustCompile(`(?m)^# HELP (millrace\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		got[m[1]] = metric{got[m[1]].kind, m[2]}
	}
	for name, m := range got {
		if want[name] != m {
			t.Errorf("/metrics has %s %+v, the page %+v", name, m, want[name])
		}
	}
	delete(want, "millrace_bigquery_sink_in_flight_appends") // of another method
	for name := range want {
		if _, ok := got[name]; !ok && strings.HasPrefix(name, "millrace_engine_") {
			t.Errorf("%s is not served", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(millrace_[a-z]+_)\w*\{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		var labels []string
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		want := map[string]string{"millrace_engine_": "job", "millrace_bigquery_": "job lane write_method"}[m[1]]
		if got := strings.Join(labels, " "); want != "" && got != want && got != "code "+want {
			t.Errorf("%s has the labels %s, want %s", m[0], got, want)
		}
	}
	for _, series := range []string{
		`millrace_engine_records_read_total{job="write to p.d.t"} 3`,
		`millrace_engine_records_dead_lettered_total{job="write to p.d.t"} 1`,
		`millrace_bigquery_sink_records_sent_total{job="write to p.d.t",lane="0",write_method="default"} 2`,
		`millrace_bigquery_sink_send_errors_total{job="write to p.d.t",lane="0",write_method="default"} 1`,
		`millrace_bigquery_sink_open_destinations{job="write to p.d.t",lane="0",write_method="default"} 1`,
	} {
		if !strings.Contains(text, series+"\n") {
			t.Errorf("no %s in\n%s", series, text)
		}
	}
}

// With the log as text, an error is told once, and a job that fails tells it at its end.
func TestFinalErrorIsToldOnce(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "in.ndjson"), "{\"a\":1}\n{\"a\":\n")
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"write", "p.d.t", dir + "/in.ndjson", "--local=" + dir + "/bq", "--sample", "1", "--log-format", format,
			"--checkpoint-dir", "mem://"}, strings.NewReader(""), &stdout, &stderr)
		if n := strings.Count(stderr.String(), "R-JSON"); code != exitFailed || n != 1 {
			t.Errorf("%s: ended with %d and told the error %d times: %s", format, code, n, &stderr)
		}
		for line := range strings.Lines(stderr.String()) {
			if format == "json" && !json.Valid([]byte(line)) {
				t.Errorf("a line of the log is no JSON: %s", line)
			}
		}
	}
}

func TestHTTPFlags(t *testing.T) {
	t.Setenv("EMPTY", " ")
	os.Unsetenv("ABSENT")
	for want, args := range map[string][]string{
		"--http-token-env and --http-allow-host go with --http":                   {"--http-token-env", "HOME"},
		"--http-token-env EMPTY: the environment variable is empty or not there":  {"--http", ":0", "--http-token-env", "EMPTY"},
		"--http-token-env ABSENT: the environment variable is empty or not there": {"--http", ":0", "--http-token-env", "ABSENT"},
		"--http: listen tcp": {"--http", "nonsense"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"write", "p.d.t", "-", "--schema", "table", "--grpc-endpoint", "127.0.0.1:1", "--rest-endpoint", "127.0.0.1:1"}, args...),
			strings.NewReader(""), &out, &out)
		if code != exitUsage || !strings.Contains(out.String(), cmp.Or(want)) {
			t.Errorf("%q: ended with %d and said %s", args, code, &out)
		}
	}
}
