package sqlrow_test

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/row/sqlrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// reading is a Deserializer to rows of declared columns.
type reading struct{ columns []sqlrow.Column }

func (d reading) Deserialize(r *row.Row, emit func([]row.Value) error) error {
	reader, err := sqlrow.NewReader(d.columns, r.Schema)
	if err != nil {
		return err
	}
	values, err := reader.Read(r)
	if err != nil {
		return err
	}
	return emit(copied(values))
}

func copied(values []row.Value) []row.Value {
	out := slices.Clone(values)
	for i := range out {
		out[i].Bytes, out[i].List = bytes.Clone(out[i].Bytes), copied(out[i].List)
	}
	return out
}

// readBack reads a table in Avro and in Arrow as declared columns.
func readBack(t *testing.T, r *rapid.T, l *stored.Local, dst table.Destination, columns []sqlrow.Column, want [][]row.Value) {
	avro, err := stored.Read(t.Context(), l, dst, reading{columns})
	if d := cmp.Diff(want, avro, cmpopts.EquateEmpty()); err != nil || d != "" {
		r.Fatalf("%v in Avro: %v %s", columns, err, d)
	}
	arrow, err := stored.ReadArrow(t.Context(), l, dst, reading{columns})
	if d := cmp.Diff(want, arrow, cmpopts.EquateEmpty()); err != nil || d != "" {
		r.Fatalf("%v in Arrow: %v %s", columns, err, d)
	}
}

// TestRowsOfSQLStored: rows of any declared columns are stored bit for bit, and read as the rows they were.
func TestRowsOfSQLStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		columns := drawColumns(r, 5)
		s, err := sqlrow.New(columns, itself, sqlrow.Options{DeriveRequired: rapid.Bool().Draw(r, "required")})
		if err != nil {
			r.Fatal(err)
		}
		var records []sqlrow.Record
		var want [][]row.Value
		for range rapid.IntRange(1, 4).Draw(r, "rows") {
			values := make([]row.Value, len(columns))
			for i := range columns {
				values[i] = drawValue(r, &columns[i].Type)
			}
			want, records = append(want, values), append(records, sqlrow.Record{Values: values})
		}
		dst, err := stored.Check(t.Context(), l, s, want, records...)
		if err != nil {
			r.Fatalf("%v: %v", columns, err)
		}
		readBack(t, r, l, dst, columns, want)
	})
}

// TestColumnsReadAsSQL: columns of any type that SQL has one for are read in it as the values they hold.
func TestColumnsReadAsSQL(t *testing.T) {
	l := stored.Start(t)
	types := slices.DeleteFunc(rowtest.Types(), func(t table.Type) bool { return t == table.Interval })
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := rowtest.Schemas(types, 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		columns := declared(schema.Fields)
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		dst := l.NewTable()
		if err := stored.Write(t.Context(), l, dst, rowtest.OfValues(schema), want...); err != nil {
			r.Fatal(err)
		}
		// Any of the columns, in any order (SER-168).
		var order []int
		for i := range columns {
			order = append(order, i)
		}
		order = rapid.Permutation(order).Draw(r, "order")[rapid.IntRange(0, len(order)).Draw(r, "left out"):]
		var some []sqlrow.Column
		for _, i := range order {
			some = append(some, columns[i])
		}
		projected := make([][]row.Value, len(want))
		for k := range want {
			inScale(schema.Fields, want[k])
			for _, i := range order {
				projected[k] = append(projected[k], want[k][i])
			}
		}
		readBack(t, r, l, dst, some, projected)
	})
}

// declared are the types of SQL that hold all values of columns. A BIGNUMERIC of more than 38 digits, which has none, is made an
// INT64.
func declared(fields []table.Field) []sqlrow.Column {
	out := make([]sqlrow.Column, len(fields))
	for i := range fields {
		f := &fields[i]
		if f.Type == table.BigNumeric && (f.Precision == 0 || f.Precision > 38) {
			f.Type, f.Precision, f.Scale = table.Int64, 0, 0
		}
		out[i] = col(f.Name, declaredType(f))
		if f.Mode == table.Repeated {
			out[i].Type = arrayOf(notNull(out[i].Type))
		}
	}
	return out
}

func declaredType(f *table.Field) sqlrow.Type {
	switch f.Type {
	case table.Bool:
		return kind(sqlrow.Boolean)
	case table.Int64:
		return kind(sqlrow.BigInt)
	case table.Float64:
		return kind(sqlrow.Double)
	case table.Numeric, table.BigNumeric:
		d := row.DecimalOf(f)
		return decimal(d.Precision(), d.FractionDigits())
	case table.Bytes:
		return kind(sqlrow.Varbinary)
	case table.Date:
		return kind(sqlrow.Date)
	case table.Time:
		return precise(sqlrow.Time, 6)
	case table.DateTime:
		return precise(sqlrow.Timestamp, 6)
	case table.Timestamp:
		return precise(sqlrow.TimestampLTZ, 6)
	case table.Struct, table.Range:
		return rowOf(declared(row.Members(f))...)
	}
	return kind(sqlrow.Varchar)
}

// inScale writes decimals in the scale of their columns, as rows of SQL have them.
func inScale(fields []table.Field, values []row.Value) {
	for i := range fields {
		f, list := &fields[i], values[i].List
		if f.Mode != table.Repeated {
			list = values[i : i+1]
		}
		for k := range list {
			v := &list[k]
			switch {
			case v.Null:
			case f.Type == table.Struct:
				inScale(f.Fields, v.List)
			case f.Type == table.Numeric || f.Type == table.BigNumeric:
				d := row.DecimalOf(f)
				n, err := row.ScaledFromBigEndian(v.Bytes)
				if err != nil {
					panic(err)
				}
				r := n.Rat(int(v.Int))
				v.Int = int64(d.FractionDigits())
				whole := r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(v.Int), nil)))
				if n, err = row.DecimalOf(&table.Field{Type: table.BigNumeric}).FromBig(whole.Num(), 38); err != nil {
					panic(err)
				}
				v.Bytes = n.AppendBigEndian(nil)
			}
		}
	}
}
