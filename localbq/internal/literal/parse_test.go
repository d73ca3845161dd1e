package literal

import (
	"reflect"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Expr{
		"NULL":                {Kind: Null},
		" true ":              {Kind: Bool, Bool: true},
		"12":                  {Kind: Int64, Int64: 12},
		"-0x1F":               {Kind: Int64, Int64: -31},
		"-1.5e3":              {Kind: Float64, Float64: -1500},
		".5":                  {Kind: Float64, Float64: 0.5},
		"'it''s'":             {}, // adjacent literals are not one
		`'it\'s'`:             {Kind: String, Text: "it's"},
		`"a\n\u00e9\x41"`:     {Kind: String, Text: "a\né\u0041"},
		`r'a\n'`:              {Kind: String, Text: `a\n`},
		`'''a'b'''`:           {Kind: String, Text: "a'b"},
		`b'\xff'`:             {Kind: Bytes, Text: "\xff"},
		"DATE '2024-01-02'":   {Kind: Typed, Type: "DATE", Text: "2024-01-02"},
		"numeric \"1.5\"":     {Kind: Typed, Type: "NUMERIC", Text: "1.5"},
		"CURRENT_TIMESTAMP()": {Kind: CurrentTimestamp},
		"current_date":        {Kind: CurrentDate},
		"GENERATE_UUID()":     {Kind: UUID},
		"((1))":               {Kind: Int64, Int64: 1},
		"[]":                  {Kind: Array},
		"[1, 2]":              {Kind: Array, Elements: []Expr{{Kind: Int64, Int64: 1}, {Kind: Int64, Int64: 2}}},
		"":                    {},
		"1 + 1":               {},
		"SESSION_USER()":      {},
		"CURRENT_DATE('UTC')": {},
		"[[1]]":               {},
		"[1":                  {},
		"'a":                  {},
		`b'\u00e9'`:           {Kind: Bytes, Text: "\xe9"},
		`b'\u0100'`:           {},
		"1e999":               {},
		"(1":                  {},
	} {
		got, err := Parse(in)
		if want.Kind == 0 {
			if err == nil {
				t.Errorf("%q: %+v, want an error", in, got)
			}
		} else if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
}

// FuzzParse shows that no text makes the parser panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "'a'", "[b'\\x00', r\"x\"]", "DATE '2024-01-01'", "CURRENT_DATE("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hostile.Proportional(t, len(s), 1024, 1<<16, func() { _, _ = Parse(s) })
	})
}
