package jsonrow

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// The examples of docs/reference/json.md are run: every table under one of these headings.
var pageTables = []struct {
	heading string
	run     func(t *testing.T, cells []string) (got, want string)
	least   int // rows: fewer mean that the search is broken
}{
	{"Documents", wholeDocuments, 8},
	{"Values", given, 60},
	{"Values under inferred schemas", inferred, 10},
	{"Types", inferredTypes, 15},
	{"Names", inferredNames, 8},
	{"Fields without a column", restOfDocuments, 4},
}

func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/json.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := pageRows(string(text))
	for _, p := range pageTables {
		t.Run(p.heading, func(t *testing.T) {
			if len(rows[p.heading]) < p.least {
				t.Errorf("found %d rows, want %d and more", len(rows[p.heading]), p.least)
			}
			for _, r := range rows[p.heading] {
				if got, want := p.run(t, r.cells); got != want {
					t.Errorf("docs/reference/json.md:%d: the page says %s, the code %s", r.line, want, got)
				}
			}
		})
		delete(rows, p.heading)
	}
	for heading := range rows {
		t.Errorf("the tables under %q are not run", heading)
	}
}

type pageRow struct {
	line  int
	cells []string
}

// pageRows are the rows of tables by the heading above them, without the two lines of a table's head.
func pageRows(page string) map[string][]pageRow {
	rows := map[string][]pageRow{}
	heading, head := "", 0
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			heading, head = strings.TrimLeft(line, "# "), 2
		case !strings.HasPrefix(line, "|"):
			head = 2
		case head > 0:
			head--
		default:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for k := range cells {
				cells[k] = strings.TrimSpace(cells[k])
			}
			rows[heading] = append(rows[heading], pageRow{i + 1, cells})
		}
	}
	return rows
}

var codeSpan = regexp.MustCompile("`([^`]*)`")

// code is the texts between backquotes in a cell.
func code(cell string) (all []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func wholeDocuments(t *testing.T, cells []string) (got, want string) {
	return written(t, Fixed(columnOf(t, "INT64")), code(cells[0])[0], WriteOptions{}), code(cells[1])[0]
}

func given(t *testing.T, cells []string) (got, want string) {
	return oneValue(t, Fixed(columnOf(t, code(cells[0])[0])), cells)
}

func inferred(t *testing.T, cells []string) (got, want string) {
	return oneValue(t, &Mapping{Schema: columnOf(t, code(cells[0])[0]), Exact: true}, cells)
}

// oneValue writes {"v":value} and reads it back.
func oneValue(t *testing.T, m *Mapping, cells []string) (got, want string) {
	t.Helper()
	out := written(t, m, `{"v":`+code(cells[1])[0]+`}`, WriteOptions{Nulls: true})
	return strings.TrimSuffix(strings.TrimPrefix(out, `{"v":`), "}"), code(cells[2])[0]
}

// written is a document made a row and a document again, or the kind of its error.
func written(t *testing.T, m *Mapping, doc string, o WriteOptions) string {
	t.Helper()
	s, err := New(func(doc string) []byte { return []byte(doc) }, m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := s.AppendRow(nil, table.Destination{}, doc)
	if e, ok := errors.AsType[*row.Error](err); ok {
		return string(e.Kind)
	}
	d, err := row.NewDecoder(m.Schema)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Decode(encoded)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	out, err := NewWriter(o).AppendJSON(nil, r)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return string(out)
}

// columnOf is a table of one column v, of a type such as ARRAY<STRUCT<a INT64>> or NUMERIC(5, 2) NOT NULL.
func columnOf(t *testing.T, text string) *table.Schema {
	t.Helper()
	f := table.Field{Name: "v"}
	rest, required := strings.CutSuffix(text, " NOT NULL")
	if required {
		f.Mode = table.Required
	}
	if err := parseType(&f, rest); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &table.Schema{Fields: []table.Field{f}}
}

func parseType(f *table.Field, text string) (err error) {
	name, inner, bracket := strings.Cut(text, "<")
	inner = strings.TrimSuffix(inner, ">")
	switch {
	case name == "ARRAY":
		f.Mode = table.Repeated
		return parseType(f, inner)
	case name == "RANGE":
		f.Type = table.Range
		f.Range, err = table.ParseType(inner)
		return err
	case bracket:
		f.Type = table.Struct
		for _, member := range strings.Split(inner, ", ") {
			name, typ, _ := strings.Cut(member, " ")
			m := table.Field{Name: name}
			if err := parseType(&m, typ); err != nil {
				return err
			}
			f.Fields = append(f.Fields, m)
		}
		return nil
	}
	name, digits, _ := strings.Cut(text, "(")
	if digits != "" {
		if _, err := fmt.Sscanf(digits, "%d, %d)", &f.Precision, &f.Scale); err != nil {
			return err
		}
	}
	f.Type, err = table.ParseType(name)
	return err
}

// spelt is a column's type as the page writes it.
func spelt(f *table.Field) string {
	text := f.Type.String()
	if f.Type == table.Struct {
		var members []string
		for i := range f.Fields {
			members = append(members, f.Fields[i].Name+" "+spelt(&f.Fields[i]))
		}
		text = "STRUCT<" + strings.Join(members, ", ") + ">"
	}
	if f.Mode == table.Repeated {
		return "ARRAY<" + text + ">"
	}
	return text
}

// inferredTypes infers the type of v from values of v. Another key makes sure that there is a column.
func inferredTypes(t *testing.T, cells []string) (got, want string) {
	docs := []string{`{"other": 1}`}
	for _, value := range code(cells[0]) {
		docs = append(docs, `{"v": `+value+`}`)
	}
	f := infer(t, InferOptions{}, docs...).Mapping.Schema.Field("v")
	if f == nil {
		return "no column", cells[1]
	}
	return spelt(f), code(cells[1])[0]
}

// inferredNames infers the names of the columns for keys of one object.
func inferredNames(t *testing.T, cells []string) (got, want string) {
	var members []string
	for _, key := range code(cells[0]) {
		members = append(members, key+`: 1`)
	}
	var names []string
	for _, f := range infer(t, InferOptions{}, "{"+strings.Join(members, ", ")+"}").Mapping.Schema.Fields {
		names = append(names, strconv.Quote(f.Name))
	}
	return strings.Join(names, ", "), `"` + strings.Join(code(cells[1]), `", "`) + `"`
}

// restOfDocuments infers a schema from the first document and writes the second with it.
func restOfDocuments(t *testing.T, cells []string) (got, want string) {
	m := infer(t, InferOptions{Rest: strings.Join(code(cells[2]), "")}, code(cells[0])[0]).Mapping
	return written(t, m, code(cells[1])[0], WriteOptions{}), code(cells[3])[0]
}
