package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// habit is something this code does not do, and what it does instead.
type habit struct {
	name    string
	never   *regexp.Regexp
	instead string
	tests   bool   // only test files are held to it
	unless  string // files with this text may: time is virtual there
}

var habits = []habit{
	{name: "sleep in a test", never: regexp.MustCompile(`\btime\.Sleep\(`), instead: "testing/synctest, a channel, or polling with a context", tests: true,
		unless: `"testing/synctest"`},
	{name: "skip a test", never: regexp.MustCompile(`^\s*[tb]\.Skip(f|Now)?\(`), instead: "the gated suite, which fails if it is selected and does not run"},
	{name: "leave a mark for later", never: regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`), instead: "an issue, or the work itself"},
	{name: "init function", never: regexp.MustCompile(`^func init\(`), instead: "a value handed over by whoever needs it"},
	{name: "default logger", never: regexp.MustCompile(`\bslog\.(Info|Warn|Error|Debug|Default)\(`), instead: "the *slog.Logger from the options"},
	{name: "default random source for identifiers", never: regexp.MustCompile(`"math/rand"`), instead: `"math/rand/v2", or crypto/rand where it must not be guessed`},
}

func TestHabits(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasPrefix(file, "internal/arch/") {
			continue // names what it forbids
		}
		if strings.HasSuffix(file, ".pb.go") {
			continue // generated
		}
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, h := range habits {
				if h.tests && !strings.HasSuffix(file, "_test.go") || h.unless != "" && strings.Contains(string(text), h.unless) {
					continue
				}
				if h.never.MatchString(line) {
					t.Errorf("%s:%d: %s: use %s", file, n+1, h.name, h.instead)
				}
			}
		}
	}
}

func TestPackageNamesSayWhatIsInside(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, part := range strings.Split(filepath.Dir(file), "/") {
			switch part {
			case "util", "utils", "common", "base", "helper", "helpers", "types", "misc", "shared":
				t.Errorf("%s: the folder %s says nothing of what is inside", file, part)
			}
		}
	}
}

// goFiles are the files that have import statements scanned, each once.
func goFiles(t *testing.T) (all []string) {
	for _, im := range scan(t) {
		all = append(all, im.file)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
