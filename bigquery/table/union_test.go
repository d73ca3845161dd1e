package table

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var everythingAllowed = UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}

func TestUnion(t *testing.T) {
	have := &Schema{Fields: []Field{
		{Name: "Id", Type: Int64, Mode: Required, Description: "kept"},
		{Name: "name", Type: String, MaxLength: 10},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: Int64, Mode: Required}}},
		{Name: "only", Type: Bool, Mode: Required},
	}}
	want := &Schema{Fields: []Field{
		{Name: "new", Type: Struct, Mode: Required, Fields: []Field{{Name: "x", Type: Int64, Mode: Required}, {Name: "l", Type: String, Mode: Repeated}}},
		{Name: "NAME", Type: String, Mode: Required, Description: "not taken over"},
		{Name: "ID", Type: Int64},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "b", Type: Date, Mode: Required}, {Name: "A", Type: Int64, Mode: Required}}},
	}}
	before := string(have.JSON())
	got, err := have.Union(want, everythingAllowed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Schema{Fields: []Field{
		{Name: "Id", Type: Int64, Description: "kept"},
		{Name: "name", Type: String, MaxLength: 10},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: Int64, Mode: Required}, {Name: "b", Type: Date}}},
		{Name: "only", Type: Bool, Mode: Required},
		{Name: "new", Type: Struct, Fields: []Field{{Name: "x", Type: Int64}, {Name: "l", Type: String, Mode: Repeated}}},
	}}, got); diff != "" {
		t.Errorf("the union (-want +got):\n%s", diff)
	}
	if string(have.JSON()) != before {
		t.Error("the union changed what it was made of")
	}
	if got, err := have.Union(&Schema{Fields: []Field{{Name: "id", Type: Int64}}}, UnionOptions{}); err != nil || got.Fields[0].Mode != Required {
		t.Errorf("without leave to relax: %v, %v", got, err)
	}
}

func TestNoUnion(t *testing.T) {
	have := &Schema{Fields: []Field{
		{Name: "a", Type: Int64}, {Name: "l", Type: Int64, Mode: Repeated}, {Name: "r", Type: Range, Range: Date},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "m", Type: JSON}}},
	}}
	want := &Schema{Fields: []Field{
		{Name: "A", Type: String}, {Name: "l", Type: Int64}, {Name: "r", Type: Range, Range: DateTime},
		{Name: "s", Type: Struct, Fields: []Field{{Name: "M", Type: String}, {Name: "new", Type: Int64}}},
	}}
	_, err := have.Union(want, UnionOptions{})
	if !errors.Is(err, ErrUnion) {
		t.Fatalf("%v is no ErrUnion", err)
	}
	want2 := strings.Join([]string{
		"the schemas have no union: column a: is INT64, and STRING elsewhere: types cannot change",
		"the schemas have no union: column l: is REPEATED, and NULLABLE elsewhere: a column cannot become a list, or stop being one",
		"the schemas have no union: column r: is RANGE<DATE>, and RANGE<DATETIME> elsewhere: types cannot change",
		"the schemas have no union: column s.m: is JSON, and STRING elsewhere: types cannot change",
		"the schemas have no union: column s.new: is new, and adding columns is not allowed",
	}, "\n")
	if diff := cmp.Diff(want2, err.Error()); diff != "" {
		t.Errorf("the error (-want +got):\n%s", diff)
	}
}

// TestUnionOfUnions: whoever comes second changes nothing, and nothing that a table has is lost.
func TestUnionOfUnions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := &Schema{Fields: fieldGen(2).Draw(t, "a")}, &Schema{Fields: fieldGen(2).Draw(t, "b")}
		u, err := a.Union(b, everythingAllowed)
		if err != nil {
			if !errors.Is(err, ErrUnion) {
				t.Fatal(err)
			}
			return
		}
		again, err := u.Union(b, everythingAllowed)
		if err != nil || !again.Equal(u) {
			t.Fatalf("the union with a union: %v, %v, want %v", again, err, u)
		}
		for _, d := range a.Diff(u) {
			if d.Change != Added && d.Change != Remoded {
				t.Fatalf("the union is not what the table was: %v", d)
			}
		}
		if err := u.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
