package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

func fieldOf(rec map[string]string, name string) (string, error) {
	v, ok := rec[name]
	if !ok {
		return "", errors.New("the record has no such field")
	}
	return v, nil
}

func TestPatternFaults(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"":                  "column 1: expected project.dataset.table",
		"p.d":               "column 4: expected project.dataset.table",
		"p.d.{event":        "column 5: the brace is not closed",
		"p.d.event}":        "column 10: the brace was not opened",
		"p.d.{a{b}}":        "column 5: the brace is not closed",
		"p.d.{}":            "column 6: expected the name of a field between the braces",
		"p.d.{ a}":          "column 6: expected the name of a field between the braces",
		"p.d.t/x":           `column 6: the character '/' cannot be part of a table name`,
		"p.da-ta.t":         `column 5: the character '-' cannot be part of a dataset name`,
		"p q.d.t":           `column 2: the character ' ' cannot be part of a project name`,
		"{p}.d.t":           "column 1: a placeholder cannot stand in the project",
		".d.t":              "column 1: the project name is empty",
		"p..t":              "column 3: the dataset name is empty",
		"p.d.":              "column 5: the table name is empty",
		"p.d.tä{e}ß*":       `column 11: the character '*' cannot be part of a table name`,
		"x.com:p.d.{e.f}.":  "column 9: the character '.' cannot be part of a project name",
		"p.d.{a}\U0001F600": "column 8: the character '😀' cannot be part of a table name",
	} {
		_, err := Template(pattern, fieldOf)
		var pe *PatternError
		if pattern == "x.com:p.d.{e.f}." { // the last dot ends the dataset, which is a placeholder with text before it
			if !errors.As(err, &pe) {
				t.Errorf("%q: got %v", pattern, err)
			}
			continue
		}
		if !errors.As(err, &pe) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", pattern, err, want)
		}
	}
	if _, err := Template[int]("p.d.t", nil); err == nil {
		t.Error("no function, and no error")
	}
}

func TestTemplateFillsIn(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"p.d.{event}":                   "p.d.issue comment",
		"example.com:p.{owner}_x.t_{n}": "example.com:p.acme_x.t_7",
		"p.d.{event}_{n}":               "p.d.issue comment_7",
		"p.d.t":                         "p.d.t",
		"p.d.{repo.name}$20260101":      "p.d.millrace$20260101",
	} {
		to, err := Template(pattern, fieldOf)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		rec := &stream.Record[map[string]string]{Value: map[string]string{"event": "issue comment", "owner": "acme", "n": "7", "repo.name": "millrace"}}
		for _, r := range []Resolver[map[string]string]{to, laneResolver(to), laneResolver(to)} {
			for range 2 { // made, then remembered
				got, err := r.Resolve(t.Context(), rec)
				if err != nil || got.String() != want {
					t.Errorf("%q: got %v, %v", pattern, got, err)
				}
			}
		}
	}
}

func TestTemplateRefusesValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                        `field "v" is empty: expected part of a table name`,
		"a/b":                     `field "v" is "a/b", which cannot be part of a table name: it has the character '/': expected letters, digits, underscores, hyphens and spaces`,
		"t$20260101":              `which cannot be part of a table name: it has the character '$'`,
		"a\x00b":                  `has the character '\x00'`,
		"a.b":                     `has the character '.'`,
		"\xff":                    `is not valid UTF-8`,
		strings.Repeat("x", 1020): `is 1025 bytes long`,
		strings.Repeat("x", 1025): `it is 1025 bytes long`,
	} {
		to, err := Template("p.d.abcd_{v}", fieldOf)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []Resolver[map[string]string]{to, laneResolver(to)} {
			_, err := r.Resolve(t.Context(), &stream.Record[map[string]string]{Value: map[string]string{"v": value}})
			var u *Unroutable
			if !errors.As(err, &u) || u.Field != "v" || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v", value, err)
			}
			if _, err := r.Resolve(t.Context(), &stream.Record[map[string]string]{Value: map[string]string{"v": "ok"}}); err != nil {
				t.Errorf("after %q: %v", value, err)
			}
		}
	}
}

func TestTemplateFieldErrors(t *testing.T) {
	t.Parallel()
	long := &Unroutable{Field: "f", Value: strings.Repeat("é", 10_000), Reason: "is long"}
	if got, want := long.Error(), `field "f" is "`+strings.Repeat("é", 80)+`"…, which is long`; got != want {
		t.Errorf("a value of any length in an error: %.200q", got)
	}
	own := &Unroutable{Reason: "tenant is on holiday"}
	cause := errors.New("no such field")
	to, err := Template("p.d.{v}", func(fails error, _ string) (string, error) { return "", fails })
	if err != nil {
		t.Fatal(err)
	}
	_, err = to.Resolve(t.Context(), &stream.Record[error]{Value: fmt.Errorf("x: %w", own)})
	var u *Unroutable
	if !errors.As(err, &u) || u != own {
		t.Errorf("got %v", err)
	}
	_, err = to.Resolve(t.Context(), &stream.Record[error]{Value: cause})
	if !errors.As(err, &u) || u.Field != "v" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// Names that only differ in where one value ends must not be taken for each other.
func TestTemplateTellsValuesApart(t *testing.T) {
	t.Parallel()
	to, err := Template("p.d.{a}_{b}", fieldOf)
	if err != nil {
		t.Fatal(err)
	}
	lane := laneResolver(to)
	for _, v := range [][2]string{{"x", "y_z"}, {"x_y", "z"}, {"x", "y_z"}} {
		got, err := lane.Resolve(t.Context(), &stream.Record[map[string]string]{Value: map[string]string{"a": v[0], "b": v[1]}})
		if err != nil || got.Table != "x_y_z" {
			t.Errorf("%v: got %v, %v", v, got, err)
		}
	}
	if n := len(lane.(*laneTemplate[map[string]string]).known); n != 2 {
		t.Errorf("%d names are known", n)
	}
}

func TestTemplateForgets(t *testing.T) {
	t.Parallel()
	to, err := Template("p.d.{v}", fieldOf)
	if err != nil {
		t.Fatal(err)
	}
	lane := laneResolver(to).(*laneTemplate[map[string]string])
	for i := range maxKnown + 10 {
		if _, err := lane.Resolve(t.Context(), &stream.Record[map[string]string]{Value: map[string]string{"v": fmt.Sprint("t", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(lane.known); n != 10 {
		t.Errorf("%d names are known", n)
	}
}

func BenchmarkTemplate(b *testing.B) {
	to, err := AppendTemplate("my-project.github.{event}", func(buf []byte, rec string, _ string) ([]byte, error) {
		return append(buf, rec...), nil
	})
	if err != nil {
		b.Fatal(err)
	}
	lane := laneResolver(to)
	records := []stream.Record[string]{{Value: "issues"}, {Value: "push"}, {Value: "pull_request"}}
	var dst table.Destination
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if dst, err = lane.Resolve(context.Background(), &records[i%3]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	_ = dst
}
