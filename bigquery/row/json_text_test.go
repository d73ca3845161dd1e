package row_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
)

func TestAppendQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                        `""`,
		"plain ü \u2028":          "\"plain ü \u2028\"",
		"\"\\/\n\r\t\b\f\x00\x7f": "\"\\\"\\\\/\\n\\r\\t\\u0008\\u000c\\u0000\x7f\"",
	} {
		if got := string(row.AppendQuoted([]byte("key:"), text)); got != "key:"+want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(rapid.String().Draw(t, "text"), "?")
		quoted := row.AppendQuoted(nil, []byte(text))
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil || got != text || !utf8.Valid(quoted) {
			t.Fatalf("%q: %s is %q, %v", text, quoted, got, err)
		}
	})
}
