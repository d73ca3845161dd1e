package store

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// contents are the rows of a table now.
func contents(t *testing.T, s *Store, ref TableRef) string {
	t.Helper()
	tab, err := s.Table(ref)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range snapshot.Parts() {
		if !p.Batch.Schema().Equal(snapshot.Info.Schema.Arrow()) {
			t.Fatalf("a part has schema %v, want %v", p.Batch.Schema(), snapshot.Info.Schema.Arrow())
		}
		out = append(out, toJSON(t, p.Batch))
	}
	return strings.Join(out, " ")
}

func alter(t *testing.T, s *Store, edits ...func(*schema.Schema)) {
	t.Helper()
	_, err := s.AlterTable(table, func(d *schema.Definition) error {
		for _, edit := range edits {
			edit(d.Schema)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dropped(name string) func(*schema.Schema) {
	return func(s *schema.Schema) {
		at := s.Index(name)
		s.Fields = append(s.Fields[:at], s.Fields[at+1:]...)
	}
}

func added(name string, kind schema.Type) func(*schema.Schema) {
	return func(s *schema.Schema) {
		f := &schema.Field{Name: name, Type: kind}
		f.Renew()
		s.Fields = append(s.Fields, f)
	}
}

func renamed(from, to string) func(*schema.Schema) {
	return func(s *schema.Schema) { s.Field(from).Rename(to) }
}

func retyped(name string, kind schema.Type) func(*schema.Schema) {
	return func(s *schema.Schema) { s.Field(name).Type = kind }
}

// alterations are steps that change a table, each with what the table holds then.
var alterations = []struct {
	name string
	do   func(*testing.T, *Store)
	want string
}{
	{"rows", func(t *testing.T, s *Store) { writeRows(t, s, `[{"n":1,"s":"a"},{"n":2,"s":null}]`) },
		`{"n":1,"s":"a"} {"n":2,"s":null}`},
	{"renamed", func(t *testing.T, s *Store) { alter(t, s, renamed("s", "x")) }, `{"n":1,"x":"a"} {"n":2,"x":null}`},
	{"another of the old name", func(t *testing.T, s *Store) { alter(t, s, added("s", schema.String)) },
		`{"n":1,"s":null,"x":"a"} {"n":2,"s":null,"x":null}`},
	{"more rows", func(t *testing.T, s *Store) { writeRows(t, s, `[{"n":3,"s":"b","x":"c"}]`) },
		`{"n":1,"s":null,"x":"a"} {"n":2,"s":null,"x":null} {"n":3,"s":"b","x":"c"}`},
	{"dropped, and another of its name in one statement", func(t *testing.T, s *Store) { alter(t, s, dropped("x"), added("x", schema.String)) },
		`{"n":1,"s":null,"x":null} {"n":2,"s":null,"x":null} {"n":3,"s":"b","x":null}`},
	{"swapped", func(t *testing.T, s *Store) { alter(t, s, renamed("s", "t"), renamed("x", "s"), renamed("t", "x")) },
		`{"n":1,"s":null,"x":null} {"n":2,"s":null,"x":null} {"n":3,"s":null,"x":"b"}`},
	{"another type", func(t *testing.T, s *Store) { alter(t, s, retyped("n", schema.Numeric)) },
		`{"n":"1","s":null,"x":null} {"n":"2","s":null,"x":null} {"n":"3","s":null,"x":"b"}`},
	{"a fraction", func(t *testing.T, s *Store) { writeRows(t, s, `[{"n":"0.5","s":"d","x":null}]`) },
		`{"n":"1","s":null,"x":null} {"n":"2","s":null,"x":null} {"n":"3","s":null,"x":"b"} {"n":"0.5","s":"d","x":null}`},
	{"another type again", func(t *testing.T, s *Store) { alter(t, s, retyped("n", schema.Float64), dropped("s")) },
		`{"n":1,"x":null} {"n":2,"x":null} {"n":3,"x":"b"} {"n":0.5,"x":null}`},
}

func writeRows(t *testing.T, s *Store, rows string) {
	t.Helper()
	tab, err := s.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	put(t, tab, fromJSON(t, tab.Info().Schema, rows))
}

func TestAlterTable(t *testing.T) {
	for name, next := range map[string]func(*testing.T, *Store, Options) *Store{
		"in memory": func(_ *testing.T, s *Store, _ Options) *Store { return s },
		"killed after each step": func(t *testing.T, s *Store, o Options) *Store {
			abandon(t, s)
			return open(t, o)
		},
		"closed after each step": func(t *testing.T, s *Store, o Options) *Store {
			closeStore(t, s)
			return open(t, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
			if name == "in memory" {
				o.Dir = ""
			}
			s := open(t, o)
			makeDataset(t, s)
			made := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema.Clone()})
			first := made.Info()
			for _, step := range alterations {
				step.do(t, s)
				s = next(t, s, o)
				if got := contents(t, s, table); got != step.want {
					t.Errorf("%s\n got %s\nwant %s", step.name, got, step.want)
				}
			}
			tab, err := s.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			// A connection that knows the first definition only: its column s has become x by way of t and back.
			if _, err := tab.Write(Rows{Info: tab.Infos()[0], Batches: []arrow.RecordBatch{fromJSON(t, first.Schema, `[{"n":9,"s":"old"}]`)}}); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, s, table); !strings.HasSuffix(got, ` {"n":9,"x":null}`) {
				t.Errorf("a row of the first definition: %s", got)
			}
			closeStore(t, s)
		})
	}
}

func TestAlterTableRefuses(t *testing.T) {
	s := inMemory(t)
	makeTable(t, s, table, &schema.Definition{Schema: columns("n", schema.Int64, "s", schema.String), Clustering: []string{"s"}})
	for name, edits := range map[string][]func(*schema.Schema){
		"a text becomes a number":    {retyped("s", schema.Int64)},
		"a clustering column goes":   {dropped("s")},
		"two columns of one name":    {renamed("s", "N")},
		"a column is put in between": {func(s *schema.Schema) { s.Fields[0], s.Fields[1] = s.Fields[1], s.Fields[0] }},
		"a new column is REQUIRED":   {added("z", schema.Bool), func(s *schema.Schema) { s.Field("z").Mode = schema.Required }},
	} {
		_, err := s.AlterTable(table, func(d *schema.Definition) error {
			for _, edit := range edits {
				edit(d.Schema)
			}
			return nil
		})
		if !refusal.Is(err, refusal.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What REST may do has not become more.
	_, err := s.UpdateTable(table, "", func(d *schema.Definition) error {
		d.Schema.Field("n").Name = "m"
		return nil
	})
	if !refusal.Is(err, refusal.Invalid) {
		t.Errorf("a rename by UpdateTable: %v", err)
	}
}

func TestRenameTable(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	old := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema.Clone(), Description: "kept"})
	put(t, old, numbered(0, 5))
	if _, err := old.Write(Rows{Info: old.Info(), Remove: []Range{{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	before, err := old.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := dataset.Table("o")
	makeTable(t, s, other, &schema.Definition{Schema: numberedSchema.Clone()})
	if err := s.RenameTable(table, "o"); !refusal.Is(err, refusal.Duplicate) {
		t.Errorf("onto a table that is there: %v", err)
	}
	if err := s.RenameTable(table, "../x"); !refusal.Is(err, refusal.Invalid) {
		t.Errorf("a name that is none: %v", err)
	}
	if err := s.RenameTable(dataset.Table("none"), "y"); !refusal.Is(err, refusal.NotFound) {
		t.Errorf("a table that is not there: %v", err)
	}
	if err := s.RenameTable(table, "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Write(Rows{Info: old.Info(), Batches: list(numbered(7, 1))}); !refusal.Is(err, refusal.NotFound) {
		t.Errorf("a write to the table of the old name: %v", err)
	}
	const want = `{"n":0,"s":null} {"n":3,"s":null} {"n":4,"s":"row 4"}`
	check := func(when string) {
		t.Helper()
		if got := contents(t, s, dataset.Table("new")); got != want {
			t.Errorf("%s: %s", when, got)
		}
		if _, err := s.Table(table); !refusal.Is(err, refusal.NotFound) {
			t.Errorf("%s: the old name: %v", when, err)
		}
		now, err := s.Table(dataset.Table("new"))
		if err != nil || now.Info().Description != "kept" || now.Info().Ref != dataset.Table("new") || now.Stats().Rows != 3 {
			t.Errorf("%s: %v %+v", when, err, now.Info())
		}
	}
	check("renamed")
	if before.NumRows() != 3 {
		t.Errorf("a snapshot of before: %d rows", before.NumRows())
	}
	makeTable(t, s, table, &schema.Definition{Schema: numberedSchema.Clone()}) // the name is free
	if err := s.DeleteTable(table); err != nil {
		t.Fatal(err)
	}
	abandon(t, s)
	s = open(t, o)
	check("after a kill")
	closeStore(t, s)
	s = open(t, o)
	check("from a checkpoint")
	closeStore(t, s)
}
