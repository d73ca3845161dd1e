package stored

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Way is how records went into a table and out of it again, and what came out.
type Way[R any] struct {
	Name    string // "staged as AVRO, read in Arrow"
	Text    bool   // it went through a file of text
	Table   table.Destination
	Records []R
}

// Ways writes records in every way there is, each to a table of its own, the default stream's first, and reads every table in Avro
// and, if arrow says so, in Arrow.
func Ways[T, R any](ctx context.Context, l *Local, rows row.Serializer[T], back row.Deserializer[R], arrow bool, records ...T) (ways []Way[R], err error) {
	dst := l.NewTable()
	s, err := rows.Schema(dst)
	if err != nil {
		return nil, err
	}
	if err := Write(ctx, l, dst, rows, records...); err != nil {
		return nil, err
	}
	const name = "over the default stream"
	if ways, err = readWays(ctx, l, ways, name, dst, back, arrow); err != nil {
		return nil, fmt.Errorf("%s, %w", name, err)
	}
	for _, f := range Formats(s) {
		dst, name := l.NewTable(), "staged as "+f.String()
		data, err := Stage(dst, f, rows, records...)
		if uncarried(err) {
			continue
		}
		if err == nil {
			err = l.Load(ctx, dst, f, s, data)
		}
		before := len(ways)
		if err == nil {
			ways, err = readWays(ctx, l, ways, name, dst, back, arrow)
		}
		for i := range ways[before:] {
			ways[before+i].Text = f == staging.JSONL || f == staging.CSV
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %w", name, err)
		}
	}
	return ways, nil
}

// uncarried says whether a row has a value that its format is known to have no form for.
func uncarried(err error) bool {
	var e *row.Error
	return errors.As(err, &e) && e.Kind == row.KindRange && strings.Contains(e.Msg, "cannot carry")
}

func readWays[R any](ctx context.Context, l *Local, ways []Way[R], name string, dst table.Destination, back row.Deserializer[R], arrow bool) ([]Way[R], error) {
	records, err := Read(ctx, l, dst, back)
	if err != nil {
		return nil, fmt.Errorf("read in Avro: %w", err)
	}
	ways = append(ways, Way[R]{Name: name + ", read in Avro", Table: dst, Records: records})
	if !arrow {
		return ways, nil
	}
	if records, err = ReadArrow(ctx, l, dst, back); err != nil {
		return nil, fmt.Errorf("read in Arrow: %w", err)
	}
	return append(ways, Way[R]{Name: name + ", read in Arrow", Table: dst, Records: records}), nil
}

// Check holds what becomes of records to the values that are wanted: their rows as the protobuf library reads them, and what is read
// after every one of the Ways. The error says which value is another one. It answers the table of the default stream.
func Check[T any](ctx context.Context, l *Local, rows row.Serializer[T], want [][]row.Value, records ...T) (table.Destination, error) {
	return CheckKept(ctx, l, rows, want, want, records...)
}

// CheckKept is Check of rows that BigQuery keeps in a form of its own, as it does JSON and GEOGRAPHY: kept are the values that are read.
func CheckKept[T any](ctx context.Context, l *Local, rows row.Serializer[T], want, kept [][]row.Value, records ...T) (table.Destination, error) {
	s, err := rows.Schema(table.Destination{})
	if err != nil {
		return table.Destination{}, err
	}
	if err := encoded(rows, s, want, records); err != nil {
		return table.Destination{}, err
	}
	ways, err := Ways(ctx, l, rows, typed{s}, inArrow(s.Fields, want), records...)
	if err != nil {
		return table.Destination{}, err
	}
	for _, w := range ways {
		kept := kept
		if w.Text {
			kept = oneNaN(s.Fields, kept)
		}
		if err := compare(s, kept, w.Records); err != nil {
			return table.Destination{}, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return ways[0].Table, nil
}

// encoded holds the rows of records to the values that are wanted.
func encoded[T any](rows row.Serializer[T], s *table.Schema, want [][]row.Value, records []T) error {
	d, err := rows.Descriptor(table.Destination{})
	if err != nil {
		return err
	}
	got := make([][]row.Value, len(records))
	for i, r := range records {
		data, err := rows.AppendRow(nil, table.Destination{}, r)
		if err == nil {
			got[i], err = rowtest.Decode(d, s, data)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	if err := compare(s, want, got); err != nil {
		return fmt.Errorf("as it is encoded: %w", err)
	}
	return nil
}

// Holds reads a table in Avro and in Arrow, and says where its rows are not those that are wanted.
func (l *Local) Holds(ctx context.Context, dst table.Destination, s *table.Schema, want [][]row.Value) error {
	ways, err := readWays(ctx, l, nil, dst.Table, dst, typed{s}, inArrow(s.Fields, want))
	if err != nil {
		return err
	}
	for _, w := range ways {
		if err := compare(s, want, w.Records); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
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

// oneNaN is rows with the NaN that text is read as for every one that they have.
func oneNaN(fields []table.Field, rows [][]row.Value) [][]row.Value {
	out := make([][]row.Value, len(rows))
	for i, values := range rows {
		out[i] = slices.Clone(values)
		for j := range fields {
			single := fields[j]
			v := &out[i][j]
			switch {
			case v.Null:
			case single.Mode == table.Repeated:
				single.Mode = table.Nullable
				list := make([][]row.Value, len(v.List))
				for k, element := range v.List {
					list[k] = []row.Value{element}
				}
				v.List = slices.Clone(v.List)
				for k, element := range oneNaN([]table.Field{single}, list) {
					v.List[k] = element[0]
				}
			case single.Type == table.Struct:
				v.List = oneNaN(single.Fields, [][]row.Value{v.List})[0]
			case single.Type == table.Float64 && math.IsNaN(math.Float64frombits(uint64(v.Int))):
				v.Int = int64(math.Float64bits(math.NaN()))
			}
		}
	}
	return out
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
