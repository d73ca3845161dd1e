//go:build cgo

package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func open(t testing.TB) *Database {
	d, err := Open(Options{MemoryBytes: 1 << 30, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// strings of a query's rows, each column cast to text by the query.
func rows(t testing.TB, d *Database, sql string) (out []string) {
	t.Helper()
	_, err := d.Query(context.Background(), sql, func(columns []Vector, n int) error {
		for i := range n {
			var cells []string
			for k := range columns {
				if columns[k].Null(i) {
					cells = append(cells, "NULL")
				} else {
					cells = append(cells, string(columns[k].Bytes(i)))
				}
			}
			out = append(out, strings.Join(cells, " "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLockedDown(t *testing.T) {
	d := open(t)
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM read_text('/etc/hostname')",
		"COPY (SELECT 1) TO '/tmp/millrace-out.csv'", "ATTACH '/tmp/millrace.db'", "INSTALL httpfs", "LOAD httpfs",
		"SELECT * FROM read_parquet('http://localhost/x')", "EXPORT DATABASE '/tmp/millrace-export'",
		"SET enable_external_access = true", "SET memory_limit = '100GB'", "RESET memory_limit", "PRAGMA enable_external_access",
		"SELECT * FROM glob('/*')",
	} {
		_, err := d.Query(context.Background(), sql, func([]Vector, int) error { return nil })
		if err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
}

func TestScan(t *testing.T) {
	d := open(t)
	scans, err := d.RegisterScans("scan")
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int64, Nullable: true}))},
	}, nil)
	const n = 10_000
	var text strings.Builder
	for i := range n {
		switch {
		case i%3 == 0:
			fmt.Fprintf(&text, `,{"i": null, "s": null, "l": []}`)
		default:
			fmt.Fprintf(&text, `,{"i": %d, "s": "a rather long text %d", "l": [{"x": "é", "y": %d}, {"x": null, "y": 1}]}`, i, i, i)
		}
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+text.String()[1:]+"]"))
	if err != nil {
		t.Fatal(err)
	}
	id := scans.Add(&Table{
		Columns: []Column{{"c0", Int64}, {"c1", Varchar}, {"c2", ListOf(StructOf(Varchar, Int64))}}, Rows: 2*n - 5,
		Batches: func() ([]arrow.RecordBatch, error) { return []arrow.RecordBatch{b, b.NewSlice(5, n)}, nil },
	})
	defer scans.Remove(id)
	for sql, want := range map[string]string{
		"SELECT count(*)::VARCHAR FROM scan(1)":                                                                   "19995",
		"SELECT count(c0)::VARCHAR, sum(c0)::VARCHAR, max(c1), count(DISTINCT c1)::VARCHAR FROM scan(1)":          "13329 66653327 a rather long text 9998 6666",
		"SELECT sum(len(c2))::VARCHAR FROM scan(1)":                                                               "26658",
		"SELECT sum(u.c._1)::VARCHAR, count(u.c._0)::VARCHAR FROM scan(1), LATERAL (SELECT unnest(c2) AS c) AS u": "66666656 13329",
		"SELECT c1 FROM scan(1) WHERE c0 = 4999 LIMIT 1":                                                          "a rather long text 4999",
	} {
		if got := rows(t, d, sql); len(got) != 1 || got[0] != want {
			t.Errorf("%s\n got %v\nwant %s", sql, got, want)
		}
	}
	if _, err := d.Query(context.Background(), "SELECT * FROM scan(99)", nil); err == nil {
		t.Error("a table that is not there was scanned")
	}
}

func TestFunction(t *testing.T) {
	d := open(t)
	err := d.Register([]Function{
		{Name: "twice", Params: []Type{Int64}, Result: Int64, Run: func(args []Vector, n int, out *Vector) error {
			for i, v := range Values[int64](&args[0], n) {
				Values[int64](out, n)[i] = 2 * v
			}
			return nil
		}},
		{Name: "twice", Params: []Type{Varchar}, Result: Varchar, Run: func(args []Vector, n int, out *Vector) error {
			for i := range n {
				if !args[0].Null(i) {
					out.SetBytes(i, append(append([]byte{}, args[0].Bytes(i)...), args[0].Bytes(i)...))
				}
			}
			return nil
		}},
		{Name: "fails", Params: []Type{Int64}, Result: Int64, Run: func([]Vector, int, *Vector) error { return errors.New("no way") }},
		{Name: "panics", Params: []Type{Int64}, Result: Int64, Run: func([]Vector, int, *Vector) error { panic("oh") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := rows(t, d, "SELECT twice(21::BIGINT)::VARCHAR, twice('more than twelve bytes'), twice(NULL::BIGINT)::VARCHAR"); got[0] != "42 more than twelve bytesmore than twelve bytes NULL" {
		t.Errorf("got %v", got)
	}
	for call, want := range map[string]string{"fails(1::BIGINT)": "no way", "panics(1::BIGINT)": "panic in the query engine: oh"} {
		if _, err := d.Query(context.Background(), "SELECT "+call, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestInterrupt(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	started := make(chan struct{})
	if err := d.Register([]Function{{Name: "starts", Params: []Type{Int64}, Result: Int64, Volatile: true, Run: func([]Vector, int, *Vector) error {
		select {
		case <-started:
		default:
			close(started)
		}
		return nil
	}}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-started
		cancel(errors.New("enough"))
	}()
	_, err := d.Query(ctx, "SELECT sum(starts(a.range + b.range)) FROM range(100000000) a, range(100000) b", nil)
	if err == nil || err.Error() != "enough" {
		t.Errorf("got %v, want the cause", err)
	}
}
