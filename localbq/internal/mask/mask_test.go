package mask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/mask"
)

func TestDeep(t *testing.T) {
	for _, text := range []string{strings.Repeat("a/", 10_000) + "a", strings.Repeat("a(", 10_000) + "a" + strings.Repeat(")", 10_000)} {
		if _, err := mask.Parse(text); err == nil || !strings.Contains(err.Error(), "Invalid field selection") {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzMask applies any mask to any answer: what is left is JSON, and smaller.
func FuzzMask(f *testing.F) {
	f.Add("a,b/c,d(e,f/g),*", `{"a":1,"b":{"c":[{"x":2}]},"d":[{"e":1,"f":{"g":null}}]}`)
	f.Add("*/*", `{"a":{"b":1},"c":[1,{"d":2}]}`)
	f.Add("a(", `{}`)
	f.Fuzz(func(t *testing.T, text, body string) {
		if !json.Valid([]byte(body)) {
			return
		}
		hostile.Proportional(t, len(text)+len(body), 4096, 1<<20, func() {
			m, err := mask.Parse(text)
			if err != nil {
				return
			}
			out, err := m.Apply([]byte(body))
			if err == nil && !json.Valid(out) {
				t.Errorf("%q leaves %q of %q", text, out, body)
			}
		})
	})
}
