package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mention is one place of the code that a page names.
type mention struct {
	line int
	file string // relative to the module
	name string // "" is the file alone, else Func, Type, (*Type).Method or (Interface).Method
}

// mentionText is how a page spells mentions: `files/reader.go`, `files/{lines,pump}.go` for several files, or
// `files/reader.go: (*reader).Fetch, (*reader).Close` for what is in one.
var mentionText = regexp.MustCompile("`([A-Za-z0-9_./{},-]+\\.go)(?:: ([^`]+))?`")

func mentionsIn(page string) (all []mention) {
	for i, line := range strings.Split(page, "\n") {
		for _, m := range mentionText.FindAllStringSubmatch(line, -1) {
			for _, file := range expand(m[1]) {
				for _, name := range strings.Split(m[2], ",") {
					all = append(all, mention{i + 1, file, strings.TrimSpace(name)})
				}
			}
		}
	}
	return all
}

// expand makes the files of a name with braces, as a shell does.
func expand(name string) (all []string) {
	before, rest, found := strings.Cut(name, "{")
	if !found {
		return []string{name}
	}
	list, after, _ := strings.Cut(rest, "}")
	for _, one := range strings.Split(list, ",") {
		all = append(all, before+one+after)
	}
	return all
}

// TestArchitectureNamesWhatExists holds ARCHITECTURE.md to the code: every file and every function it names is there.
func TestArchitectureNamesWhatExists(t *testing.T) {
	all := mentionsIn(readPage(t, "ARCHITECTURE.md"))
	if len(all) < 100 {
		t.Fatalf("found %d mentions: the page or the search is broken", len(all))
	}
	for _, m := range all {
		if fault := m.fault(); fault != "" {
			t.Errorf("ARCHITECTURE.md:%d: %s", m.line, fault)
		}
	}
}

// TestMentionsCanBeWrong proves that the test above can fail.
func TestMentionsCanBeWrong(t *testing.T) {
	page := "a `stream/nowhere.go`\n`stream/batch.go: Nothing`, `stream/batch.go: (*Batch).Nothing`\n`stream/batch.go: (Batch).Reset`\n" +
		"`stream/batch.go`, `stream/batch.go: (*Batch).Reset, Batch`, `stream/source.go: (Reader).Fetch, ErrNoSplitYet, MaxPosition`\n" +
		"`stream/{batch,gone}.go`"
	var wrong []string
	all := mentionsIn(page)
	for _, m := range all {
		if m.fault() != "" {
			wrong = append(wrong, fmt.Sprintf("%d %s", m.line, m.name))
		}
	}
	if got := strings.Join(wrong, "; "); len(all) != 12 || got != "1 ; 2 Nothing; 2 (*Batch).Nothing; 3 (Batch).Reset; 5 " {
		t.Errorf("found %d mentions, wrong ones: %q", len(all), got)
	}
}

// TestArchitectureNamesEveryPackage: a package that the page leaves out is one that a reader cannot find.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	page := readPage(t, "ARCHITECTURE.md")
	seen := map[string]bool{".": true}
	for _, file := range goFiles(t) {
		dir := path.Dir(file)
		if !seen[dir] && !strings.Contains(page, "`"+dir+"`") && !strings.Contains(page, "`"+dir+"/") {
			t.Errorf("ARCHITECTURE.md does not name %s", dir)
		}
		seen[dir] = true
	}
}

// fault says what is wrong with a mention, "" when nothing is.
func (m mention) fault() string {
	declared, err := declarations(filepath.Join("..", "..", filepath.FromSlash(m.file)))
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v", m.file, err)
	case m.name != "" && !declared[m.name]:
		return fmt.Sprintf("%s has no %s", m.file, m.name)
	}
	return ""
}

// declarations are what a file declares, spelt as mentions spell it, type parameters left out.
func declarations(file string) (map[string]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			all[funcName(d)] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				declared(s, all)
			}
		}
	}
	return all, nil
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	star := ""
	if p, ok := receiver.(*ast.StarExpr); ok {
		receiver, star = p.X, "*"
	}
	return "(" + star + typeName(receiver) + ")." + d.Name.Name
}

// typeName is a receiver's type without its parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return "?"
}

func declared(s ast.Spec, into map[string]bool) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			into[name.Name] = true
		}
	case *ast.TypeSpec:
		into[s.Name.Name] = true
		i, ok := s.Type.(*ast.InterfaceType)
		if !ok {
			return
		}
		for _, m := range i.Methods.List {
			for _, name := range m.Names {
				into["("+s.Name.Name+")."+name.Name] = true
			}
		}
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
