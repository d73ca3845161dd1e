package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseSchemaJSON(t *testing.T) {
	const text = `[
	  {"name": "id", "type": "INTEGER", "mode": "REQUIRED", "description": "the \"id\""},
	  {"name": "tags", "type": "string", "mode": "repeated", "maxLength": "10"},
	  {"name": "price", "type": "NUMERIC", "precision": 10, "scale": "2", "roundingMode": "ROUND_HALF_EVEN"},
	  {"name": "at", "type": "TIMESTAMP", "defaultValueExpression": "CURRENT_TIMESTAMP()", "timestampPrecision": "12"},
	  {"name": "during", "type": "RANGE", "rangeElementType": {"type": "DATE"}},
	  {"name": "until", "type": "RANGE", "rangeElementType": "DATETIME"},
	  {"name": "who", "type": "RECORD", "fields": [
	    {"name": "mail", "type": "STRING", "collation": "und:ci", "policyTags": {"names": ["projects/p/x"]}}]}
	]`
	want := &Schema{Fields: []Field{
		{Name: "id", Type: Int64, Mode: Required, Description: `the "id"`},
		{Name: "tags", Type: String, Mode: Repeated, MaxLength: 10},
		{Name: "price", Type: Numeric, Precision: 10, Scale: 2, RoundingMode: "ROUND_HALF_EVEN"},
		{Name: "at", Type: Timestamp, Default: "CURRENT_TIMESTAMP()", TimestampPrecision: 12},
		{Name: "during", Type: Range, Range: Date},
		{Name: "until", Type: Range, Range: DateTime},
		{Name: "who", Type: Struct, Fields: []Field{
			{Name: "mail", Type: String, Collation: "und:ci", PolicyTags: []string{"projects/p/x"}}}},
	}}
	for name, in := range map[string]string{
		"array": text, "object": `{"fields":` + text + `}`, "written": string(want.JSON()),
	} {
		got, err := ParseSchemaJSON([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseSchemaJSONRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", ``, "line 1, column 1: the schema is empty or ends too early"},
		{"blank", " \n", "line 2, column 1: the schema is empty or ends too early"},
		{"no schema", `"x"`, `line 1, column 1: expected an array of fields, or an object with "fields"`},
		{"cut", "[\n {\"name\": \"a\"", "line 2, column 14: [0]: the schema ends too early"},
		{"syntax", "[\n {\"name\": a}]", "line 2, column 11: [0].name: not valid JSON"},
		{"more behind", `[{"name":"a","type":"BOOL"}] []`, "line 1, column 30: expected the end of the schema"},
		{"misspelt", "[\n {\"name\":\"a\",\n  \"type\":\"BOOL\", \"mod\":\"REQUIRED\"}]", `line 3, column 18: [0].mod: unknown attribute "mod"`},
		{"misspelt deep", `[{"name":"a","type":"RECORD","fields":[{"name":"b","typ":"BOOL"}]}]`, `[0].fields[0].typ: unknown attribute "typ"`},
		{"beside fields", `{"fields":[],"kind":"x"}`, `line 1, column 14: kind: unknown attribute "kind"`},
		{"wrong type", `[{"name":"a","type":"TEXT"}]`, `line 1, column 21: [0].type: unknown column type "TEXT"`},
		{"wrong mode", `[{"name":"a","type":"BOOL","mode":"MAYBE"}]`, `[0].mode: unknown column mode "MAYBE"`},
		{"wrong element", `[{"name":"a","type":"RANGE","rangeElementType":{"type":"X"}}]`, `[0].rangeElementType.type: unknown column type "X"`},
		{"not a string", `[{"name":1,"type":"BOOL"}]`, "line 1, column 10: [0].name: expected a string"},
		{"not a number", `[{"name":"a","type":"STRING","maxLength":1.5}]`, "[0].maxLength: expected a whole number"},
		{"not a field", `[1]`, "line 1, column 2: [0]: expected a field, which is an object"},
		{"not fields", `[{"name":"a","type":"RECORD","fields":{}}]`, "[0].fields: expected an array of fields"},
		{"twice", `[{"name":"a","name":"b","type":"BOOL"}]`, "line 1, column 14: [0].name: is given twice"},
		{"no name", `[{"type":"BOOL"}]`, "line 1, column 2: [0]: a field needs a name and a type"},
		{"deep", strings.Repeat(`[{"name":"a","type":"RECORD","fields":`, 10_000), "levels deep: expected at most 15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSchemaJSON([]byte(c.in))
			var je *JSONError
			if !errors.As(err, &je) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a *JSONError with %q", err, c.want)
			}
		})
	}
	_, err := ParseSchemaJSON([]byte(`[{"name":"a b.c","type":"BOOL"},{"name":"s","type":"RECORD"}]`))
	if diff := cmp.Diff([]string{"C-NAME a b.c", "C-EMPTY s"}, faults(err)); diff != "" {
		t.Errorf("faults of a readable schema (-want +got):\n%s", diff)
	}
	_, err = ParseSchemaJSON([]byte("[{\"name\":\"s\",\"type\":\"RECORD\",\"fields\":[\n {\"name\":\"A\",\"type\":\"BOOL\"},\n  {\"name\":\"a\",\"type\":\"BOOL\"}]}]"))
	var at *JSONError
	if !errors.As(err, &at) || at.Line != 3 || at.Column != 3 || !strings.HasPrefix(at.Msg, FaultCase+": column s.a: ") {
		t.Errorf("error %v, want the place of the second of two fields", err)
	}
}

// fieldGen draws fields that are valid, at most depth STRUCTs deep.
func fieldGen(depth int) *rapid.Generator[[]Field] {
	return rapid.Custom(func(t *rapid.T) []Field {
		fields := make([]Field, rapid.IntRange(1, 4).Draw(t, "fields"))
		for i := range fields {
			f := &fields[i]
			f.Name = fmt.Sprintf("c%d%s", i, rapid.StringMatching(`[a-z <&é]{0,3}`).Draw(t, "name"))
			f.Type = Type(rapid.IntRange(int(Bool), int(Struct)).Draw(t, "type"))
			f.Mode = Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
			f.Description = rapid.SampledFrom([]string{"", "<b> & \u2028", "line\nline"}).Draw(t, "description")
			switch f.Type {
			case Range:
				f.Range = rapid.SampledFrom([]Type{Date, DateTime, Timestamp}).Draw(t, "element")
			case Numeric:
				f.Precision, f.Scale = 12, 3
			case String:
				f.PolicyTags = rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "tags")
			case Struct:
				if f.Type = Int64; depth > 0 {
					f.Type, f.Fields = Struct, fieldGen(depth-1).Draw(t, "members")
				}
			}
		}
		return fields
	})
}

func TestSchemaJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Schema{Fields: fieldGen(2).Draw(t, "schema")}
		got, err := ParseSchemaJSON(s.JSON())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.JSON())
		}
		if !s.Equal(got) || len(s.Diff(got)) != 0 {
			t.Fatalf("came back as\n%s\nwant\n%s", got.JSON(), s.JSON())
		}
	})
}

func FuzzParseSchemaJSON(f *testing.F) {
	f.Add([]byte(`[{"name":"a","type":"RECORD","fields":[{"name":"b","type":"RANGE","rangeElementType":"DATE"}]}]`))
	f.Add([]byte(`{"fields":[{"name":"a","type":"NUMERIC","precision":"3","scale":1}]}`))
	f.Add([]byte("[{\"name\":\"\xff\"}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSchemaJSON(data)
		if err != nil {
			return
		}
		again, err := ParseSchemaJSON(s.JSON())
		if err != nil || !s.Equal(again) {
			t.Errorf("%q was read as %s, which is read as %v, %v", data, s.JSON(), again, err)
		}
	})
}
