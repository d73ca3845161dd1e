package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chapter is a list of numbered facts about behaviour that tests name in their names, or in a comment beside them.
type chapter struct {
	prefix, about string
	cases         int
}

var chapters = []chapter{
	{"LBQ", "the local service, as a client sees it", 176},
	{"SER", "records to rows and back", 177},
	{"SW", "writing over the Storage Write API", 160},
	{"SRC", "reading over the Storage Read API", 93},
	{"FL", "loading files", 89},
	{"CDC", "sources that capture changes", 140},
	{"SQL", "the SQL front end", 140},
}

const conformancePage = "docs/reference/conformance.md"

// TestConformancePage counts the cases that tests name and holds the page to it.
func TestConformancePage(t *testing.T) {
	named := namedCases(t)
	want := conformance(named)
	for _, c := range chapters {
		t.Logf("%s: %d of %d cases are named by tests", c.prefix, len(named[c.prefix]), c.cases)
		for n := range named[c.prefix] {
			if n < 1 || n > c.cases {
				t.Errorf("%s names %s-%d: the chapter has %d cases", named[c.prefix][n], c.prefix, n, c.cases)
			}
		}
	}
	path := filepath.Join("..", "..", conformancePage)
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := readPage(t, conformancePage); got != want {
		t.Errorf("%s is not what the tests name; run: go test ./internal/arch -rewrite", conformancePage)
	}
}

// namedCases are the cases by prefix and number, each with a file that names it.
func namedCases(t *testing.T) map[string]map[int]string {
	t.Helper()
	all := map[string]map[int]string{}
	for _, c := range chapters {
		all[c.prefix] = map[int]string{}
	}
	for _, file := range testFiles(t) {
		if strings.HasPrefix(filepath.ToSlash(file), "internal/arch/") {
			continue // examples of how cases are named
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(parsed) {
			for _, c := range casesIn(text) {
				if numbers := all[c.prefix]; numbers != nil {
					numbers[c.number] = file
				}
			}
		}
	}
	return all
}

// texts are the strings and comments of a file: names of subtests are strings, in calls and in tables.
func texts(f *ast.File) (all []string) {
	for _, group := range f.Comments {
		for _, c := range group.List {
			all = append(all, c.Text)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			all = append(all, s.Value)
		}
		return true
	})
	return all
}

type namedCase struct {
	prefix string
	number int
}

var caseText = regexp.MustCompile(`([A-Z]{2,3})-([0-9]+)(?: to [A-Z]{2,3}-([0-9]+)|((?:, [0-9]+\b)+))?`)

// casesIn finds SW-6, "SW-6 to SW-12" and "SW-1, 5, 23".
func casesIn(text string) (all []namedCase) {
	for _, m := range caseText.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2])
		last, err := strconv.Atoi(m[3])
		if err != nil {
			last = first
		}
		for n := first; n <= last; n++ {
			all = append(all, namedCase{m[1], n})
		}
		for _, more := range strings.Split(strings.TrimPrefix(m[4], ", "), ", ") {
			if n, err := strconv.Atoi(more); err == nil {
				all = append(all, namedCase{m[1], n})
			}
		}
	}
	return all
}

func TestCasesInText(t *testing.T) {
	got := fmt.Sprint(casesIn("LBQ-1 appends; SW-6 to SW-8, and SER-2, 5, 23 (SRC-10), UTF-8 x"))
	if want := "[{LBQ 1} {SW 6} {SW 7} {SW 8} {SER 2} {SER 5} {SER 23} {SRC 10} {UTF 8}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// conformance is the page.
func conformance(named map[string]map[int]string) string {
	var b strings.Builder
	b.WriteString("# Conformance\n\nDrawn by `go test ./internal/arch -rewrite` from the tests. Behaviour is written down as numbered cases, and a test\n" +
		"carries the numbers of those it holds in its name or beside it: `grep -rn LBQ-27 --include=*_test.go .` finds them.\n\n" +
		"| Chapter | About | Cases | Named by tests |\n|---|---|---|---|\n")
	for _, c := range chapters {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d |\n", c.prefix, c.about, c.cases, len(named[c.prefix]))
	}
	b.WriteString("\n## Not named yet\n\n")
	for _, c := range chapters {
		if missing := missingCases(named[c.prefix], c.cases); missing != "" {
			fmt.Fprintf(&b, "- `%s`: %s\n", c.prefix, missing)
		}
	}
	return b.String()
}

// missingCases are the numbers that nothing names, runs of them joined.
func missingCases(named map[int]string, cases int) string {
	var runs []string
	for n := 1; n <= cases; n++ {
		if _, ok := named[n]; ok {
			continue
		}
		first := n
		for n < cases {
			if _, ok := named[n+1]; ok {
				break
			}
			n++
		}
		if first == n {
			runs = append(runs, strconv.Itoa(n))
		} else {
			runs = append(runs, fmt.Sprintf("%d–%d", first, n))
		}
	}
	return strings.Join(runs, ", ")
}

func TestMissingCases(t *testing.T) {
	if got := missingCases(map[int]string{2: "", 3: "", 7: ""}, 9); got != "1, 4–6, 8–9" {
		t.Errorf("got %q", got)
	}
}

// testFiles are the test files of the module, but this one.
func testFiles(t *testing.T) []string {
	t.Helper()
	all := slices.DeleteFunc(goFiles(t), func(file string) bool {
		return !strings.HasSuffix(file, "_test.go") || file == "internal/arch/conformance_test.go"
	})
	if len(all) < 50 {
		t.Fatalf("found %d test files: the search is broken", len(all))
	}
	return all
}
