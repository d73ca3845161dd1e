package tableadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is one scripted answer; code 0 resets the connection.
type answer struct {
	code   int
	reason string
	body   string
}

// service answers calls from a script, the last answer for ever, and notes the calls. What a healthy service answers is
// tested against localbq; this is for answers it gives only on a bad day.
type service struct {
	mu     sync.Mutex // guards what follows
	script []answer
	calls  []string
	bodies []string
	match  []string // If-Match of the calls
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	s.bodies = append(s.bodies, string(body))
	s.match = append(s.match, r.Header.Get("If-Match"))
	a := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	s.mu.Unlock()
	if a.code == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	if a.code >= 400 {
		fmt.Fprintf(w, `{"error":{"code":%d,"message":"no","errors":[{"reason":%q,"message":"no"}]}}`, a.code, a.reason)
		return
	}
	io.WriteString(w, a.body)
}

func start(t *testing.T, script ...answer) (*service, *Admin, *int) {
	t.Helper()
	s := &service{script: script}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	rest, err := gcp.Connection{RESTEndpoint: srv.Listener.Addr().String()}.REST(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rest.Close)
	sleeps := new(int)
	pacer := retry.Pacer{Sleep: func(ctx context.Context, _ time.Duration) error { *sleeps++; return ctx.Err() }}
	schedule := retry.Schedule{Initial: time.Second, Max: time.Second, Attempts: 3}
	return s, New(rest, schedule, pacer, slog.New(slog.DiscardHandler)), sleeps
}

var (
	dst    = table.Destination{Project: "p", Dataset: "d", Table: "t"}
	schema = &table.Schema{Fields: []table.Field{{Name: "a", Type: table.String}}}
	ok     = answer{code: 200, body: "{}"}
)

func TestCreate(t *testing.T) {
	t.Parallel()
	limited := answer{code: 403, reason: "rateLimitExceeded"}
	for name, c := range map[string]struct {
		script  []answer
		calls   int
		created bool
		fails   bool
		spent   bool
	}{
		"first time":                    {[]answer{ok}, 1, true, false, false},
		"SW-59_409":                     {[]answer{{code: 409, reason: "duplicate"}}, 1, false, false, false},
		"SW-60_rate_limited_twice":      {[]answer{limited, limited, ok}, 3, true, false, false},
		"SW-60_429":                     {[]answer{{code: 429}, ok}, 2, true, false, false},
		"SW-60_503":                     {[]answer{{code: 503, reason: "backendError"}, ok}, 2, true, false, false},
		"SW-60_reset_connection":        {[]answer{{}, ok}, 2, true, false, false},
		"500, 502 and 504":              {[]answer{{code: 500}, {code: 504}, ok}, 3, true, false, false},
		"SW-61_rate_limited_always":     {[]answer{limited}, 3, false, true, true},
		"SW-62_quotaExceeded":           {[]answer{{code: 403, reason: "quotaExceeded"}}, 1, false, true, false},
		"SW-62_quotaExceeded_under_429": {[]answer{{code: 429, reason: "quotaExceeded"}}, 1, false, true, false},
		"SW-62_accessDenied":            {[]answer{{code: 403, reason: "accessDenied"}}, 1, false, true, false},
		"SW-62_invalid":                 {[]answer{{code: 400, reason: "invalid"}}, 1, false, true, false},
		"SW-63_503_then_409":            {[]answer{{code: 503}, {code: 409}}, 2, false, false, false},
		"no dataset":                    {[]answer{{code: 404, reason: "notFound"}}, 1, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a, sleeps := start(t, c.script...)
			created, err := a.Create(t.Context(), dst, schema, table.CreateOptions{})
			if created != c.created || (err != nil) != c.fails {
				t.Errorf("created %v, error %v", created, err)
			}
			if len(s.calls) != c.calls || *sleeps != c.calls-1 {
				t.Errorf("%d calls and %d sleeps: %v", len(s.calls), *sleeps, s.calls)
			}
			if errors.Is(err, retry.ErrBudgetSpent) != c.spent {
				t.Errorf("budget: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "create table p.d.t") {
				t.Errorf("%q does not say what failed", err)
			}
		})
	}
}

func TestCreateSendsTheTable(t *testing.T) {
	t.Parallel()
	s, a, _ := start(t, ok)
	a.KMSKeyName = "projects/k"
	d := dst
	d.Table = "t$20260101"
	if _, err := a.Create(t.Context(), d, schema, table.CreateOptions{Cluster: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(s.bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	err := json.Unmarshal([]byte(`{"tableReference":{"projectId":"p","datasetId":"d","tableId":"t"},
		"schema":{"fields":[{"name":"a","type":"STRING","mode":"NULLABLE"}]},"clustering":{"fields":["a"]},
		"encryptionConfiguration":{"kmsKeyName":"projects/k"}}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want := []string{"POST /bigquery/v2/projects/p/datasets/d/tables"}; !cmp.Equal(s.calls, want) {
		t.Errorf("calls %v", s.calls)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	body := `{"etag":"e1","location":"EU","type":"TABLE","numRows":"7","schema":{"fields":[{"name":"a","type":"STRING"}]},
		"timePartitioning":{"type":"DAY"}}`
	s, a, _ := start(t, answer{code: 502}, answer{code: 200, body: body})
	got, err := a.Describe(t.Context(), dst)
	if err != nil {
		t.Fatal(err)
	}
	want := &Description{Schema: schema, ETag: "e1", Location: "EU", Kind: "TABLE", NumRows: 7,
		Options: table.CreateOptions{Partition: table.Partition{Type: table.PartitionDay}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want := "GET /bigquery/v2/projects/p/datasets/d/tables/t"; s.calls[1] != want {
		t.Errorf("calls %v", s.calls)
	}

	_, a, _ = start(t, answer{code: 404, reason: "notFound"})
	if _, err := a.Describe(t.Context(), dst); !errors.Is(err, ErrAbsent) {
		t.Errorf("absent table: %v", err)
	}
}

func TestEnsureDataset(t *testing.T) {
	t.Parallel()
	for _, answered := range []answer{ok, {code: 409, reason: "duplicate"}} {
		s, a, _ := start(t, answered)
		if err := a.EnsureDataset(t.Context(), "p", "d", "EU"); err != nil {
			t.Error(err)
		}
		if !strings.Contains(s.bodies[0], `"location":"EU"`) {
			t.Errorf("sent %s", s.bodies[0])
		}
	}
}

func TestEndedContextIsNotRetried(t *testing.T) {
	t.Parallel()
	s, a, sleeps := start(t, answer{code: 503})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("lane stopped")
	cancel(cause)
	_, err := a.Create(ctx, dst, schema, table.CreateOptions{})
	if !errors.Is(err, cause) || *sleeps != 0 || len(s.calls) != 0 {
		t.Errorf("got %v after %d calls and %d sleeps", err, len(s.calls), *sleeps)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []answer
		fails  bool
	}{
		"there":         {[]answer{{code: 204}}, false},
		"not there":     {[]answer{{code: 404, reason: "notFound"}}, false},
		"a lost answer": {[]answer{{}, {code: 404, reason: "notFound"}}, false},
		"a bad moment":  {[]answer{{code: 503}, {code: 204}}, false},
		"denied":        {[]answer{{code: 403, reason: "accessDenied"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, _ := start(t, c.script...)
			if err := a.Delete(t.Context(), dst); (err != nil) != c.fails {
				t.Error(err)
			}
		})
	}
}

func TestExists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []answer
		there  bool
		fails  bool
	}{
		"there":        {[]answer{ok}, true, false},
		"not there":    {[]answer{{code: 404, reason: "notFound"}}, false, false},
		"a bad moment": {[]answer{{code: 503}, ok}, true, false},
		"denied":       {[]answer{{code: 403, reason: "accessDenied"}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, _ := start(t, c.script...)
			if there, err := a.Exists(t.Context(), dst); there != c.there || (err != nil) != c.fails {
				t.Errorf("%v, %v", there, err)
			}
		})
	}
}
