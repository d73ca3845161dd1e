//go:build cgo

package parquetfile_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestDuckDB has a third library read random rows of random schemas. It knows no decimals of more than 38 digits, and its time of
// day goes to 24:00.
func TestDuckDB(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	types := []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes, table.Date,
		table.Time, table.DateTime, table.Timestamp, table.Geography, table.Struct}
	name := filepath.Join(t.TempDir(), "f.parquet")
	rapid.Check(t, func(r *rapid.T) {
		s := rowtest.Schemas(types, 5).Draw(r, "schema")
		narrow(s.Fields)
		var rows [][]row.Value
		for range rapid.IntRange(1, 3).Draw(r, "rows") {
			rows = append(rows, rowtest.Rows(s).Draw(r, "row"))
		}
		if err := os.WriteFile(name, write(t, s, parquetfile.Options{}, rows...), 0o600); err != nil {
			r.Fatal(err)
		}
		got := ask(r, db, name, mustPlan(t, s))
		if len(got) != len(rows) {
			r.Fatalf("%d rows, want %d", len(got), len(rows))
		}
		for i := range rows {
			if diff := rowtest.Diff(s, rows[i], got[i]); diff != "" {
				r.Fatalf("row %d: %s", i, diff)
			}
		}
	})
}

// narrow gives BIGNUMERIC columns at most 38 digits.
func narrow(fields []table.Field) {
	for i := range fields {
		f := &fields[i]
		if f.Type == table.BigNumeric && (f.Precision == 0 || f.Precision > 38) {
			f.Precision, f.Scale = 38, min(f.Scale, 38)
		}
		narrow(f.Fields)
	}
}

func ask(t *rapid.T, db *sql.DB, name string, p *staging.Plan) (out [][]row.Value) {
	rows, err := db.Query("FROM read_parquet(?)", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		cells := make([]any, len(p.Root.Columns))
		to := make([]any, len(cells))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		values := make([]row.Value, len(cells))
		for i := range cells {
			values[i] = answer(&p.Root.Columns[i], cells[i])
		}
		out = append(out, values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func answer(c *staging.Column, v any) (out row.Value) {
	if !c.Repeated() {
		return item(c, v)
	}
	for _, e := range v.([]any) {
		out.List = append(out.List, item(c, e))
	}
	return out
}

func item(c *staging.Column, v any) row.Value {
	switch v := v.(type) {
	case nil:
		return row.Value{Null: true}
	case bool:
		if v {
			return row.Value{Int: 1}
		}
		return row.Value{}
	case int64:
		return row.Value{Int: v}
	case float64:
		return rowtest.Float(v)
	case string:
		return rowtest.Text(v)
	case []byte:
		return row.Value{Bytes: v}
	case duckdb.Decimal:
		return scaled(c, v.Value)
	case time.Time:
		return moment(c, v)
	case map[string]any:
		out := row.Value{List: make([]row.Value, len(c.Message.Columns))}
		for i := range c.Message.Columns {
			m := &c.Message.Columns[i]
			out.List[i] = answer(m, v[m.Field.Name])
		}
		return out
	}
	panic(fmt.Sprintf("%s is read as %T", c.Field.Name, v))
}

func moment(c *staging.Column, v time.Time) row.Value {
	switch c.Field.Type {
	case table.Date:
		return row.Value{Int: v.Unix() / 86_400}
	case table.Time:
		return row.Value{Int: (time.Duration(v.Hour())*time.Hour + time.Duration(v.Minute())*time.Minute + time.Duration(v.Second())*time.Second).Microseconds() + int64(v.Nanosecond()/1000)}
	}
	return row.Value{Int: v.UnixMicro()}
}
