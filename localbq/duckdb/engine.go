//go:build cgo

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/compile"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// memoryBytes bounds what queries take in DuckDB together, besides the tables, which stay where they are.
const memoryBytes = 4 << 30

// engine implements query.Engine. The database is opened by the first statement: a service that nobody queries does
// without its time and memory.
type engine struct {
	open func() (*database, error) // opens once

	mu     sync.Mutex // guards closed and db
	closed bool
	db     *database // nil before the first statement
}

// database is an open DuckDB.
type database struct {
	db     *native.Database
	tables *native.Scans
}

// New makes an engine. Whoever made it closes it; a service that was given it does so when it is closed.
func New() (query.Engine, error) {
	e := &engine{}
	e.open = sync.OnceValues(e.openDatabase)
	return e, nil
}

var errClosed = errors.New("the query engine is closed")

func (e *engine) openDatabase() (*database, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	db, err := native.Open(native.Options{MemoryBytes: memoryBytes, Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		return nil, err
	}
	d := &database{db: db}
	if d.tables, err = db.RegisterScans("bq_scan"); err == nil {
		err = db.Register(functions())
	}
	if err == nil {
		err = db.Lock()
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	e.db = d
	return d, nil
}

// Close implements query.Engine.
func (e *engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.db != nil && !e.closed {
		e.db.db.Close()
	}
	e.closed = true
	return nil
}

// running is one statement's use of the engine.
type running struct {
	*database
	ctx   context.Context // of the call of Run
	scans map[int64]*scan
}

// scan is one table of a statement.
type scan struct {
	*native.Table
	of *query.Table
}

// Run implements query.Engine.
func (e *engine) Run(ctx context.Context, s query.Statement, c query.Catalog) (*query.Result, error) {
	d, err := e.open()
	if err != nil {
		return nil, err
	}
	r := &running{database: d, ctx: ctx, scans: map[int64]*scan{}}
	defer r.release()
	plan, err := compile.Statement(s.SQL, compile.Env{
		Project: s.Project, DefaultProject: s.DefaultProject, DefaultDataset: s.DefaultDataset, Parameters: s.Parameters,
		Now: s.Now, User: s.User, Scan: r.scan, Instant: r.instant,
		Table: func(ref query.Ref, at time.Time) (*query.Table, error) { return c.Table(ctx, ref, at) },
	})
	if err != nil {
		return nil, err
	}
	out := &query.Result{Schema: plan.Schema(), Tables: plan.Tables, Volatile: plan.Volatile, Change: plan.Change}
	if out.BytesProcessed, err = r.open(plan); err != nil {
		return nil, err
	}
	if plan.SQL == "" {
		return out, nil
	}
	if s.DryRun {
		return out, fault(d.db.Check(plan.SQL))
	}
	rows := newRows(out.Schema)
	if _, err := d.db.Query(ctx, plan.SQL, rows.append); err != nil {
		return nil, fault(err)
	}
	out.Batches, out.Rows = rows.batches(), rows.total
	return out, nil
}

// scan implements compile.Env. What is read of the table is only known when the statement has been compiled.
func (r *running) scan(t *query.Table) int64 {
	s := &scan{&native.Table{Rows: t.Rows}, t}
	id := r.tables.Add(s.Table)
	r.scans[id] = s
	return id
}

// open gives every scan the columns that the plan reads, and answers their logical size.
func (r *running) open(plan *compile.Plan) (int64, error) {
	total := int64(0)
	for id, columns := range plan.Scans {
		s := r.scans[id]
		batches, err := s.of.Batches()
		if err != nil {
			return 0, err
		}
		s.Columns = nativeColumns(columns)
		picked := make([]arrow.RecordBatch, len(batches))
		for i, b := range batches {
			picked[i] = pick(b, columns)
			for k, c := range columns {
				total += store.LogicalBytes(c.Type.Column(c.Name), picked[i].Column(k))
			}
		}
		s.Batches = func() ([]arrow.RecordBatch, error) { return picked, nil }
	}
	return total, nil
}

func nativeColumns(columns []compile.Stored) []native.Column {
	out := make([]native.Column, len(columns))
	for i, c := range columns {
		out[i] = native.Column{Name: c.Name, Type: nativeType(c.Type)}
	}
	return out
}

func (r *running) release() {
	for id := range r.scans {
		r.tables.Remove(id)
	}
}

// instant implements compile.Env.
func (r *running) instant(sql string) (time.Time, error) {
	var at time.Time
	_, err := r.db.Query(r.ctx, sql, func(columns []native.Vector, n int) error {
		if columns[0].Null(0) {
			return &query.Error{Message: "FOR SYSTEM_TIME AS OF expression must not be NULL"}
		}
		at = time.UnixMicro(native.Values[int64](&columns[0], n)[0]).UTC()
		return nil
	})
	return at, fault(err)
}

// Restrict implements query.Engine.
func (e *engine) Restrict(expression string, columns *schema.Schema) (query.Restriction, error) {
	d, err := e.open()
	if err != nil {
		return nil, err
	}
	sql, read, err := compile.Restriction(expression, columns, compile.Env{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	r := &restriction{database: d, sql: sql, columns: columns, read: read}
	// Whatever DuckDB has against it shows before the first row.
	if _, err := r.Rows(context.Background(), emptyBatch(columns)); err != nil {
		return nil, err
	}
	return r, nil
}

func nativeType(t compile.Type) native.Type {
	if t.Array {
		elem := t
		elem.Array = false
		return native.ListOf(nativeType(elem))
	}
	switch t.Kind {
	case schema.Struct:
		fields := make([]native.Type, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = nativeType(f.Type)
		}
		return native.StructOf(fields...)
	case schema.Range:
		end := nativeType(compile.Type{Kind: t.Range})
		return native.StructOf(end, end)
	case schema.Timestamp:
		if t.Picos {
			return native.Varchar
		}
	}
	n, ok := nativeTypes[t.Kind]
	if !ok {
		panic(fmt.Sprintf("duckdb: no type for %s", t))
	}
	return n
}

var nativeTypes = map[schema.Type]native.Type{
	schema.Bool: native.Bool, schema.Int64: native.Int64, schema.Float64: native.Float64, schema.Numeric: native.Decimal,
	schema.BigNumeric: native.Blob, schema.String: native.Varchar, schema.Bytes: native.Blob, schema.Date: native.Date,
	schema.Time: native.Time, schema.DateTime: native.Timestamp, schema.Timestamp: native.Timestamp,
	schema.Interval: native.Interval, schema.Geography: native.Varchar, schema.JSON: native.Varchar,
}
