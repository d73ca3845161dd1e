package arch

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the picture of the import graph anew")

const picture = "../../docs/reference/imports.md"

// imported is one import statement.
type imported struct {
	from string // package of ours, relative to the module; "" is the root
	what string // import path
	file string
	test bool
}

func TestImportsFollowTheRules(t *testing.T) {
	all := scan(t)
	if len(all) == 0 {
		t.Fatal("found no imports: the scan is broken")
	}
	for _, im := range all {
		if reason := refuse(im); reason != "" {
			t.Errorf("%s imports %s: %s", im.file, im.what, reason)
		}
	}
}

// TestRulesRefuse proves that the rules can fail.
func TestRulesRefuse(t *testing.T) {
	for _, im := range []imported{
		{from: "stream", what: module + "/engine"},
		{from: "stream", what: "google.golang.org/grpc"},
		{from: "engine", what: module + "/bigquery"},
		{from: "bigquery/table", what: module + "/stream"},
		{from: "bigquery/row/jsonrow", what: module + "/bigquery/row/structrow"},
		{from: "bigquery/internal/storagewrite", what: module + "/bigquery/internal/storageread"},
		{from: "bigquery", what: module + "/engine"},
		{from: "bigquery", what: module + "/localbq"},
		{from: "localbq/internal/store", what: module + "/bigquery/table"},
		{from: "localbq", what: module + "/localbq/duckdb"},
		{from: "localbq", what: "github.com/duckdb/duckdb-go/v2"},
		{from: "nowhere", what: "github.com/google/go-cmp/cmp"},
	} {
		if refuse(im) == "" {
			t.Errorf("%s may import %s, want a refusal", im.from, im.what)
		}
	}
	if reason := refuse(imported{from: "localbq", what: module + "/localbq/internal/store"}); reason != "" {
		t.Error(reason)
	}
}

func TestEveryRoomExists(t *testing.T) {
	have := map[string]bool{}
	for _, im := range scan(t) {
		have[im.from] = true
	}
	for _, r := range rules {
		name, all := strings.CutSuffix(r.room, "/...")
		found := have[name] || name == ""
		for p := range have {
			found = found || all && strings.HasPrefix(p, name+"/")
		}
		if !found {
			t.Errorf("rule for %q, which holds no Go file", r.room)
		}
	}
}

func TestPictureIsCurrent(t *testing.T) {
	want := draw(t, scan(t))
	if *rewrite {
		if err := os.WriteFile(picture, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the imports say; run: go test ./internal/arch -rewrite", picture)
	}
}

// refuse says why an import is against the rules, "" when it is not.
func refuse(im imported) string {
	r := ruleFor(im.from)
	if r == nil {
		return "no rule for the room " + strconv.Quote(im.from) + ": add one in internal/arch/rules.go"
	}
	ours, theirs := r.ours, r.theirs
	if im.test {
		ours = join(ours, r.testOurs)
		theirs = join(theirs, r.testTheirs, testTheirs)
	}
	if p, ok := inModule(im.what); ok {
		if p == im.from || sameRoom(r, p) || slices.ContainsFunc(ours, func(room string) bool { return inRoom(room, p) }) {
			return ""
		}
		return fmt.Sprintf("%s may import of ours only %v (%s)", im.from, ours, r.why)
	}
	if std(im.what) || slices.ContainsFunc(theirs, func(m string) bool { return im.what == m || strings.HasPrefix(im.what, m+"/") }) {
		return ""
	}
	return fmt.Sprintf("%s may import of other modules only %v (%s)", im.from, theirs, r.why)
}

func ruleFor(p string) *rule {
	best := -1
	for i, r := range rules {
		if inRoom(r.room, p) && (best < 0 || len(r.room) > len(rules[best].room)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &rules[best]
}

// sameRoom: localbq/internal/store may import localbq/internal/schema, but localbq may not import localbq/duckdb, which
// has a rule of its own.
func sameRoom(r *rule, p string) bool {
	other := ruleFor(p)
	return other != nil && other.room == r.room
}

func inRoom(room, p string) bool {
	if room == "..." {
		return true
	}
	if name, all := strings.CutSuffix(room, "/..."); all {
		return p == name || strings.HasPrefix(p, name+"/")
	}
	return p == room
}

func inModule(what string) (string, bool) {
	if what == module {
		return "", true
	}
	return strings.CutPrefix(what, module+"/")
}

func std(what string) bool {
	first, _, _ := strings.Cut(what, "/")
	return !strings.Contains(first, ".")
}

// scan reads the import statements of every Go file, whatever its build tags.
func scan(t *testing.T) (all []imported) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasModule(file)) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		from := path.Dir(rel)
		if from == "." {
			from = ""
		}
		all = append(all, imported{from: from, what: "fmt", file: rel, test: true}) // so that a room without imports is seen
		for _, s := range f.Imports {
			what, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			all = append(all, imported{from, what, rel, strings.HasSuffix(rel, "_test.go")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// draw makes the picture: an arrow for each import between rooms outside tests, the rooms in layers, lowest last.
func draw(t *testing.T, all []imported) string {
	arrows := map[string]map[string]bool{}
	for _, im := range all {
		to, ok := inModule(im.what)
		from, dest := ruleFor(im.from), ruleFor(to)
		if !ok || im.test || from == nil || dest == nil || from.room == dest.room || testRoom(from.room) {
			continue
		}
		if arrows[from.room] == nil {
			arrows[from.room] = map[string]bool{}
		}
		arrows[from.room][dest.room] = true
	}
	layer := layers(t, arrows)
	var b strings.Builder
	b.WriteString("# Who imports whom\n\nDrawn by `go test ./internal/arch -rewrite` from the import statements, tests left out. An arrow points at what is\n" +
		"imported; arrows that follow from others are left out. Layer 0 imports nothing of ours; every arrow goes to a lower layer.\n" +
		"The rules are in [`internal/arch/rules_test.go`](../../internal/arch/rules_test.go).\n\n```mermaid\nflowchart TD\n")
	byLayer := map[int][]string{}
	for room, l := range layer {
		byLayer[l] = append(byLayer[l], room)
	}
	for _, l := range slices.Backward(slices.Sorted(maps.Keys(byLayer))) {
		fmt.Fprintf(&b, "  subgraph layer%d [layer %d]\n", l, l)
		for _, room := range slices.Sorted(slices.Values(byLayer[l])) {
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", node(room), room)
		}
		b.WriteString("  end\n")
	}
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range slices.Sorted(maps.Keys(arrows[from])) {
			if !implied(arrows, from, to) {
				fmt.Fprintf(&b, "  %s --> %s\n", node(from), node(to))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func testRoom(room string) bool {
	return strings.Contains(room, "test") || strings.HasPrefix(room, "examples")
}

func node(room string) string { return strings.NewReplacer("/", "_", ".", "").Replace(room) }

// layers gives each room one more than the highest it imports, and fails on a cycle.
func layers(t *testing.T, arrows map[string]map[string]bool) map[string]int {
	layer := map[string]int{}
	var visit func(room string, under []string) int
	visit = func(room string, under []string) int {
		if slices.Contains(under, room) {
			t.Fatalf("import cycle between rooms: %v", append(under, room))
		}
		if l, ok := layer[room]; ok {
			return l
		}
		l := 0
		for to := range arrows[room] {
			l = max(l, 1+visit(to, append(slices.Clone(under), room)))
		}
		layer[room] = l
		return l
	}
	for from := range arrows {
		visit(from, nil)
	}
	return layer
}

// implied reports whether to can be reached from from over some other room.
func implied(arrows map[string]map[string]bool, from, to string) bool {
	var reach func(room string) bool
	reach = func(room string) bool {
		for next := range arrows[room] {
			if next == to || reach(next) {
				return true
			}
		}
		return false
	}
	for via := range arrows[from] {
		if via != to && reach(via) {
			return true
		}
	}
	return false
}
