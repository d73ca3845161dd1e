package goschema

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Read is the table's schema that a Go source file was written for. typeName is the struct, "" the only one that carries a
// schema. A struct that carries none, or was changed since, is an error: what its types are only a program that has it compiled
// in can tell, by structrow.New.
func Read(source []byte, typeName string) (*table.Schema, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("not a Go source file: %w", err)
	}
	name, text, err := find(file, typeName)
	if err != nil {
		return nil, err
	}
	s, err := table.ParseSchemaJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("type %s: the schema in %s: %w", name, strings.TrimSpace(directive), err)
	}
	want, err := Write(s, Options{Package: file.Name.Name, Type: name})
	if err != nil {
		return nil, err
	}
	if !sameTypes(source, want) {
		return nil, fmt.Errorf("type %s is not what its schema says: it was changed since it was written; derive the schema with structrow.New", name)
	}
	return s, nil
}

// find returns the struct's name and the schema above it.
func find(file *ast.File, want string) (name, text string, err error) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE || g.Doc == nil || len(g.Specs) != 1 {
			continue
		}
		spec := g.Specs[0].(*ast.TypeSpec)
		for _, c := range g.Doc.List {
			rest, ok := strings.CutPrefix(c.Text, directive)
			if !ok || want != "" && spec.Name.Name != want {
				continue
			}
			if name != "" {
				return "", "", fmt.Errorf("the types %s and %s carry a schema: name one", name, spec.Name.Name)
			}
			name, text = spec.Name.Name, rest
		}
	}
	switch {
	case name != "":
		return name, text, nil
	case want != "":
		return "", "", fmt.Errorf("no type %s has a comment %s: derive its schema with structrow.New", want, strings.TrimSpace(directive))
	}
	return "", "", fmt.Errorf("no type has a comment %s: derive the schema with structrow.New", strings.TrimSpace(directive))
}

// sameTypes says whether all types of the second source stand in the first, comments apart.
func sameTypes(have, want []byte) bool {
	all := typesOf(have)
	for name, text := range typesOf(want) {
		if all[name] != text {
			return false
		}
	}
	return true
}

func typesOf(source []byte) map[string]string {
	out := map[string]string{}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution) // without comments
	if err != nil {
		return out
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.TypeSpec)
			out[spec.Name.Name] = text(spec)
		}
	}
	return out
}

// text prints a type's fields without regard to how they were laid out.
func text(spec *ast.TypeSpec) string {
	t, ok := spec.Type.(*ast.StructType)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, f := range t.Fields.List {
		var typ bytes.Buffer
		if err := format.Node(&typ, token.NewFileSet(), f.Type); err != nil {
			return ""
		}
		for _, n := range f.Names {
			b.WriteString(n.Name + " ")
		}
		b.WriteString(typ.String())
		if f.Tag != nil {
			b.WriteString(" " + f.Tag.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
