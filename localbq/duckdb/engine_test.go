//go:build cgo

package duckdb

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")) // the official clients' metrics
}

// memoryCatalog is tables by "p:d.t".
type memoryCatalog map[string]*query.Table

func (c memoryCatalog) Table(_ context.Context, ref query.Ref, at time.Time) (*query.Table, error) {
	t := c[ref.String()]
	if t == nil {
		return nil, refusal.New(refusal.NotFound, "Not found: Table %s was not found in location US", ref)
	}
	if !at.IsZero() {
		return nil, refusal.New(refusal.Invalid, "asked as of %s", at.Format(time.RFC3339Nano))
	}
	copied := *t
	copied.Ref = ref
	return &copied, nil
}

// add makes a table of rows, a JSON array in Arrow's form.
func (c memoryCatalog) add(t testing.TB, name string, rows string, fields ...*schema.Field) {
	t.Helper()
	s := &schema.Schema{Fields: fields}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s.Arrow(), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	c[name] = &query.Table{Schema: s, Rows: b.NumRows(), Batches: func() ([]arrow.RecordBatch, error) { return []arrow.RecordBatch{b}, nil }}
}

func newEngine(t testing.TB) query.Engine {
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

var testNow = time.Date(2026, 5, 2, 12, 34, 56, 789_000_000, time.UTC)

func run(e query.Engine, c query.Catalog, sql string, params ...query.Parameter) (*query.Result, error) {
	return e.Run(context.Background(), query.Statement{
		SQL: sql, Project: "p", DefaultProject: "p", DefaultDataset: "d", Now: testNow, User: "me@local", Parameters: params,
	}, c)
}

// answer is a result as text: names and types of the columns, then the rows.
func answer(e query.Engine, c query.Catalog, sql string, params ...query.Parameter) (string, error) {
	r, err := run(e, c, sql, params...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, f := range r.Schema.Fields {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", f.Name, f.Type)
		if f.Mode == schema.Repeated {
			b.WriteString("[]")
		}
	}
	for _, batch := range r.Batches {
		for i := range int(batch.NumRows()) {
			b.WriteString("\n")
			for k := range int(batch.NumCols()) {
				if k > 0 {
					b.WriteString(" | ")
				}
				b.WriteString(batch.Column(k).ValueStr(i))
			}
		}
	}
	return b.String(), nil
}
