package value

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

func TestAppendJSON(t *testing.T) {
	for in, want := range map[string]string{
		"null": "null", " true ": "true", "false": "false", `"a"`: `"a"`, "[]": "[]", "{}": "{}", "[ ]": "[]", "{ }": "{}",
		"12": "12", "-0": "0", "1.0": "1.0", "1e2": "100.0", "1.50": "1.5", "1e300": "1e+300", "0.00001": "1e-05", "123456789012345.5": "123456789012345.5",
		"18446744073709551615": "18446744073709551615", "-9223372036854775808": "-9223372036854775808", "18446744073709551616": "1.8446744073709552e+19",
		"[1, 2 ,3]": "[1,2,3]", `{"b": 1, "a": [ {"z":1 ,"y":2} ]}`: `{"a":[{"y":2,"z":1}],"b":1}`,
		`{"a":1,"b":2,"a":3}`: `{"a":1,"b":2}`, `"\u0041\n\ud83d\ude00"`: `"A\n😀"`, `"\/"`: `"/"`, "\"é\"": "\"é\"",
	} {
		if got, err := AppendJSON(nil, []byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", " ", "nul", "tru", "01", "-", "1.", "1e", ".5", "+1", "[1,]", "[1", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `"a`, "\"\x01\"", `"\x"`,
		`"\ud800"`, "\"\xff\"", "1 2", "[1]]", "1e999", "NaN", "'a'", `"a\`} {
		if got, err := AppendJSON(nil, []byte(in)); err == nil {
			t.Errorf("LBQ-86 %s: %s, want an error", in, got)
		}
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := AppendJSON(nil, deep(500)); err != nil {
		t.Errorf("500 levels: %v", err)
	}
	if _, err := AppendJSON(nil, deep(501)); err == nil {
		t.Error("501 levels are accepted")
	}
	t.Run("an error leaves what was there", func(t *testing.T) {
		if got, err := AppendJSON([]byte("kept"), []byte("[1,")); err == nil || string(got) != "kept" {
			t.Errorf("%s, %v", got, err)
		}
	})
}

// FuzzAppendJSON compares with the standard library: what it takes, but for duplicate names and large numbers, is taken
// with an equal value, and normalising again changes nothing.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x",null,true]}`, `"\u00e9"`, `-1e-7`, `[[[]]]`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var got []byte
		var err error
		hostile.Proportional(t, len(in), 256, 1<<16, func() { got, err = AppendJSON(nil, in) })
		if err != nil {
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q is no JSON and became %q", in, got)
		}
		again, err := AppendJSON(nil, got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q and then %q, %v", in, got, again, err)
		}
		var a, b any
		if json.Unmarshal(in, &a) != nil || json.Unmarshal(got, &b) != nil {
			return // a number beyond the standard library's
		}
		if !reflect.DeepEqual(a, b) && !bytes.Contains(in, []byte(":")) {
			t.Fatalf("%q became %q: %v, %v", in, got, a, b)
		}
	})
}
