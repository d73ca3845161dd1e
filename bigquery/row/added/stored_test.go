package added_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/added"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// computed is a column that is added and holds value i of a record's.
func computed(f *table.Field, i int) added.Field[[]row.Value] {
	policy := added.Nullable
	if f.Mode == table.Required {
		policy = added.Required
	}
	number := func(r []row.Value) (int64, bool, error) { return r[i].Int, !r[i].Null, nil }
	text := func(r []row.Value) (string, bool, error) { return string(r[i].Bytes), !r[i].Null, nil }
	raw := func(r []row.Value) ([]byte, bool, error) { return r[i].Bytes, !r[i].Null, nil }
	rat := func(r []row.Value) (*big.Rat, bool, error) {
		if r[i].Null {
			return nil, false, nil
		}
		n, err := row.ScaledFromBigEndian(r[i].Bytes)
		return n.Rat(int(r[i].Int)), true, err
	}
	wall := func(r []row.Value) civil.DateTime { return civil.DateTimeOf(time.UnixMicro(r[i].Int).UTC()) }
	switch f.Type {
	case table.Bool:
		return added.Bool(f.Name, policy, func(r []row.Value) (bool, bool, error) { return r[i].Int != 0, !r[i].Null, nil })
	case table.Int64:
		return added.Int64(f.Name, policy, number)
	case table.Float64:
		return added.Float64(f.Name, policy, func(r []row.Value) (float64, bool, error) {
			return math.Float64frombits(uint64(r[i].Int)), !r[i].Null, nil
		})
	case table.Numeric:
		return added.Numeric(f.Name, policy, rat)
	case table.BigNumeric:
		return added.BigNumeric(f.Name, policy, rat)
	case table.Bytes:
		return added.Bytes(f.Name, policy, raw)
	case table.JSON:
		return added.JSON(f.Name, policy, raw)
	case table.Geography:
		return added.Geography(f.Name, policy, text)
	case table.Date:
		return added.Date(f.Name, policy, func(r []row.Value) (civil.Date, bool, error) {
			return civil.DateOf(time.Unix(r[i].Int*86400, 0).UTC()), !r[i].Null, nil
		})
	case table.Time:
		return added.Time(f.Name, policy, func(r []row.Value) (civil.Time, bool, error) { return wall(r).Time, !r[i].Null, nil })
	case table.DateTime:
		return added.DateTime(f.Name, policy, func(r []row.Value) (civil.DateTime, bool, error) { return wall(r), !r[i].Null, nil })
	case table.Timestamp:
		return added.Timestamp(f.Name, policy, func(r []row.Value) (time.Time, bool, error) { return time.UnixMicro(r[i].Int), !r[i].Null, nil })
	}
	return added.String(f.Name, policy, text)
}

// first are the rows of the columns before those that are added.
type first struct {
	rowtest.Values
	columns int
}

func (f first) AppendRow(buf []byte, dst table.Destination, values []row.Value) ([]byte, error) {
	return f.Values.AppendRow(buf, dst, values[:f.columns])
}

// TestAnyColumnsStored: whatever rows columns are added to, and of which types, all are stored bit for bit.
func TestAnyColumnsStored(t *testing.T) {
	l := stored.Start(t)
	types := []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes, table.Date,
		table.Time, table.DateTime, table.Timestamp, table.JSON, table.Geography}
	rowtest.Sparingly(t, func(r *rapid.T) {
		base := rowtest.Schemas(rowtest.Types(), 4).Draw(r, "base")
		more := rowtest.Schemas(types, 0).Draw(r, "added")
		all := &table.Schema{Fields: append(base.Fields[:len(base.Fields):len(base.Fields)], more.Fields...)}
		var fields []added.Field[[]row.Value]
		for i := len(base.Fields); i < len(all.Fields); i++ {
			f := &all.Fields[i]
			f.Name, f.Precision, f.Scale = fmt.Sprintf("__%d", i), 0, 0
			if f.Mode == table.Repeated {
				f.Mode = table.Nullable
			}
			fields = append(fields, computed(f, i))
		}
		s, err := added.New[[]row.Value](first{rowtest.OfValues(base), len(base.Fields)}, fields...)
		if err != nil {
			r.Fatal(err)
		}
		if got, err := s.Schema(dst); err != nil || !got.Equal(all) {
			r.Fatalf("%+v, %v, want %+v", got, err, all)
		}
		want := rapid.SliceOfN(rowtest.Rows(all), 1, 4).Draw(r, "rows")
		if _, err := stored.Check(t.Context(), l, s, want, want...); err != nil {
			r.Fatal(err)
		}
	})
}
