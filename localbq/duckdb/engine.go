//go:build cgo

package duckdb

import (
	"context"
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

// engine implements query.Engine.
type engine struct {
	db    *native.Database
	scans *native.Scans
}

// New makes an engine. Whoever made it closes it; a service that was given it does so when it is closed.
func New() (query.Engine, error) {
	db, err := native.Open(native.Options{MemoryBytes: memoryBytes, Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		return nil, err
	}
	e := &engine{db: db}
	if e.scans, err = db.RegisterScans("bq_scan"); err == nil {
		err = db.Register(functions())
	}
	if err == nil {
		err = db.Lock()
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return e, nil
}

// Close implements query.Engine.
func (e *engine) Close() error {
	e.db.Close()
	return nil
}

// running is one statement's use of the engine.
type running struct {
	*engine
	ctx     context.Context // of the call of Run
	tables  map[int64]*query.Table
	batches map[int64][]arrow.RecordBatch
	mu      sync.Mutex // guards batches
}

// Run implements query.Engine.
func (e *engine) Run(ctx context.Context, s query.Statement, c query.Catalog) (*query.Result, error) {
	r := &running{engine: e, ctx: ctx, tables: map[int64]*query.Table{}, batches: map[int64][]arrow.RecordBatch{}}
	defer r.release()
	plan, err := compile.Query(s.SQL, compile.Env{
		Project: s.Project, DefaultProject: s.DefaultProject, DefaultDataset: s.DefaultDataset, Parameters: s.Parameters,
		Now: s.Now, User: s.User, Scan: r.scan, Instant: r.instant,
		Table: func(ref query.Ref, at time.Time) (*query.Table, error) { return c.Table(ctx, ref, at) },
	})
	if err != nil {
		return nil, err
	}
	out := &query.Result{Schema: plan.Schema(), Tables: plan.Tables, Volatile: plan.Volatile}
	if out.BytesProcessed, err = r.bytes(plan); err != nil {
		return nil, err
	}
	if s.DryRun {
		return out, fault(e.db.Check(plan.SQL))
	}
	rows := newRows(out.Schema)
	if _, err := e.db.Query(ctx, plan.SQL, rows.append); err != nil {
		return nil, fault(err)
	}
	out.Batches, out.Rows = rows.batches(), rows.total
	return out, nil
}

// scan implements compile.Env.
func (r *running) scan(t *query.Table) (int64, error) {
	columns := []native.Type{}
	if t.Schema != nil {
		for _, f := range t.Schema.Fields {
			columns = append(columns, nativeType(compile.TypeOf(f)))
		}
	}
	var id int64
	id = r.scans.Add(&native.Table{Columns: columns, Rows: t.Rows, Batches: func([]int) ([]arrow.RecordBatch, error) { return r.open(id) }})
	r.tables[id] = t
	return id, nil
}

// open answers a table's batches, the same ones however often it is read.
func (r *running) open(id int64) ([]arrow.RecordBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.batches[id]; ok {
		return b, nil
	}
	b, err := r.tables[id].Batches()
	if err == nil {
		r.batches[id] = b
	}
	return b, err
}

func (r *running) release() {
	for id := range r.tables {
		r.scans.Remove(id)
	}
}

// bytes is the logical size of the columns that a plan reads.
func (r *running) bytes(plan *compile.Plan) (int64, error) {
	total := int64(0)
	for id, columns := range plan.Used {
		batches, err := r.open(id)
		if err != nil {
			return 0, err
		}
		for _, b := range batches {
			for _, i := range columns {
				total += store.LogicalBytes(r.tables[id].Schema.Fields[i], b.Column(i))
			}
		}
	}
	return total, nil
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
	sql, used, err := compile.Restriction(expression, columns, compile.Env{Now: time.Now()})
	if err != nil {
		return nil, err
	}
	r := &restriction{engine: e, sql: sql, columns: columns, used: used}
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
