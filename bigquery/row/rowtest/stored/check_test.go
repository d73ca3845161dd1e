package stored_test

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRows: rows of any schema are stored as they are, over the default stream, staged as Avro and as Parquet, and read in Avro and
// in Arrow.
func TestRows(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		s := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, s)
		rows := rapid.SliceOfN(rowtest.Rows(s), 1, 4).Draw(r, "rows")
		if _, err := stored.Check(t.Context(), l, rowtest.OfValues(s), rows, rows...); err != nil {
			r.Fatal(err)
		}
	})
}

// TestStagedRows is TestRows of the types that files carry, so that every schema goes all ways.
func TestStagedRows(t *testing.T) {
	l := stored.Start(t)
	types := []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes, table.Date,
		table.Time, table.Timestamp, table.Geography, table.Struct}
	rowtest.Sparingly(t, func(r *rapid.T) {
		s := rowtest.Schemas(types, 5).Draw(r, "schema")
		rows := rapid.SliceOfN(rowtest.Rows(s), 1, 4).Draw(r, "rows")
		if _, err := stored.Check(t.Context(), l, rowtest.OfValues(s), rows, rows...); err != nil {
			r.Fatal(err)
		}
		if formats := stored.Formats(s); !slices.Contains(formats, staging.Parquet) {
			r.Fatalf("staged as %v, want Parquet too", formats)
		}
	})
}

// TestDifferencesAreFound: what is stored and not wanted is told with the way it went.
func TestDifferencesAreFound(t *testing.T) {
	l := stored.Start(t)
	s := &table.Schema{Fields: []table.Field{{Name: "x", Type: table.Int64}}}
	for want, rows := range map[string][][]row.Value{
		", read in Avro: 1 rows, want 2":             {{{Int: 5}}, {{Int: 5}}},
		", read in Avro: row 0: x is NULL":           {{rowtest.Null}},
		", read in Avro: row 0: x is 5 \"\", want 6": {{{Int: 6}}},
	} {
		dst := l.NewTable()
		if err := stored.Write(t.Context(), l, dst, rowtest.OfValues(s), []row.Value{{Int: 5}}); err != nil {
			t.Fatal(err)
		}
		err := l.Holds(t.Context(), dst, s, rows)
		if err == nil || !strings.HasPrefix(err.Error(), dst.Table+want) {
			t.Errorf("%v, want %s", err, want)
		}
		_, err = stored.Check(t.Context(), l, rowtest.OfValues(s), rows, []row.Value{{Int: 5}})
		if want := "as it is encoded: "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
