package row_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var evolvingTable = table.Destination{Project: "p", Dataset: "d", Table: "t"}

func of(fields ...table.Field) row.Serializer[[]row.Value] {
	return rowtest.OfValues(&table.Schema{Fields: fields})
}

// begun is an Evolving that has written to a table.
func begun(t *testing.T, first row.Serializer[[]row.Value]) *row.Evolving[[]row.Value] {
	t.Helper()
	e := row.NewEvolving(first)
	if _, err := e.Descriptor(evolvingTable); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEvolving(t *testing.T) {
	t.Parallel()
	id, sku := table.Field{Name: "id", Type: table.Int64, Mode: table.Required}, table.Field{Name: "sku", Type: table.String}
	e := begun(t, of(id))
	print1 := e.Fingerprint(evolvingTable)
	if print1 == 0 || e.Fingerprint(evolvingTable) != print1 {
		t.Errorf("fingerprint %d, then another", print1)
	}
	if err := e.Evolve(of(id, sku)); err != nil {
		t.Fatal(err)
	}
	if print2 := e.Fingerprint(evolvingTable); print2 == print1 || print2 == 0 {
		t.Errorf("fingerprint %d after %d", print2, print1)
	}
	s, err := e.Schema(evolvingTable)
	if err != nil || len(s.Fields) != 2 {
		t.Errorf("schema %v, %v", s, err)
	}
	d, err := e.Descriptor(evolvingTable)
	if err != nil || len(d.GetField()) != 2 {
		t.Errorf("descriptor %v, %v", d, err)
	}
	b, err := e.AppendRow(nil, evolvingTable, []row.Value{{Int: 7}, {Bytes: []byte("tea")}})
	if err != nil || hex.EncodeToString(b) != "08071203746561" {
		t.Errorf("row %x, %v", b, err)
	}
}

func TestEvolvingRefuses(t *testing.T) {
	t.Parallel()
	a := table.Field{Name: "a", Type: table.Int64, Mode: table.Required}
	list := table.Field{Name: "l", Type: table.String, Mode: table.Repeated}
	inner := table.Field{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.String}, {Name: "y", Type: table.Struct, Fields: []table.Field{{Name: "z", Type: table.Bool}}}}}
	with := func(f table.Field, change func(*table.Field)) table.Field {
		f.Fields = append([]table.Field(nil), f.Fields...)
		change(&f)
		return f
	}
	first := of(a, list, inner)
	for name, c := range map[string]struct {
		next row.Serializer[[]row.Value]
		want string // "" is fine
	}{
		"the same":                       {first, ""},
		"a column more":                  {of(a, list, inner, table.Field{Name: "n", Type: table.Date}), ""},
		"a list more":                    {of(a, list, inner, table.Field{Name: "n", Type: table.Date, Mode: table.Repeated}), ""},
		"relaxed, and spelled otherwise": {of(table.Field{Name: "A", Type: table.Int64}, list, inner), ""},
		"a member more":                  {of(a, list, with(inner, func(f *table.Field) { f.Fields = append(f.Fields, table.Field{Name: "w", Type: table.JSON}) })), ""},
		"gone":                           {of(a, list), "column s: is gone"},
		"in front":                       {of(table.Field{Name: "n", Type: table.Int64}, a, list, inner), "column a: is field 1, which is column n now"},
		"another type":                   {of(table.Field{Name: "a", Type: table.String}, list, inner), "column a: is string now, and was int64"},
		"no list":                        {of(a, with(list, func(f *table.Field) { f.Mode = table.Nullable }), inner), "column l: is NULLABLE now, and was REPEATED"},
		"stricter":                       {of(a, list, with(inner, func(f *table.Field) { f.Mode = table.Required })), "column s: is REQUIRED now, and was NULLABLE"},
		"new, REQUIRED":                  {of(a, list, inner, table.Field{Name: "n", Type: table.Date, Mode: table.Required}), "column n: is new and REQUIRED"},
		"a member of a member": {of(a, list, with(inner, func(f *table.Field) {
			f.Fields[1] = table.Field{Name: "y", Type: table.Struct, Fields: []table.Field{{Name: "z", Type: table.String}}}
		})), "column s.y.z: is string now, and was bool"},
		"no schema":    {of(), "C-EMPTY"},
		"another name": {of(table.Field{Name: "ünï co-de", Type: table.Int64}, list, inner), "column a: is field 1, which is column ünï co-de now"},
	} {
		t.Run(name, func(t *testing.T) {
			e := begun(t, first)
			before := e.Fingerprint(evolvingTable)
			err := e.Evolve(c.next)
			changed := e.Fingerprint(evolvingTable) != before
			switch {
			case c.want == "" && (err != nil || !changed):
				t.Errorf("got %v, changed %v", err, changed)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || changed):
				t.Errorf("got %v, changed %v, want %q", err, changed, c.want)
			}
		})
	}
	t.Run("tables that nothing was written to are free", func(t *testing.T) {
		if err := row.NewEvolving(first).Evolve(of(table.Field{Name: "b", Type: table.Bool})); err != nil {
			t.Error(err)
		}
	})
}

// own is a serializer with a fingerprint and failures of its own.
type own struct {
	row.Serializer[[]row.Value]
	fingerprint uint64
	err         error
}

func (o *own) Fingerprint(table.Destination) uint64 { return o.fingerprint }
func (o *own) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	if o.err != nil {
		return nil, o.err
	}
	return o.Serializer.Descriptor(dst)
}

func TestEvolvingKeepsWhatIsBelow(t *testing.T) {
	t.Parallel()
	o := &own{Serializer: of(table.Field{Name: "a", Type: table.Int64}), fingerprint: 5}
	e := begun(t, o)
	before := e.Fingerprint(evolvingTable)
	o.fingerprint = 6
	if e.Fingerprint(evolvingTable) == before {
		t.Error("the serializer's own fingerprint is not in it")
	}
	o.err = errors.New("registry is away")
	if err := e.Evolve(of(table.Field{Name: "a", Type: table.Int64})); !errors.Is(err, o.err) {
		t.Errorf("got %v", err)
	}
}

func TestEvolvingFromManyGoroutines(t *testing.T) {
	t.Parallel()
	fields := []table.Field{{Name: "a", Type: table.Int64}}
	e := begun(t, of(fields...))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if _, err := e.AppendRow(nil, evolvingTable, make([]row.Value, 21)); err != nil {
					t.Error(err)
				}
				e.Fingerprint(evolvingTable)
				if _, err := e.Descriptor(evolvingTable); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		fields = append(fields[:len(fields):len(fields)], table.Field{Name: "n" + strings.Repeat("x", i), Type: table.String})
		if err := e.Evolve(of(fields...)); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
