package row_test

import (
	"os"
	"regexp"
	"testing"
)

// TestErrorsPage holds docs/reference/errors.md to the kinds, both ways.
func TestErrorsPage(t *testing.T) {
	code := matches(t, "error.go", `(?m)^\tKind\w+\s+Kind = "([RCD]-[A-Z]+)"`)
	page := matches(t, "../../docs/reference/errors.md", "(?m)^\\| `([RCD]-[A-Z]+)` \\|")
	if len(code) < 20 {
		t.Fatalf("found %d kinds: the pattern is broken", len(code))
	}
	for kind := range code {
		if !page[kind] {
			t.Errorf("%s is not on the page", kind)
		}
	}
	for kind := range page {
		if !code[kind] {
			t.Errorf("the page has %s, which is no kind", kind)
		}
	}
}

func matches(t *testing.T, file, pattern string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = true
	}
	return found
}
