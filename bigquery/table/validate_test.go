package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// faults are the kinds and paths of a schema's faults, as "C-NAME a.b".
func faults(err error) []string {
	if err == nil {
		return nil
	}
	var list []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	} else {
		list = []error{err}
	}
	var out []string
	for _, e := range list {
		var f *Fault
		if !errors.As(e, &f) {
			out = append(out, "not a Fault: "+e.Error())
			continue
		}
		out = append(out, strings.TrimSpace(f.Kind+" "+f.Path))
	}
	return out
}

// nested is a schema with n STRUCTs below each other.
func nested(n int) []Field {
	if n == 0 {
		return []Field{{Name: "leaf", Type: Int64}}
	}
	return []Field{{Name: "s", Type: Struct, Fields: nested(n - 1)}}
}

func TestValidate(t *testing.T) {
	one := func(f Field) []Field { return []Field{f} }
	for _, c := range []struct {
		name   string
		fields []Field
		want   []string
	}{
		{"SER-124 no columns", nil, []string{"C-EMPTY"}},
		{"SER-124 case", []Field{{Name: "count", Type: Int64}, {Name: "COUNT", Type: Int64}}, []string{"C-CASE COUNT"}},
		{"SER-123 range without element", one(Field{Name: "r", Type: Range}), []string{"C-TYPE r"}},
		{"range of INT64", one(Field{Name: "r", Type: Range, Range: Int64}), []string{"C-TYPE r"}},
		{"range", one(Field{Name: "r", Type: Range, Range: DateTime}), nil},
		{"range element elsewhere", one(Field{Name: "r", Type: Date, Range: Date}), []string{"C-SCHEMA r"}},
		{"Kelvin sign is k", []Field{{Name: "k", Type: Int64}, {Name: "\u212a", Type: Int64}}, []string{"C-CASE \u212a"}},
		{"dotless i is not i", []Field{{Name: "i", Type: Int64}, {Name: "ı", Type: Int64}}, nil},
		{"case in a STRUCT", one(Field{Name: "s", Type: Struct, Fields: []Field{{Name: "a", Type: Int64}, {Name: "A", Type: Int64}}}),
			[]string{"C-CASE s.A"}},
		{"empty STRUCT", one(Field{Name: "s", Type: Struct, Mode: Repeated}), []string{"C-EMPTY s"}},
		{"members of a STRING", one(Field{Name: "s", Type: String, Fields: one(Field{Name: "a", Type: Int64})}), []string{"C-SCHEMA s"}},
		{"no type", one(Field{Name: "s"}), []string{"C-TYPE s"}},
		{"unknown type", one(Field{Name: "s", Type: 200}), []string{"C-TYPE s"}},
		{"unknown mode", one(Field{Name: "s", Type: Int64, Mode: 9}), []string{"C-SCHEMA s"}},
		{"15 levels", nested(15), nil},
		{"16 levels", nested(16), []string{"C-DEPTH " + strings.Repeat("s.", 15) + "s"}},
		{"two names at once", []Field{{Name: "a.b", Type: Int64}, {Name: "", Type: Int64}}, []string{"C-NAME a.b", "C-NAME [1]"}},
		{"NUMERIC(38, 9)", one(Field{Name: "n", Type: Numeric, Precision: 38, Scale: 9}), nil},
		{"NUMERIC(29)", one(Field{Name: "n", Type: Numeric, Precision: 29}), nil},
		{"NUMERIC(9, 9)", one(Field{Name: "n", Type: Numeric, Precision: 9, Scale: 9}), nil},
		{"NUMERIC(30)", one(Field{Name: "n", Type: Numeric, Precision: 30}), []string{"C-SCHEMA n"}},
		{"NUMERIC(38, 10)", one(Field{Name: "n", Type: Numeric, Precision: 38, Scale: 10}), []string{"C-SCHEMA n"}},
		{"NUMERIC(2, 3)", one(Field{Name: "n", Type: Numeric, Precision: 2, Scale: 3}), []string{"C-SCHEMA n"}},
		{"scale alone", one(Field{Name: "n", Type: Numeric, Scale: 3}), []string{"C-SCHEMA n"}},
		{"BIGNUMERIC(76, 38)", one(Field{Name: "n", Type: BigNumeric, Precision: 76, Scale: 38}), nil},
		{"BIGNUMERIC(77, 38)", one(Field{Name: "n", Type: BigNumeric, Precision: 77, Scale: 38}), []string{"C-SCHEMA n"}},
		{"precision of INT64", one(Field{Name: "n", Type: Int64, Precision: 3}), []string{"C-SCHEMA n"}},
		{"length of INT64", one(Field{Name: "n", Type: Int64, MaxLength: 3}), []string{"C-SCHEMA n"}},
		{"negative length", one(Field{Name: "n", Type: String, MaxLength: -1}), []string{"C-SCHEMA n"}},
		{"timestamp precision 12", one(Field{Name: "n", Type: Timestamp, TimestampPrecision: 12}), nil},
		{"timestamp precision 9", one(Field{Name: "n", Type: Timestamp, TimestampPrecision: 9}), []string{"C-SCHEMA n"}},
		{"collation of INT64", one(Field{Name: "n", Type: Int64, Collation: "und:ci"}), []string{"C-SCHEMA n"}},
		{"rounding mode", one(Field{Name: "n", Type: Numeric, RoundingMode: "UP"}), []string{"C-SCHEMA n"}},
		{"rounding mode of INT64", one(Field{Name: "n", Type: Int64, RoundingMode: "ROUND_HALF_EVEN"}), []string{"C-SCHEMA n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := (&Schema{Fields: c.fields}).Validate()
			if diff := cmp.Diff(c.want, faults(err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
	if err := (*Schema)(nil).Validate(); err == nil {
		t.Error("a nil schema is valid")
	}
}

func TestValidateCountsColumns(t *testing.T) {
	wide := func(n int) *Schema {
		s := &Schema{Fields: []Field{{Name: "s", Type: Struct}}}
		for i := range n - 1 {
			s.Fields[0].Fields = append(s.Fields[0].Fields, Field{Name: fmt.Sprintf("c%d", i), Type: Int64})
		}
		return s
	}
	if err := wide(MaxColumns).Validate(); err != nil {
		t.Errorf("%d columns: %v", MaxColumns, err)
	}
	if err := wide(MaxColumns + 1).Validate(); err == nil || !strings.Contains(err.Error(), "10001 columns") {
		t.Errorf("%d columns: %v, want their number", MaxColumns+1, err)
	}
}

func TestCheckName(t *testing.T) {
	good := []string{"a", "_", "A9", "1st-name", "größe", "名前", "a b", "a\tb", "50%", "a&b=c+d:e'f<g>h#i|j", "_row", "table_",
		strings.Repeat("é", 300)}
	for _, name := range good {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%.40q) = %v, want nil", name, err)
		}
	}
	bad := []string{"", "\xff", strings.Repeat("a", 301), "_TABLE_x", "_table_", "_File_1", "_PARTITIONTIME", "_partitiondate",
		"_ROW_TIMESTAMP", "__root__", "_colidentifier_1", "_CHANGE_TYPE", "_change_sequence_number", "\x00", "a\nb", "a€b"}
	for _, r := range "!\"$()*,./;?@[\\]^`{}~" {
		bad = append(bad, "a"+string(r))
	}
	for _, name := range bad {
		if err := CheckName(name); err == nil {
			t.Errorf("CheckName(%.40q) = nil, want a reason", name)
		}
	}
}

func TestFoldNameIsEqualFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-cA-CkKsS\x{212A}\x{017F}åÅ\x{212B}ßẞσςΣ0]{0,4}`)
		a, b := s.Draw(t, "a"), s.Draw(t, "b")
		if got, want := FoldName(a) == FoldName(b), strings.EqualFold(a, b); got != want {
			t.Fatalf("FoldName(%q) == FoldName(%q) is %v, want %v", a, b, got, want)
		}
	})
}

func TestIdentifier(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "_1": true, "Zz_9": true, "": false, "1a": false, "a-b": false, "é": false} {
		if Identifier(name) != want {
			t.Errorf("Identifier(%q) = %v, want %v", name, !want, want)
		}
	}
}
