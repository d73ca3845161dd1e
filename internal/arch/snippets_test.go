package arch

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippet is a block of Go on a page, and the file that it was copied from.
type snippet struct {
	line  int // of the page, where the block begins
	from  string
	lines []string
}

var codeMark = regexp.MustCompile(`^<!-- code: (\S+) -->$`)

// snippetsIn finds the blocks of a page; a block without a mark before it has no file.
func snippetsIn(page string) (all []snippet) {
	from, inside := "", false
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case inside && text == "```":
			inside = false
		case inside:
			all[len(all)-1].lines = append(all[len(all)-1].lines, text)
		case text == "```go":
			all = append(all, snippet{line: i + 1, from: from})
			from, inside = "", true
		case codeMark.MatchString(text):
			from = codeMark.FindStringSubmatch(text)[1]
		case text != "":
			from = ""
		}
	}
	return all
}

// fault says what is wrong with a block, "" when each of its lines stands in the file, in their order. Lines of the file may
// be left out, and indentation does not count.
func (s snippet) fault(file string) string {
	rest := strings.Split(file, "\n")
	for i := range rest {
		rest[i] = strings.TrimSpace(rest[i])
	}
	for i, line := range s.lines {
		if line == "" {
			continue
		}
		at := slices.Index(rest, line)
		if at < 0 {
			return fmt.Sprintf("line %d of the block is not in %s, or not behind the one before: %s", i+1, s.from, line)
		}
		rest = rest[at+1:]
	}
	return ""
}

func pages(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("found the guides %v, %v", guides, err)
	}
	all := []string{"README.md"}
	for _, g := range guides {
		all = append(all, "docs/guide/"+filepath.Base(g))
	}
	return all
}

// TestSnippetsAreCompiled: whatever Go a page shows stands in a file that is compiled.
func TestSnippetsAreCompiled(t *testing.T) {
	found := 0
	for _, name := range pages(t) {
		for _, s := range snippetsIn(readPage(t, name)) {
			found++
			if s.from == "" {
				t.Errorf("%s:%d: a block of Go without a line <!-- code: path --> before it", name, s.line)
				continue
			}
			if fault := s.fault(readPage(t, s.from)); fault != "" {
				t.Errorf("%s:%d: %s", name, s.line, fault)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d blocks: the search is broken", found)
	}
}

// TestSnippetsCanBeWrong proves that the test above can fail.
func TestSnippetsCanBeWrong(t *testing.T) {
	page := "text\n<!-- code: a.go -->\n```go\nx := 1\n\n  y := 2\n```\n```go\nz\n```\n<!-- code: a.go -->\ntext\n```go\nz\n```\n"
	all := snippetsIn(page)
	if len(all) != 3 || all[0].from != "a.go" || all[1].from != "" || all[2].from != "" {
		t.Fatalf("found %+v", all)
	}
	for file, right := range map[string]bool{"\tx := 1\n\tleft out\n\ty := 2\n": true, "y := 2\nx := 1\n": false, "x := 1\n": false, "x := 1\ny := 2 // more\n": false} {
		if got := all[0].fault(file); (got == "") != right {
			t.Errorf("%q: %q", file, got)
		}
	}
}

var linkText = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// TestLinksLead: relative links of the guides and of the pages beside them lead to files.
func TestLinksLead(t *testing.T) {
	guides := slices.DeleteFunc(pages(t), func(name string) bool { return name == "README.md" })
	for _, name := range append(guides, "ARCHITECTURE.md", "CHANGELOG.md", "docs/reference/json.md") {
		for _, m := range linkText.FindAllStringSubmatch(withoutBlocks(readPage(t, name)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := path.Join(path.Dir(name), m[1])
			if found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(to))); err != nil || len(found) == 0 {
				t.Errorf("%s: the link %s leads to nothing", name, m[1])
			}
		}
	}
}

var blockText = regexp.MustCompile("(?ms)^```.*?^```$")

func withoutBlocks(page string) string { return blockText.ReplaceAllString(page, "") }
