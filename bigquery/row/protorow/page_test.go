package protorow_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row/protorow"
)

// The examples of docs/reference/protobuf.md are run: every table under one of these headings.
var pageTables = []struct {
	heading string
	run     func(t *testing.T, cells []string)
	least   int // rows: fewer mean that the search is broken
}{
	{"Types", pageType, 25},
	{"Presence", pagePresence, 12},
	{"JSON and GEOGRAPHY", pageMarker, 15},
	{"Types that are refused", pageRefused, 5},
}

func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/protobuf.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := pageRows(string(text))
	for _, p := range pageTables {
		t.Run(p.heading, func(t *testing.T) {
			if len(rows[p.heading]) < p.least {
				t.Errorf("found %d rows, want %d and more", len(rows[p.heading]), p.least)
			}
			for _, cells := range rows[p.heading] {
				t.Run(strings.Join(cells, " "), func(t *testing.T) { p.run(t, cells) })
			}
		})
		delete(rows, p.heading)
	}
	for heading := range rows {
		t.Errorf("the tables under %q are not run", heading)
	}
}

var pageCode = regexp.MustCompile("`([^`]*)`")

// pageRows are what stands between backquotes in the rows of tables, by the heading above them.
func pageRows(page string) map[string][][]string {
	rows := map[string][][]string{}
	heading, head := "", 0
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			heading, head = strings.TrimLeft(line, "# "), 2
		case !strings.HasPrefix(line, "|"):
			head = 2
		case head > 0:
			head--
		default:
			var cells []string
			for _, m := range pageCode.FindAllStringSubmatch(line, -1) {
				cells = append(cells, strings.TrimSpace(m[1]))
			}
			rows[heading] = append(rows[heading], cells)
		}
	}
	return rows
}

// pageCheck runs a field v. Values of JSON and GEOGRAPHY stand on the page without a mark around them.
func pageCheck(t *testing.T, syntax, fields string, o protorow.Options, record, column, value string) {
	t.Helper()
	md := compiled(t, map[string]string{"m.proto": source(syntax, fields)})
	if got, want := schemaOf(t, md, o), "v "+column; got != want && got != column {
		t.Errorf("the column is %s, the page says %s", got, column)
	}
	if value == "" && column[0] == 'C' {
		return
	}
	got := strings.ReplaceAll(rowOf(t, md, o, message(t, md, record)), "`", "")
	if want := "v: " + value; got != want && got != value+" v" {
		t.Errorf("the value is %s, the page says %s", got, value)
	}
}

func pageType(t *testing.T, cells []string) {
	pageCheck(t, proto3, cells[0], protorow.Options{}, cells[1], cells[2], cells[3])
}

func pagePresence(t *testing.T, cells []string) {
	syntax := map[string]string{"proto2": proto2, "proto3": proto3}[cells[0]]
	pageCheck(t, syntax, cells[1], protorow.Options{}, cells[2], cells[3], cells[5])
	value := cells[5]
	if strings.HasPrefix(cells[1], "required") && value == "NULL" {
		value = "R-REQUIRED"
	}
	pageCheck(t, syntax, cells[1], protorow.Options{DeriveRequired: true}, cells[2], cells[4], value)
}

func pageMarker(t *testing.T, cells []string) {
	mark, path, ok := strings.Cut(cells[1], " ")
	if !ok {
		path = "v"
	}
	o := protorow.Options{JSONPaths: []string{path}}
	if mark == "GEOGRAPHY" {
		o = protorow.Options{GeographyPaths: []string{path}}
	}
	column := cells[3]
	if strings.HasPrefix(column, "C-") {
		column += " " + path
	}
	pageCheck(t, proto3, cells[0], o, cells[2], column, cells[4])
}

func pageRefused(t *testing.T, cells []string) {
	md := compiled(t, map[string]string{"m.proto": source(proto3, cells[0])})
	if got := schemaOf(t, md, protorow.Options{}); got != cells[1] {
		t.Errorf("the error is %s, the page says %s", got, cells[1])
	}
}
