package bigquery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// columnsOf are nullable columns: "id" of INT64, "name!" REQUIRED, others of STRING.
func columnsOf(names ...string) *table.Schema {
	s := &table.Schema{}
	for _, n := range names {
		f := table.Field{Name: strings.TrimSuffix(n, "!"), Type: table.String}
		if strings.EqualFold(f.Name, "id") {
			f.Type = table.Int64
		}
		if strings.HasSuffix(n, "!") {
			f.Mode = table.Required
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

// versions are serializers of documents, one for each schema.
func versions(t testing.TB, schemas ...*table.Schema) []row.Serializer[string] {
	t.Helper()
	var all []row.Serializer[string]
	for _, s := range schemas {
		v, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(s), jsonrow.Options{IgnoreUnknownFields: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// grown is a lane that may change tables, its counts, and a service that has the table.
type grown struct {
	*testing.T
	*local
	later []row.Serializer[string]
	rows  *row.Evolving[string]
	meter *tally
	sink  *Sink[string]
}

// newGrown makes the table t with some columns, or none for nil, and a sink for rows of the first schema.
func newGrown(t *testing.T, c localbq.Config, have *table.Schema, o SinkOptions, schemas ...*table.Schema) *grown {
	t.Helper()
	all := versions(t, schemas...)
	g := &grown{T: t, local: startLocal(t, c), later: all[1:], rows: row.NewEvolving(all[0]), meter: newTally()}
	if have != nil {
		create(t, g.local, "d.t", have)
	}
	o.Connection = g.connection
	sink, err := NewSink(To[string](tableT), row.Serializer[string](g.rows), quickly(o))
	if err != nil {
		t.Fatal(err)
	}
	g.sink = sink
	return g
}

// quickly makes repairs wait for next to nothing.
func quickly(o SinkOptions) SinkOptions {
	if o.Method == MethodExactlyOnce {
		o.BufferedStream = BufferedStreamOptions{RecoveryInitialBackoff: time.Millisecond, RecoveryMaxBackoff: time.Millisecond}
	} else {
		o.DefaultStream = quick
	}
	return o
}

func create(t *testing.T, l *local, name string, s *table.Schema) {
	t.Helper()
	if err := l.CreateTable(name, tableadmin.ToREST(s)); err != nil {
		t.Fatal(err)
	}
}

// grow goes on to the next schema.
func (g *grown) grow() {
	g.Helper()
	if err := g.rows.Evolve(g.later[0]); err != nil {
		g.Fatal(err)
	}
	g.later = g.later[1:]
}

func (g *grown) writer() stream.Writer[string] {
	g.Helper()
	w, err := g.sink.NewWriter(g.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: g.meter, Log: quiet})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { w.Close() })
	return w
}

// finish flushes a writer and commits what it promises.
func (g *grown) finish(w stream.Writer[string]) error {
	g.Helper()
	if err := w.Flush(g.Context(), true); err != nil {
		return err
	}
	cs, err := w.Prepare(g.Context(), 1)
	if err != nil || len(cs) == 0 {
		return err
	}
	c, err := g.sink.NewCommitter(g.Context(), stream.CommitterContext{Job: "j", Log: quiet})
	if err != nil {
		return err
	}
	return errors.Join(c.Commit(g.Context(), cs), c.Close())
}

// bothMethods runs a test for each way to write.
func bothMethods(t *testing.T, f func(*testing.T, Method)) {
	for name, m := range map[string]Method{"default": MethodDefault, "exactly-once": MethodExactlyOnce} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, m) })
	}
}

func put(ctx context.Context, w stream.Writer[string], docs ...string) error {
	for _, doc := range docs {
		if err := w.Write(ctx, &stream.Record[string]{Value: doc}); err != nil {
			return err
		}
	}
	return nil
}

// live are the table's columns, "!" behind those that are REQUIRED.
func (g *grown) live() []string {
	g.Helper()
	s, err := TableSchema(g.Context(), g.connection, tableT)
	if err != nil {
		g.Fatal(err)
	}
	var names []string
	for _, f := range s.Fields {
		if f.Mode == table.Required {
			f.Name += "!"
		}
		names = append(names, f.Name)
	}
	return names
}

// patches are the changes of tables that were asked for, by what was answered.
func (g *grown) patches() (answers []string) {
	for r, err := range g.Audit().Records() {
		if err != nil {
			g.Fatal(err)
		}
		if r.RPC == "tables.patch" {
			answers = append(answers, r.Code)
		}
	}
	return answers
}

func (g *grown) has(columns []string, rows int) {
	g.Helper()
	if got := g.live(); !slices.Equal(got, columns) {
		g.Errorf("columns %v, want %v", got, columns)
	}
	if n, err := g.NumRows("d.t"); err != nil || n != int64(rows) {
		g.Errorf("%d rows, %v, want %d", n, err, rows)
	}
}

var adding = SchemaUpdate{AllowNewFields: true}

// discovering goes on to the next schema when a document needs it, as its row is made.
type discovering struct {
	row.Serializer[string]
	g *grown
}

func (d discovering) AppendRow(buf []byte, dst table.Destination, doc string) ([]byte, error) {
	if !strings.Contains(doc, `"new"`) {
		return d.Serializer.AppendRow(buf, dst, doc)
	}
	wide := d.g.later[0]
	d.g.grow()
	return wide.AppendRow(buf, dst, doc)
}

func TestTableIsWidened(t *testing.T) {
	t.Parallel()
	bothMethods(t, testTableIsWidened)
}

func testTableIsWidened(t *testing.T, m Method) {
	t.Run("SW-70_rows with more columns", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, columnsOf("id!", "own"), SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("new!", "ID"))
		w := g.writer()
		if err := errors.Join(put(t.Context(), w, `{"new":"x","ID":1}`), g.finish(w)); err != nil {
			t.Fatal(err)
		}
		g.has([]string{"id!", "own", "new"}, 1)
		const want = "append_errors=1 append_retries=1 bytes_sent=5 open_destinations=1 records_sent=1 schema_reconciliations=1"
		if got := g.meter.String(); got != want {
			t.Errorf("counts %q, want %q", got, want)
		}
	})
	t.Run("SW-80_not unless it is allowed", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, columnsOf("id"), SinkOptions{Method: m}, columnsOf("id", "new"))
		w := g.writer()
		err := put(t.Context(), w, `{"id":1,"new":"x"}`)
		if err == nil {
			err = g.finish(w)
		}
		if !errors.Is(err, ErrSchemaMismatch) || !strings.Contains(err.Error(), "AllowNewFields") {
			t.Errorf("got %v", err)
		}
		g.has([]string{"id"}, 0)
	})
	t.Run("SW-76_nor by relaxation", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, columnsOf("id"), SinkOptions{Method: m, SchemaUpdate: SchemaUpdate{AllowFieldRelaxation: true}}, columnsOf("id", "new"))
		w := g.writer()
		err := errors.Join(put(t.Context(), w, `{"id":1,"new":"x"}`), g.finish(w))
		if !errors.Is(err, table.ErrUnion) || !strings.Contains(err.Error(), "column new") {
			t.Errorf("got %v", err)
		}
		if len(g.patches()) > 0 {
			t.Error("there was a patch")
		}
	})
	t.Run("SER-5_a record changes the schema while its row is made", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, nil, SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("id"), columnsOf("id", "new"))
		if err := g.rows.Evolve(discovering{versions(t, columnsOf("id"))[0], g}); err != nil {
			t.Fatal(err)
		}
		w := g.writer()
		if err := errors.Join(put(t.Context(), w, `{"id":1}`, `{"id":2,"new":"x"}`, `{"id":3,"new":"y"}`), g.finish(w)); err != nil {
			t.Fatal(err)
		}
		g.has([]string{"id", "new"}, 3)
		got := read(t, g.source(t, SourceOptions{}))
		if want := []string{`{"id":1}`, `{"id":2,"new":"x"}`, `{"id":3,"new":"y"}`}; !slices.Equal(got, want) {
			t.Errorf("stored %q, want %q", got, want)
		}
	})
	t.Run("SW-81_before the first row of a new schema", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, nil, SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("id"), columnsOf("id", "b"), columnsOf("id", "b", "c"))
		w := g.writer()
		for i := range 3 {
			if i > 0 {
				g.grow()
			}
			if err := put(t.Context(), w, fmt.Sprintf(`{"id":%d,"b":"b","c":"c"}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.finish(w); err != nil {
			t.Fatal(err)
		}
		g.has([]string{"id", "b", "c"}, 3)
		want := "schema_reconciliations=2 tables_created=1"
		if m == MethodExactlyOnce { // the table is made when the first rows are sent, and the serializer is one version on by then
			want = "schema_reconciliations=1"
		}
		if got := g.meter.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "append_errors") {
			t.Errorf("counts %q: expected no failed append", got)
		}
	})
	t.Run("SW-79_relaxed with a new schema", func(t *testing.T) {
		t.Parallel()
		for _, relax := range []bool{true, false} {
			g := newGrown(t, localbq.Config{}, columnsOf("id!"), SinkOptions{Method: m, SchemaUpdate: SchemaUpdate{AllowNewFields: true, AllowFieldRelaxation: relax}},
				columnsOf("id!"), columnsOf("id", "b"))
			w := g.writer()
			if err := put(t.Context(), w, `{"id":1}`); err != nil {
				t.Fatal(err)
			}
			g.grow()
			if err := errors.Join(put(t.Context(), w, `{"id":2,"b":"b"}`), g.finish(w)); err != nil {
				t.Fatal(err)
			}
			want := []string{"id!", "b"}
			if relax {
				want = []string{"id", "b"}
			}
			g.has(want, 2)
		}
	})
	t.Run("lanes that add different columns", func(t *testing.T) {
		t.Parallel()
		g := newGrown(t, localbq.Config{}, columnsOf("id"), SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("id"))
		var wg sync.WaitGroup
		for i := range 4 {
			sink, err := NewSink(To[string](tableT), versions(t, columnsOf("id", fmt.Sprint("c", i)))[0],
				quickly(SinkOptions{Method: m, SchemaUpdate: adding, Connection: g.connection}))
			if err != nil {
				t.Fatal(err)
			}
			w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 4, Lane: i, Meter: g.meter, Log: quiet})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer w.Close()
				if err := errors.Join(put(t.Context(), w, fmt.Sprintf(`{"id":1,"c%d":"x"}`, i)), g.finish(w)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got := g.live()
		slices.Sort(got)
		if !slices.Equal(got, []string{"c0", "c1", "c2", "c3", "id"}) {
			t.Errorf("columns %v", got)
		}
		if n, err := g.NumRows("d.t"); n != 4 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// TestTroubleWhileWidening: what goes wrong between reading a table and having changed it.
func TestTroubleWhileWidening(t *testing.T) {
	t.Parallel()
	bothMethods(t, testTroubleWhileWidening)
}

func testTroubleWhileWidening(t *testing.T, m Method) {
	patch := localbq.FaultMatch{Service: "rest", Method: "tables.patch"}
	read := localbq.FaultMatch{Service: "rest", Method: "tables.get"}
	answered := func(code int, reason string) localbq.FaultAction {
		return localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: code, Reason: reason, Message: "as scripted"}}
	}
	touch := localbq.FaultAction{State: []localbq.FaultState{{Do: "touchTable", Table: "p.d.t"}}}
	for name, c := range map[string]struct {
		faults  []localbq.Fault
		patches int
		err     error
		text    string
	}{
		"SW-72_somebody touches the table twice": {[]localbq.Fault{{Match: patch, Action: touch, Count: 2}}, 3, nil, ""},
		"SW-72_somebody adds another column": {[]localbq.Fault{{Match: patch, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: "addColumn", Table: "p.d.t", Column: "other", Type: "STRING"}}}}}, 2, nil, ""},
		"somebody adds the same column": {[]localbq.Fault{{Match: patch, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: "addColumn", Table: "p.d.t", Column: "NEW", Type: "STRING"}}}}}, 1, nil, ""},
		"SW-72_rate limited":               {[]localbq.Fault{{Match: patch, Action: answered(403, "rateLimitExceeded")}}, 2, nil, ""},
		"SW-73_touched each time":          {[]localbq.Fault{{Match: patch, Action: touch, Count: localbq.FaultAlways}}, 5, ErrUpdateRaceLost, "5 rounds"},
		"503, then answered":               {[]localbq.Fault{{Match: patch, Action: answered(503, "backendError")}}, 2, nil, ""},
		"the answer to the change is lost": {[]localbq.Fault{{Match: patch, Action: localbq.FaultAction{LoseAck: true}}}, 2, nil, ""},
		"reading is reset":                 {[]localbq.Fault{{Match: read, Action: localbq.FaultAction{Reset: true}}}, 1, nil, ""},
		"SW-84_denied":                     {[]localbq.Fault{{Match: patch, Action: answered(403, "accessDenied")}}, 1, nil, "as scripted"},
		"reading is denied":                {[]localbq.Fault{{Match: read, Action: answered(403, "accessDenied")}}, 0, nil, "as scripted"},
		"SW-77_another type by now": {[]localbq.Fault{{Match: read, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: "addColumn", Table: "p.d.t", Column: "new", Type: "DATE"}}}}}, 0, table.ErrUnion, "column new: is DATE, and STRING elsewhere"},
		"SW-75_dropped before it is read": {[]localbq.Fault{{Match: read, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: "deleteTable", Table: "p.d.t"}}}}}, 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrown(t, localbq.Config{}, columnsOf("id"), SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("id", "new"))
			g.sink.config.write.Pacer = retry.Pacer{Rand: func() float64 { return 0 }} // races are run again at once
			if err := g.Faults().Add(c.faults...); err != nil {
				t.Fatal(err)
			}
			w := g.writer()
			err := put(t.Context(), w, `{"id":1,"new":"x"}`)
			if err == nil {
				err = g.finish(w)
			}
			g.Faults().MustAllFire(t)
			if got := g.patches(); len(got) != c.patches {
				t.Errorf("patches %v, want %d", got, c.patches)
			}
			if strings.HasPrefix(name, "SW-75") && m == MethodExactlyOnce {
				// The stream is gone with the table: the next attempt writes to a new one.
				if e := new(AppendError); !errors.As(err, &e) || e.Permanent() {
					t.Errorf("got %v", err)
				}
				return
			}
			if fails := c.err != nil || c.text != ""; fails {
				if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n, err := g.NumRows("d.t"); n != 1 || err != nil {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// A new column is not known at once to those who take rows. Nobody waits here: the service's clock moves when the sink waits.
func TestNewColumnsTakeTime(t *testing.T) {
	t.Parallel()
	bothMethods(t, testNewColumnsTakeTime)
}

func testNewColumnsTakeTime(t *testing.T, m Method) {
	start := func(t *testing.T, window time.Duration) (*grown, *[]time.Duration) {
		clock := localbq.NewManualClock()
		late := localbq.Profile{}
		late.Windows.AddNewConnection.Min, late.Windows.AddOpenConnection.Min = window, window
		g := newGrown(t, localbq.Config{Clock: clock, Profile: late},
			columnsOf("id"), SinkOptions{Method: m, SchemaUpdate: adding}, columnsOf("id", "new"))
		var waits []time.Duration
		g.sink.config.write.Pacer = retry.Pacer{Rand: func() float64 { return 0.5 }, Sleep: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			clock.Advance(d)
			return nil
		}}
		return g, &waits
	}
	t.Run("SW-70_35 seconds", func(t *testing.T) {
		t.Parallel()
		g, waits := start(t, 35*time.Second)
		w := g.writer()
		if err := errors.Join(put(t.Context(), w, `{"id":1,"new":"x"}`), g.finish(w)); err != nil {
			t.Fatal(err)
		}
		g.has([]string{"id", "new"}, 1)
		if !slices.Equal(*waits, []time.Duration{30 * time.Second, 30 * time.Second}) {
			t.Errorf("waited %v", *waits)
		}
		if p := g.patches(); len(p) != 1 {
			t.Errorf("patches %v", p)
		}
	})
	t.Run("SW-74_two hours", func(t *testing.T) {
		t.Parallel()
		g, waits := start(t, 2*time.Hour)
		w := g.writer()
		err := put(t.Context(), w, `{"id":1,"new":"x"}`)
		if err == nil {
			err = g.finish(w)
		}
		if !errors.Is(err, ErrSchemaMismatch) || !errors.Is(err, ErrRetryBudgetExhausted) || len(*waits) != 29 {
			t.Errorf("got %v after %d waits", err, len(*waits))
		}
		// Whoever starts again finds the table as it is to be, and waits for the rest.
		w = g.writer()
		if err := errors.Join(put(t.Context(), w, `{"id":1,"new":"x"}`), g.finish(w)); err == nil {
			t.Error("two hours are not over")
		}
		if p := g.patches(); len(p) != 1 {
			t.Errorf("patches %v", p)
		}
	})
}
