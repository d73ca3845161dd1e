package mark_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func kindAndPath(err error) string {
	if e, ok := errors.AsType[*row.Error](err); ok {
		return string(e.Kind) + " " + e.Path
	}
	return ""
}

func TestPathsFindTheirFields(t *testing.T) {
	p := mark.NewPaths([]string{"a", "b.c", "a", "twice"}, []string{"g", "twice", "meets"})
	for _, c := range []struct {
		path  string
		other mark.Mark
		want  mark.Mark
		fault string
	}{
		{"a", mark.None, mark.JSON, ""},
		{"a", mark.JSON, mark.JSON, ""}, // a path and an option may say the same
		{"b", mark.None, mark.None, ""},
		{"b.c", mark.None, mark.JSON, ""},
		{"g", mark.None, mark.Geography, ""},
		{"by option", mark.Geography, mark.Geography, ""},
		{"twice", mark.None, mark.None, "C-BOTH twice"},
		{"meets", mark.JSON, mark.None, "C-BOTH meets"},
	} {
		got, err := p.Of(c.path, c.other)
		if got != c.want || kindAndPath(err) != c.fault {
			t.Errorf("Of(%q, %v) = %v, %v, want %v and the fault %q", c.path, c.other, got, err, c.want, c.fault)
		}
	}
	if faults := p.Unmatched(); len(faults) != 0 {
		t.Errorf("unmatched %v, want none", faults)
	}
}

func TestPathsWithoutAField(t *testing.T) {
	hostile := []string{"z", "a.b", "", ".", "A", "x..y", "x\x00\n", strings.Repeat("a.", 1000)}
	p := mark.NewPaths(hostile, []string{"geo"})
	for _, path := range []string{"a", "x"} {
		if m, err := p.Of(path, mark.None); m != mark.None || err != nil {
			t.Errorf("Of(%q) = %v, %v, want none", path, m, err)
		}
	}
	faults := p.Unmatched()
	if len(faults) != len(hostile)+1 {
		t.Fatalf("%d faults, want one for each of %d paths", len(faults), len(hostile)+1)
	}
	before := ""
	for _, f := range faults {
		e, ok := errors.AsType[*row.Error](f)
		if !ok || e.Kind != row.KindPath || e.Path < before {
			t.Errorf("fault %v, want C-PATH, in order", f)
		}
		before = e.Path
	}
}

func TestRefuse(t *testing.T) {
	err := mark.Geography.Refuse("a.n", "an INT64", "a string")
	if got, want := err.Error(), "C-MARK: field a.n: marked as GEOGRAPHY and is an INT64: expected a string"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if mark.Geography.Type() != table.Geography || mark.JSON.Type() != table.JSON {
		t.Error("a mark has another type than its name says")
	}
}
