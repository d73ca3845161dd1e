package job

import (
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"
)

// TestOptionsPage holds docs/reference/options.md to the structs, both ways.
func TestOptionsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/options.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if documented[m[1]] {
			t.Errorf("%s is on the page twice", m[1])
		}
		documented[m[1]] = true
	}
	known := map[string]bool{}
	collectKeys(reflect.TypeFor[File](), "", known)
	for key := range known {
		if !documented[key] && key != "source" && key != "sink" {
			t.Errorf("%s is not on the page", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("the page has %s, which is no key", key)
		}
	}
	if len(known) < 40 {
		t.Errorf("found %d keys: the collection is broken", len(known))
	}
}

func collectKeys(t reflect.Type, parent string, into map[string]bool) {
	for i, key := range keysOf(t) {
		at := joinKey(parent, key)
		into[at] = true
		f := t.Field(i).Type
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f != reflect.TypeFor[time.Time]() {
			collectKeys(f, at, into)
		}
	}
}
