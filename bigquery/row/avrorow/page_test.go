package avrorow

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// The examples of docs/reference/avro.md are run: every table under one of these headings.
var pageTables = []struct {
	heading string
	run     func(t *testing.T, code []string) (got, want string)
	least   int // rows: fewer mean that the search is broken
}{
	{"Types", func(_ *testing.T, code []string) (got, want string) { return spelled(code[0], Options{}), code[1] }, 20},
	{"What is refused", func(_ *testing.T, code []string) (got, want string) {
		got, _, _ = strings.Cut(spelled(code[0], Options{}), " ")
		return strings.TrimSuffix(got, ","), code[1]
	}, 10},
	{"Values", pageValue, 15},
}

var codeSpan = regexp.MustCompile("`([^`]*)`")

func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/avro.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][][]string{}
	heading := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			heading = strings.TrimLeft(line, "# ")
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		var code []string
		for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
			code = append(code, m[1])
		}
		rows[heading] = append(rows[heading], code)
	}
	for _, p := range pageTables {
		t.Run(p.heading, func(t *testing.T) {
			if len(rows[p.heading]) < p.least {
				t.Errorf("found %d rows, want %d and more", len(rows[p.heading]), p.least)
			}
			for _, code := range rows[p.heading] {
				if got, want := p.run(t, code); got != want {
					t.Errorf("%s: the page says %s, the code %s", strings.Join(code[:len(code)-1], " "), want, got)
				}
			}
		})
		delete(rows, p.heading)
	}
	for heading := range rows {
		t.Errorf("the tables under %q are not run", heading)
	}
}

// pageValue writes a value, which is the default of its type's JSON, and reads it back.
func pageValue(t *testing.T, code []string) (got, want string) {
	s, err := New(of(code[0]), itself[[]byte], Options{})
	if err != nil {
		t.Fatal(err)
	}
	datum, err := avro.AppendDefault(nil, parsed(t, of(code[0])).Fields[0].Type, []byte(code[1]))
	if err != nil {
		t.Fatal(code, err)
	}
	b, err := s.AppendRow(nil, table.Destination{}, datum)
	if e, ok := errors.AsType[*row.Error](err); ok {
		return string(e.Kind), code[2]
	}
	d, err := row.NewDecoder(s.schema)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonrow.NewWriter(jsonrow.WriteOptions{Nulls: true}).AppendJSON(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(out), `{"f":`), "}"), code[2]
}
