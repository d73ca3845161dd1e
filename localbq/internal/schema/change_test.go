package schema

import (
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

func wantInvalid(t *testing.T, err error, message string) {
	t.Helper()
	if r := refusal.Of(err); r == nil || r.Reason != refusal.Invalid || r.Message != message {
		t.Errorf("got %v, want invalid %q", err, message)
	}
}

func TestWiden(t *testing.T) {
	req := func(name string, typ Type) *Field {
		return &Field{Name: name, Type: typ, Mode: Required}
	}
	base := func() *Schema {
		return &Schema{Fields: []*Field{
			req("id", Int64), {Name: "name", Type: String, MaxLength: 10},
			{Name: "s", Type: Struct, Fields: []*Field{{Name: "a", Type: Int64}}},
		}}
	}
	const prefix = "Provided Schema does not match Table p:d.t. "
	cases := []struct {
		name    string
		change  func(*Schema)
		refused string // "" is accepted
		want    Change
	}{
		{"nothing", func(*Schema) {}, "", Change{}},
		{"a new column", func(s *Schema) { s.Fields = append(s.Fields, &Field{Name: "x", Type: Date}) }, "", Change{Adds: true}},
		{"a new member", func(s *Schema) {
			s.Fields[2].Fields = append(s.Fields[2].Fields, &Field{Name: "b", Type: Int64, Mode: Repeated})
		}, "", Change{Adds: true}},
		{"LBQ-150 relaxed", func(s *Schema) { s.Fields[0].Mode = Nullable }, "", Change{Relaxes: true}},
		{"LBQ-150 and back", func(s *Schema) { s.Fields[1].Mode = Required }, "Field name has changed mode from NULLABLE to REQUIRED", Change{}},
		{"to repeated", func(s *Schema) { s.Fields[1].Mode = Repeated }, "Field name has changed mode from NULLABLE to REPEATED", Change{}},
		{"a text", func(s *Schema) { s.Fields[1].Description = "d" }, "", Change{Texts: true}},
		{"another type", func(s *Schema) { s.Fields[0].Type = String }, "Field id has changed type from INTEGER to STRING", Change{}},
		{"a column less", func(s *Schema) { s.Fields = s.Fields[:2] }, "Field s is missing in new schema", Change{}},
		{"a member less", func(s *Schema) { s.Fields[2].Fields[0] = &Field{Name: "z", Type: Int64} }, "Field s.a is missing in new schema", Change{}},
		{"a new required member", func(s *Schema) { s.Fields[2].Fields = append(s.Fields[2].Fields, req("r", Int64)) },
			"Cannot add required fields to an existing schema. (field: s.r)", Change{}},
		{"a longer text", func(s *Schema) { s.Fields[1].MaxLength = 20 }, "", Change{}},
		{"a shorter text", func(s *Schema) { s.Fields[1].MaxLength = 5 }, "Field name has changed max length from 10 to 5", Change{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			to := base()
			c.change(to)
			got, err := Widen("p:d.t", base(), to)
			if c.refused != "" {
				wantInvalid(t, err, prefix+c.refused)
			} else if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}
