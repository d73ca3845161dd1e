package lineage

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// readEvents reads the lines of a file of events.
func readEvents(t *testing.T, path string) (types []EventType) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e RunEvent
		if json.Unmarshal([]byte(line), &e) == nil && strings.HasSuffix(line, "\n") {
			types = append(types, e.Type)
		}
	}
	return types
}

func emit(t *testing.T, o Options, events ...EventType) {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		e.Emit(NewRunEvent(event, time.Now(), Run{ID: NewRunID(time.Now())}, Job{Namespace: "n", Name: "j"}))
	}
	if err := e.Close(CloseTimeout); err != nil {
		t.Error(err)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b\n.ndjson")
	emit(t, Options{File: path}, Start, Complete)
	if err := appendText(path, `{"eventType":"RUNN`); err != nil {
		t.Fatal(err)
	}
	emit(t, Options{File: path}, Start, Fail) // goes on behind a line that a killed process left
	if got := readEvents(t, path); !slices.Equal(got, []EventType{Start, Complete, Start, Fail}) {
		t.Errorf("the file has %v", got)
	}
	before, err := os.ReadFile(path)
	if err != nil || bytes.Count(before, []byte("\n")) != 5 {
		t.Errorf("%d lines, %v", bytes.Count(before, []byte("\n")), err)
	}
}

func appendText(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// A file that cannot be written is a warning.
func TestFileThatCannotBeWritten(t *testing.T) {
	var log bytes.Buffer
	emit(t, Options{File: filepath.Join(t.TempDir(), "nowhere", "f"), Log: slog.New(slog.NewTextHandler(&log, nil))}, Start, Complete)
	if strings.Count(log.String(), "level=WARN") != 2 || !strings.Contains(log.String(), "no such file") {
		t.Errorf("logged %s", &log)
	}
}

// collector is a server of OpenLineage.
type collector struct {
	*httptest.Server
	mu       sync.Mutex // guards what follows
	statuses []int      // to answer with, then 201
	requests []*http.Request
	bodies   []string
}

func newCollector(t *testing.T, statuses ...int) *collector {
	c := &collector{statuses: statuses}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests, c.bodies = append(c.requests, r), append(c.bodies, string(body))
		status := http.StatusCreated
		if len(c.statuses) > 0 {
			status, c.statuses = c.statuses[0], c.statuses[1:]
		}
		if status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(c.Close)
	return c
}

func TestHTTP(t *testing.T) {
	c := newCollector(t)
	emit(t, Options{HTTP: &HTTP{URL: c.URL, Token: "s3cret"}}, Start, Complete)
	if len(c.requests) != 2 {
		t.Fatalf("%d requests", len(c.requests))
	}
	for i, r := range c.requests {
		if r.Method != "POST" || r.URL.Path != "/api/v1/lineage" || r.Header.Get("Authorization") != "Bearer s3cret" ||
			r.Header.Get("Content-Type") != "application/json" || !json.Valid([]byte(c.bodies[i])) {
			t.Errorf("%s %s %v: %s", r.Method, r.URL, r.Header, c.bodies[i])
		}
	}
	c = newCollector(t)
	emit(t, Options{HTTP: &HTTP{URL: c.URL + "/v1/projects/p:process?x=1"}}, Start)
	if r := c.requests[0]; r.URL.String() != "/v1/projects/p:process?x=1" || r.Header["Authorization"] != nil {
		t.Errorf("%s %v", r.URL, r.Header)
	}
}

// What a server does not take: tried again where that may help, given up where not, and nothing secret in the log.
func TestHTTPFailures(t *testing.T) {
	defer func(s time.Duration) { sending.Initial = s }(sending.Initial)
	sending.Initial = time.Millisecond
	for status, tries := range map[int]int{400: 1, 401: 1, 404: 1, 307: 1, 408: 2, 429: 2, 500: 2, 503: 2} {
		c := newCollector(t, status)
		var log bytes.Buffer
		meter := &lostMeter{}
		emit(t, Options{HTTP: &HTTP{URL: c.URL + "/p?key=hidden", Token: "s3cret"}, Meter: meter,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, Complete)
		if len(c.requests) != tries || meter.lost.n.Load() != int64(2-tries) {
			t.Errorf("%d: %d requests, %d lost: %s", status, len(c.requests), meter.lost.n.Load(), &log)
		}
		if out := log.String(); strings.Contains(out, "hidden") || strings.Contains(out, "s3cret") || !strings.Contains(out, "COMPLETE") {
			t.Errorf("%d: logged %s", status, out)
		}
	}
	// A server that is not there.
	c := newCollector(t)
	c.Close()
	var log bytes.Buffer
	emit(t, Options{HTTP: &HTTP{URL: c.URL + "/p?key=hidden", Token: "s3cret"}, Log: slog.New(slog.NewTextHandler(&log, nil))}, Start)
	if out := log.String(); strings.Contains(out, "hidden") || strings.Contains(out, "s3cret") || !strings.Contains(out, "refused") {
		t.Errorf("logged %s", out)
	}
}

type lostMeter struct{ lost count }

func (m *lostMeter) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	if in.Name == eventsLost.Name && labels[0] == (stream.Label{Key: "to", Value: "http"}) {
		return &m.lost
	}
	return stream.NoMeter.Counter(in)
}
func (m *lostMeter) Gauge(in stream.Instrument, _ ...stream.Label) stream.Gauge {
	return stream.NoMeter.Gauge(in)
}

func TestHTTPOptions(t *testing.T) {
	for _, bad := range []string{"", "h", "h:1", "ftp://h", "http://", "https://user:s3cret@h", "http://h/#f", "://", "http://h/\x7f", "http://[::1"} {
		if _, err := New(Options{HTTP: &HTTP{URL: bad}}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, token := range []string{"a b", "a\nb", "a\x00", "ä"} {
		if _, err := New(Options{HTTP: &HTTP{URL: "http://h", Token: token, Timeout: -1}}); err == nil || strings.Contains(err.Error(), token) ||
			!strings.Contains(err.Error(), "Timeout") {
			t.Errorf("%q: %v", token, err)
		}
	}
	for given, want := range map[string]string{"http://h": "http://h/api/v1/lineage", "https://h:1/": "https://h:1/api/v1/lineage", "http://h/x": "http://h/x"} {
		if u, err := ParseURL(given); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", given, u, err)
		}
	}
}
