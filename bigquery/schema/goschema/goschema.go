// Package goschema turns a table's schema into the Go struct of its rows and back, losing nothing.
//
// The struct is one that package structrow and the official client take; columns that may be NULL are pointers. What a struct has
// no place for lies in a comment above it, //bigquery:schema and the schema as JSON.
package goschema

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"strconv"
	"strings"
	"unicode"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Options names what is written. The zero value is package main, type Row.
type Options struct {
	Package string
	Type    string
}

func (o Options) resolve() (Options, error) {
	if o.Package == "" {
		o.Package = "main"
	}
	if o.Type == "" {
		o.Type = "Row"
	}
	var faults []error
	if !token.IsIdentifier(o.Package) {
		faults = append(faults, fmt.Errorf("package %q: expected a Go identifier", o.Package))
	}
	if !token.IsIdentifier(o.Type) || !token.IsExported(o.Type) {
		faults = append(faults, fmt.Errorf("type %q: expected an exported Go identifier, such as Row", o.Type))
	}
	return o, errors.Join(faults...)
}

// directive begins the comment that carries the schema.
const directive = "//bigquery:schema "

// Write is a Go source file with the struct of a table's rows, formatted as gofmt does. The error joins what is wrong with the
// options, or is that of row.CheckSchema.
func Write(s *table.Schema, o Options) ([]byte, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if err := row.CheckSchema(s); err != nil {
		return nil, err
	}
	w := writer{imports: map[string]bool{}, types: map[string]bool{}}
	w.define(o.Type, s.Fields, directive+string(s.CompactJSON()))
	var out bytes.Buffer
	fmt.Fprintf(&out, "package %s\n\n", o.Package)
	if len(w.imports) > 0 {
		out.WriteString("import (\n")
		for _, group := range [][]string{{"encoding/json", "math/big", "time"}, {"cloud.google.com/go/bigquery", "cloud.google.com/go/civil"}} {
			for _, path := range group {
				if w.imports[path] {
					fmt.Fprintf(&out, "%q\n", path)
				}
			}
			out.WriteString("\n")
		}
		out.WriteString(")\n\n")
	}
	for i := range w.structs {
		out.Write(w.structs[i].Bytes())
	}
	source, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the source that was written is not Go: %w", err)
	}
	return source, nil
}

type writer struct {
	imports map[string]bool
	types   map[string]bool // names that are taken
	structs []*bytes.Buffer // in the order in which they are first named
}

// define writes the struct of siblings, and those of its members behind it.
func (w *writer) define(name string, fields []table.Field, comment string) {
	w.types[name] = true
	b := &bytes.Buffer{}
	w.structs = append(w.structs, b)
	fmt.Fprintf(b, "%s\ntype %s struct {\n", comment, name)
	taken := map[string]bool{}
	for i := range fields {
		f := &fields[i]
		goName := unique(taken, exported(f.Name))
		for line := range strings.Lines(f.Description) {
			fmt.Fprintf(b, "// %s\n", clean(line))
		}
		fmt.Fprintf(b, "%s %s `bigquery:%s`\n", goName, w.typeOf(f, name+goName), strconv.Quote(f.Name))
	}
	b.WriteString("}\n\n")
}

// clean keeps a comment on its line.
func clean(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar || r == '\ufeff' {
			return ' '
		}
		return r
	}, line))
}

// exported is the Go name of a column: its words, each with an upper-case letter.
func exported(column string) string {
	var b strings.Builder
	upper := true
	for _, r := range column {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	name := b.String()
	if !token.IsIdentifier(name) || !token.IsExported(name) {
		name = "X" + name
	}
	return name
}

func unique(taken map[string]bool, name string) string {
	out := name
	for i := 2; taken[out]; i++ {
		out = name + "_" + strconv.Itoa(i)
	}
	taken[out] = true
	return out
}

var goTypes = map[table.Type]struct{ name, path string }{
	table.Bool:       {"bool", ""},
	table.Int64:      {"int64", ""},
	table.Float64:    {"float64", ""},
	table.String:     {"string", ""},
	table.Geography:  {"bigquery.NullGeography", "cloud.google.com/go/bigquery"},
	table.Bytes:      {"[]byte", ""},
	table.JSON:       {"json.RawMessage", "encoding/json"},
	table.Date:       {"civil.Date", "cloud.google.com/go/civil"},
	table.Time:       {"civil.Time", "cloud.google.com/go/civil"},
	table.DateTime:   {"civil.DateTime", "cloud.google.com/go/civil"},
	table.Timestamp:  {"time.Time", "time"},
	table.Numeric:    {"*big.Rat", "math/big"},
	table.BigNumeric: {"*big.Rat", "math/big"},
	table.Interval:   {"*bigquery.IntervalValue", "cloud.google.com/go/bigquery"},
	table.Range:      {"*bigquery.RangeValue", "cloud.google.com/go/bigquery"},
}

func (w *writer) typeOf(f *table.Field, structName string) string {
	t := goTypes[f.Type]
	if t.path != "" {
		w.imports[t.path] = true
	}
	if f.Type == table.Struct {
		t.name = unique(w.types, structName)
		w.define(t.name, f.Fields, "// "+t.name+" is a STRUCT.")
	}
	switch {
	case f.Mode == table.Repeated:
		return "[]" + t.name
	case f.Mode == table.Nullable && t.name[0] != '*' && t.name[0] != '[' && f.Type != table.Geography && f.Type != table.JSON:
		return "*" + t.name
	}
	return t.name
}
