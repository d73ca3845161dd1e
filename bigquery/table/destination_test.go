package table

import (
	"errors"
	"strings"
	"testing"
)

func TestParseDestination(t *testing.T) {
	long := strings.Repeat("t", 1024)
	for _, c := range []struct {
		in   string
		want Destination
	}{
		{"p.d.t", Destination{"p", "d", "t"}},
		{"my-project.github.issues", Destination{"my-project", "github", "issues"}},
		{"example.com:project.data.t", Destination{"example.com:project", "data", "t"}},
		{"p.d.t$20260726", Destination{"p", "d", "t$20260726"}},
		{"p.d.t$-5", Destination{"p", "d", "t$-5"}},
		{"p.d.Größe 2–3", Destination{"p", "d", "Größe 2–3"}},
		{"p.d." + long, Destination{"p", "d", long}},
	} {
		got, err := ParseDestination(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseDestination(%q) = %v, %v, want %v", c.in, got, err, c.want)
		}
		if got.String() != c.in {
			t.Errorf("String() = %q, want what was parsed, %q", got.String(), c.in)
		}
	}
}

func TestParseDestinationRefuses(t *testing.T) {
	for _, c := range []struct{ in, reason string }{
		{"", "expected project.dataset.table"},
		{"t", "expected project.dataset.table"},
		{"d.t", "expected project.dataset.table"},
		{"..", "project is empty"},
		{"p..t", "dataset is empty"},
		{"p.d.", "table is empty"},
		{"p.d.$20260726", "empty before its partition decorator"},
		{"p.d.t$", "partition decorator"},
		{"p.d.t$x", "partition decorator"},
		{"p.d.t$-", "partition decorator"},
		{"p.d.t$2026$07", "partition decorator"},
		{"p.d.a/b", `character '/'`},
		{"p.d.a`; DROP TABLE b", "character '`'"},
		{"p.d.a\x00", `character '\x00'`},
		{"p.d.a\nb", `character '\n'`},
		{"p.d.a:b", `character ':'`},
		{"p.d.\xff", "not valid UTF-8"},
		{"p.d." + strings.Repeat("é", 513), "1026 bytes long"},
		{"p.d-d.t", `character '-'`},
		{"p.größe.t", `character 'ö'`},
		{"p." + strings.Repeat("d", 1025) + ".t", "1025 bytes long"},
		{"p/../q.d.t", `character '/'`},
		{"p q.d.t", `character ' '`},
		{"....d.t", `begins with '.'`},
		{"-p.d.t", `begins with '-'`},
		{strings.Repeat("p", 256) + ".d.t", "256 bytes long"},
	} {
		_, err := ParseDestination(c.in)
		if !errors.Is(err, ErrDestination) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("ParseDestination(%.40q) = %v, want ErrDestination with %q", c.in, err, c.reason)
		}
	}
}

func TestValidateReportsAllParts(t *testing.T) {
	err := Destination{Project: "a b", Dataset: "c-d", Table: "e/f"}.Validate()
	for _, part := range []string{"project has", "dataset has", "table has"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
}

func TestPath(t *testing.T) {
	d := Destination{"p", "d", "t"}
	if got, want := d.Path(), "projects/p/datasets/d/tables/t"; got != want {
		t.Errorf("Path() = %q, want %q", got, want)
	}
	if same := map[Destination]bool{d: true}; !same[Destination{"p", "d", "t"}] {
		t.Error("equal destinations are different map keys")
	}
}
