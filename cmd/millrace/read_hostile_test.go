package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// told is a service that takes note of what it is asked, and refuses it: what is sent, and not what comes of it, is looked at.
type told struct {
	storagepb.UnimplementedBigQueryReadServer
	rest, grpc string

	mu       sync.Mutex // guards what follows
	sessions []*storagepb.CreateReadSessionRequest
	queries  []string
}

func startTold(t *testing.T) *told {
	t.Helper()
	s := &told{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	storagepb.RegisterBigQueryReadServer(server, s)
	go func() { _ = server.Serve(l) }() // ends with Stop
	t.Cleanup(server.Stop)
	rest := httptest.NewServer(s)
	t.Cleanup(rest.Close)
	s.grpc, s.rest = l.Addr().String(), rest.Listener.Addr().String()
	return s
}

func (s *told) CreateReadSession(_ context.Context, r *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, r)
	return nil, status.Error(codes.InvalidArgument, "refused")
}

// ServeHTTP says that every table is a view, and refuses queries.
func (s *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(`{"type":"VIEW"}`))
		return
	}
	var job struct {
		Configuration struct {
			Query struct{ Query string }
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&job)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, job.Configuration.Query.Query)
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error":{"code":400,"message":"refused","errors":[{"reason":"invalidQuery","message":"refused"}]}}`))
}

// read runs the command, and answers what it sent. Nothing is sent by one that ends with 2, and something by all others.
func (s *told) read(t *testing.T, args ...string) (session *storagepb.CreateReadSessionRequest, query string) {
	t.Helper()
	s.mu.Lock()
	s.sessions, s.queries = nil, nil
	s.mu.Unlock()
	var out, errs bytes.Buffer
	args = append([]string{"read", "--project", "pay", "--rest-endpoint", s.rest, "--grpc-endpoint", s.grpc}, args...)
	code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent := len(s.sessions) + len(s.queries); code == 2 && sent != 0 || code == 1 && sent != 1 || code == 0 {
		t.Errorf("%q ended with %d and sent %d requests: %s", args, code, sent, &errs)
	}
	for _, r := range s.sessions {
		session = r
	}
	for _, q := range s.queries {
		query = q
	}
	return session, query
}

// hostile are texts that end names, comments and statements where they are pasted in.
var hostile = []string{"a`b", "`", "``", "a` FROM x; --", "a\\", "\\`", "a'b", "''", `a"b`, "a\nb", "a\r\nb", "a\x00b", "--", "-- a", "/* a", "a */ b", "#", ";",
	"a; DROP TABLE t", "a b", " ", "*", "../x", "a/b", "@p", "?", "${a}", "{a}", "%s", "\xff", "é", "\u202ea", "(SELECT 1)", strings.Repeat("a", 5000)}

// TestHostileReads: whatever is typed for a name or a condition is sent as that, or is refused before anything is sent.
func TestHostileReads(t *testing.T) {
	s := startTold(t)
	escaped := strings.NewReplacer("\\", `\\`, "`", "\\`", "\n", `\n`, "\r", `\r`, "\x00", `\u0000`)
	taken := map[string]int{}
	for _, h := range hostile {
		if r, _ := s.read(t, "p.d.t", "--fields", h); r != nil {
			taken["fields"]++
			if got := r.ReadSession.ReadOptions.SelectedFields; len(got) != 1 || got[0] != h || r.ReadSession.ReadOptions.RowRestriction != "" {
				t.Errorf("--fields %q is sent as %q", h, got)
			}
		}
		if r, _ := s.read(t, "p.d.t", "--where", h); r != nil {
			taken["where"]++
			if got := r.ReadSession.ReadOptions.RowRestriction; got != h || len(r.ReadSession.ReadOptions.SelectedFields) != 0 {
				t.Errorf("--where %q is sent as %q", h, got)
			}
		}
		if r, _ := s.read(t, "p.d."+h); r != nil {
			taken["table"]++
			if got := r.ReadSession.Table; got != "projects/p/datasets/d/tables/"+h {
				t.Errorf("the table %q is sent as %q", h, got)
			}
		}
		if r, _ := s.read(t, "p."+h+".t"); r != nil {
			t.Errorf("the dataset %q is sent as %q", h, r.ReadSession.Table)
		}
		if r, _ := s.read(t, h+".d.t"); r != nil {
			t.Errorf("the project %q is sent as %q", h, r.ReadSession.Table)
		}
		if _, q := s.read(t, "--query", h); q != "" {
			taken["query"]++
			if q != h {
				t.Errorf("--query %q is sent as %q", h, q)
			}
		}
		if _, q := s.read(t, "p.d."+h, "--views"); q != "" {
			taken["view"]++
			if want := "SELECT * FROM `p.d." + escaped.Replace(h) + "`"; q != want {
				t.Errorf("the view %q is read by %s, want %s", h, q, want)
			}
		}
		if _, q := s.read(t, "p.d.v", "--views", "--fields", h, "--where", h); q != "" {
			taken["fields of a view"]++
			if want := "SELECT `" + escaped.Replace(h) + "` FROM `p.d.v`"; q != want {
				t.Errorf("of a view, --fields %q is sent as %s, want %s", h, q, want)
			}
		}
	}
	for _, what := range []string{"fields", "where", "table", "query", "view", "fields of a view"} {
		if taken[what] == 0 {
			t.Errorf("no %s was taken", what)
		}
	}
	t.Log(taken)
}
