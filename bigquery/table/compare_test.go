package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	have := &Schema{Fields: []Field{
		{Name: "id", Type: Int64, Mode: Required},
		{Name: "name", Type: String},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: Int64}, {Name: "old", Type: Bool}}},
		{Name: "n", Type: Numeric, Precision: 10, Scale: 2},
		{Name: "r", Type: Range, Range: Date},
	}}
	want := &Schema{Fields: []Field{
		{Name: "NAME", Type: String, Description: "who"},
		{Name: "ID", Type: Int64},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: String}, {Name: "new", Type: JSON, Mode: Repeated}}},
		{Name: "n", Type: Numeric, Precision: 12, Scale: 2},
		{Name: "r", Type: Range, Range: DateTime},
	}}
	var got []string
	for _, d := range have.Diff(want) {
		got = append(got, d.Change.String()+": "+d.String())
	}
	if diff := cmp.Diff([]string{
		"reworded: column name differs in description, default, collation, rounding mode or policy tags",
		"remoded: column id is REQUIRED, wanted NULLABLE",
		"retyped: column s.a is INT64, wanted STRING",
		"added: column s.new is missing, wanted JSON REPEATED",
		"removed: column s.old is not wanted",
		"retyped: column n is NUMERIC(10, 2), wanted NUMERIC(12, 2)",
		"retyped: column r is RANGE<DATE>, wanted RANGE<DATETIME>",
		"reordered: columns in another order than wanted",
	}, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if d := have.Diff(have); len(d) != 0 {
		t.Errorf("a schema differs from itself: %v", d)
	}
}

func TestEqual(t *testing.T) {
	a := func() *Schema {
		return &Schema{Fields: []Field{{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: String, PolicyTags: []string{"x"}}}}}}
	}
	if !a().Equal(a()) || !(*Schema)(nil).Equal(nil) || a().Equal(nil) {
		t.Error("Equal is wrong about equal, nil or half nil schemas")
	}
	for name, change := range map[string]func(*Schema){
		"member name":  func(s *Schema) { s.Fields[0].Fields[0].Name = "A" },
		"member tags":  func(s *Schema) { s.Fields[0].Fields[0].PolicyTags = nil },
		"mode":         func(s *Schema) { s.Fields[0].Mode = Repeated },
		"more columns": func(s *Schema) { s.Fields = append(s.Fields, Field{Name: "b", Type: Int64}) },
	} {
		b := a()
		if change(b); a().Equal(b) {
			t.Errorf("Equal does not see a change of %s", name)
		}
	}
}
