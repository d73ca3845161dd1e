//go:build cgo

package duckdb_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// meddling lets something happen between what a statement has computed and what becomes of it.
type meddling struct {
	localbq.QueryEngine
	mu        sync.Mutex // guards meanwhile
	meanwhile func()
}

func (m *meddling) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meanwhile = f
}

func (m *meddling) Run(ctx context.Context, s query.Statement, c query.Catalog) (*query.Result, error) {
	r, err := m.QueryEngine.Run(ctx, s, c)
	if s.DryRun {
		return r, err
	}
	m.mu.Lock()
	f := m.meanwhile
	m.meanwhile = nil
	m.mu.Unlock()
	if f != nil {
		f()
	}
	return r, err
}

func TestStatementsMeetChangesOfTheirTable(t *testing.T) {
	queries, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	m := &meddling{QueryEngine: queries}
	s := startWith(t, m)
	s.must("CREATE SCHEMA d")
	const serialize = "Could not serialize access to table p:d.t due to concurrent update"
	for _, c := range []struct {
		name, sql, meanwhile, fault, rows string
	}{
		{"a DELETE takes no rows of another table of the name", "DELETE d.t WHERE a < 3",
			"DROP TABLE d.t; CREATE TABLE d.t AS SELECT a, 'new' b FROM UNNEST([1, 2, 3]) a", serialize, `[("1","new"),("2","new"),("3","new")]`},
		{"an UPDATE loses no values of a column that has got another name", "UPDATE d.t SET a = a + 10 WHERE TRUE",
			"ALTER TABLE d.t RENAME COLUMN b TO c", serialize, `[("1","x"),("2","y")]`},
		{"an INSERT loses no values of a column that has got another name", "INSERT d.t VALUES (3, 'z')",
			"ALTER TABLE d.t RENAME COLUMN b TO c", serialize, `[("1","x"),("2","y")]`},
		{"an INSERT brings no values to a column that was made again with another type", "INSERT d.t VALUES (3, 'z')",
			"ALTER TABLE d.t DROP COLUMN b; ALTER TABLE d.t ADD COLUMN b INT64", serialize, `[("1",null),("2",null)]`},
		{"an INSERT goes on when a column has been added", "INSERT d.t VALUES (3, 'z')",
			"ALTER TABLE d.t ADD COLUMN c INT64", "", `[("1","x",null),("2","y",null),("3","z",null)]`},
		{"an UPDATE is refused rows that another has changed", "UPDATE d.t SET b = 'mine' WHERE TRUE",
			"UPDATE d.t SET b = 'theirs' WHERE TRUE", serialize, `[("1","theirs"),("2","theirs")]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			s.must("DROP TABLE IF EXISTS d.t", "CREATE TABLE d.t AS SELECT * FROM UNNEST([STRUCT(1 AS a, 'x' AS b), (2, 'y')])")
			m.set(func() { s.must(strings.Split(c.meanwhile, "; ")...) })
			if got := s.run(c.sql); got != c.fault {
				t.Errorf("%q, want %q", got, c.fault)
			}
			if got := s.rowsOf("SELECT * FROM d.t ORDER BY a"); got != c.rows {
				t.Errorf("got %s, want %s", got, c.rows)
			}
		})
	}
	t.Run("a result for an empty table is not put beside rows that came meanwhile", func(t *testing.T) {
		s := s.in(t)
		s.must("CREATE TABLE d.e (a INT64)")
		m.set(func() { s.must("INSERT d.e VALUES (1)") })
		job := `{"jobReference": {"jobId": "empty"}, "configuration": {"query": {"useLegacySql": false, "query": "SELECT 2 a",
			"destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "e"}}}}`
		s.do("POST", "/jobs", job, "")
		s.do("GET", "/queries/empty", "", "")
		if got := s.rowsOf("SELECT a FROM d.e"); got != `[("1")]` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("calls with one requestId at once are one job", func(t *testing.T) {
		s := s.in(t)
		s.must("CREATE TABLE d.once (a INT64)")
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				s.do("POST", "/queries", `{"useLegacySql": false, "requestId": "r", "query": "INSERT d.once VALUES (1)"}`, "")
			})
		}
		calls.Wait()
		if got := s.rowsOf("SELECT a FROM d.once"); got != `[("1")]` {
			t.Errorf("got %s", got)
		}
	})
}
