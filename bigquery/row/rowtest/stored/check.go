package stored

import (
	"context"
	"fmt"
	"math"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Check writes records in every way there is, each to a table of its own, and reads every table in Avro and in Arrow. The error says
// which value is not the one that is wanted. It answers the tables, the one of the default stream first.
func Check[T any](ctx context.Context, l *Local, rows row.Serializer[T], want [][]row.Value, records ...T) ([]table.Destination, error) {
	dst := l.NewTable()
	s, err := rows.Schema(dst)
	if err != nil {
		return nil, err
	}
	if err := Write(ctx, l, dst, rows, records...); err != nil {
		return nil, err
	}
	tables := []table.Destination{dst}
	if err := l.Holds(ctx, dst, s, want); err != nil {
		return nil, fmt.Errorf("over the default stream: %w", err)
	}
	for _, f := range Formats(s) {
		dst := l.NewTable()
		data, err := Stage(dst, f, rows, records...)
		if err == nil {
			err = l.Load(ctx, dst, f, s, data)
		}
		if err == nil {
			err = l.Holds(ctx, dst, s, want)
		}
		if err != nil {
			return nil, fmt.Errorf("staged as %v: %w", f, err)
		}
		tables = append(tables, dst)
	}
	return tables, nil
}

// Holds reads a table in Avro and in Arrow, and says where its rows are not those that are wanted.
func (l *Local) Holds(ctx context.Context, dst table.Destination, s *table.Schema, want [][]row.Value) error {
	got, err := Read(ctx, l, dst, typed{s})
	if err == nil {
		err = compare(s, want, got)
	}
	if err != nil {
		return fmt.Errorf("read in Avro: %w", err)
	}
	if !inArrow(s.Fields, want) {
		return nil
	}
	if got, err = ReadArrow(ctx, l, dst, typed{s}); err == nil {
		err = compare(s, want, got)
	}
	if err != nil {
		return fmt.Errorf("read in Arrow: %w", err)
	}
	return nil
}

// typed is Keep of rows whose columns have the types of a schema's.
type typed struct{ schema *table.Schema }

func (k typed) Deserialize(r *row.Row, emit func([]row.Value) error) error {
	if err := sameTypes(k.schema.Fields, r.Schema.Fields, ""); err != nil {
		return err
	}
	return Keep{}.Deserialize(r, emit)
}

func sameTypes(want, got []table.Field, parent string) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d columns at %q, want %d", len(got), parent, len(want))
	}
	for i := range want {
		w, g := &want[i], &got[i]
		path := table.Join(parent, w.Name)
		// A BIGNUMERIC whose digits a NUMERIC has is told as one.
		same := w.Type == g.Type || w.Type == table.BigNumeric && g.Type == table.Numeric
		if !same || w.Mode != g.Mode || w.Range != g.Range || table.FoldName(w.Name) != table.FoldName(g.Name) {
			return fmt.Errorf("column %q is read as %v %v, want %v %v at %s", g.Name, g.Mode, g.Type, w.Mode, w.Type, path)
		}
		if err := sameTypes(w.Fields, g.Fields, path); err != nil {
			return err
		}
	}
	return nil
}

func compare(s *table.Schema, want, got [][]row.Value) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := rowtest.Diff(s, want[i], got[i]); diff != "" {
			return fmt.Errorf("row %d: %s", i, diff)
		}
	}
	return nil
}

// inArrow says whether Arrow has all values: an INTERVAL has nanoseconds there, in 64 bits.
func inArrow(fields []table.Field, rows [][]row.Value) bool {
	for _, values := range rows {
		for i := range fields {
			f := &fields[i]
			list := values[i].List
			if f.Mode != table.Repeated {
				list = values[i : i+1]
			}
			for _, v := range list {
				if v.Null {
					continue
				}
				if f.Type == table.Interval && (v.List[2].Int > math.MaxInt64/1000 || v.List[2].Int < math.MinInt64/1000) {
					return false
				}
				if f.Type == table.Struct && !inArrow(f.Fields, [][]row.Value{v.List}) {
					return false
				}
			}
		}
	}
	return true
}
