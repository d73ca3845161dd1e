package jsonrow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func infer(tb testing.TB, o InferOptions, docs ...string) *Inferred {
	tb.Helper()
	inf := NewInference(o)
	for _, doc := range docs {
		if err := inf.Add([]byte(doc)); err != nil {
			tb.Fatalf("%s: %v", doc, err)
		}
	}
	r, err := inf.Schema()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// outline is a schema in one line: "a INT64, b [STRING], c {d BOOL}".
func outline(fields []table.Field) string {
	var parts []string
	for _, f := range fields {
		s := f.Type.String()
		if f.Type == table.Struct {
			s = "{" + outline(f.Fields) + "}"
		}
		if f.Mode == table.Repeated {
			s = "[" + s + "]"
		}
		parts = append(parts, f.Name+" "+s)
	}
	return strings.Join(parts, ", ")
}

func TestInfer(t *testing.T) {
	for _, c := range []struct {
		name string
		docs []string
		want string
		why  []string
	}{
		{"scalars", []string{`{"s":"a","i":1,"f":1.5,"b":true}`}, "s STRING, i INT64, f FLOAT64, b BOOL", nil},
		{"objects and arrays", []string{`{"o":{"p":{"q":1}},"l":["a"],"m":[{"n":1},{"o":"x"}]}`}, "o {p {q INT64}}, l [STRING], m [{n INT64, o STRING}]", nil},
		{"order of appearance", []string{`{"z":1}`, `{"a":1,"z":2}`}, "z INT64, a INT64", nil},
		{"null and a value", []string{`{"a":null,"b":1}`, `{"a":1}`}, "a INT64, b INT64", nil},
		{"nothing in it", []string{`{"a":1,"n":null,"l":[],"o":{},"d":{"x":null,"y":[]},"m":[[],{}],"p":[null]}`}, "a INT64", []string{
			"n has no column, because it only ever was null",
			"l has no column, because its arrays were all empty",
			"o has no column, because its objects were all empty",
			"d has no column, because nothing in it holds a value",
			"m has no column, because nothing in it holds a value",
			"p has no column, because nothing in it holds a value"}},
		{"null or an empty array", []string{`{"a":1,"n":null}`, `{"n":[]}`}, "a INT64", []string{"n has no column, because its arrays were all empty"}},
		{"empty array or object", []string{`{"a":1,"n":[]}`, `{"n":{}}`}, "a INT64", []string{"n has no column, because it only ever was an object and an array"}},
		{"deep nothing", []string{`{"a":{"b":1,"n":null}}`}, "a {b INT64}", []string{"a.n has no column, because it only ever was null"}},
		{"numbers and strings", []string{`{"a":1}`, `{"a":"x"}`, `{"a":"y"}`}, "a JSON", []string{"a is JSON, because it held a number and 2 strings"}},
		{"objects and strings", []string{`{"a":{}}`, `{"a":"x"}`, `{"a":null}`}, "a JSON", []string{"a is JSON, because it held a string and an object"}},
		{"objects and arrays of objects", []string{`{"a":{"b":1}}`, `{"a":[{"b":1}]}`}, "a JSON", []string{"a is JSON, because it held an object and an array"}},
		{"arrays of arrays", []string{`{"a":[[1],[2]]}`}, "a JSON", []string{"a is JSON, because its arrays held arrays"}},
		{"arrays with null", []string{`{"a":[1]}`, `{"a":[null]}`}, "a JSON", []string{"a is JSON, because its arrays held null and a number"}},
		{"mixed arrays", []string{`{"a":[1,"x",2]}`}, "a JSON", []string{"a is JSON, because its arrays held 2 numbers and a string"}},
		{"nothing but empty objects in some arrays", []string{`{"a":[{}]}`, `{"a":[{"b":1}]}`}, "a [{b INT64}]", nil},
		{"INT64", []string{`{"a":9223372036854775807}`, `{"a":-9223372036854775808}`}, "a INT64", nil},
		{"beyond INT64", []string{`{"a":1}`, `{"a":9223372036854775808}`}, "a NUMERIC", []string{"a is NUMERIC, because some of its numbers are beyond INT64"}},
		{"beyond NUMERIC", []string{`{"a":1e0}`, `{"a":999999999999999999999999999999999999}`}, "a BIGNUMERIC", []string{"a is BIGNUMERIC, because FLOAT64 would change some of its numbers"}},
		{"beyond BIGNUMERIC", []string{`{"a":` + strings.Repeat("9", 100) + `}`}, "a JSON", []string{"a is JSON, because some of its numbers are beyond BIGNUMERIC"}},
		{"arrays beyond BIGNUMERIC", []string{`{"a":[1,` + strings.Repeat("9", 100) + `]}`}, "a JSON", []string{"a is JSON, because some of its numbers are beyond BIGNUMERIC"}},
		{"whole and fractional", []string{`{"a":1}`, `{"a":0.1}`, `{"a":1e300}`}, "a FLOAT64", nil},
		{"too many digits", []string{`{"a":0.1}`, `{"a":0.12345678901234567890}`}, "a BIGNUMERIC", []string{"a is BIGNUMERIC, because FLOAT64 would change some of its numbers"}},
		{"an integer that FLOAT64 changes", []string{`{"a":0.5}`, `{"a":9007199254740993}`}, "a NUMERIC", []string{"a is NUMERIC, because FLOAT64 would change some of its numbers"}},
		{"beyond FLOAT64", []string{`{"a":1e400}`}, "a JSON", []string{"a is JSON, because some of its numbers are beyond BIGNUMERIC"}},
		{"fractions of zero", []string{`{"a":1.0}`}, "a FLOAT64", nil},
		{"timestamps", []string{`{"a":"2026-07-26T01:02:03Z","b":["2026-07-26T01:02:03.123456Z"]}`}, "a TIMESTAMP, b [TIMESTAMP]", []string{
			"a is TIMESTAMP, because its strings are RFC 3339 timestamps",
			"b is TIMESTAMP, because its strings are RFC 3339 timestamps"}},
		{"timestamps in other spellings", []string{`{"a":"2026-07-26T01:02:03+02:00"}`}, "a TIMESTAMP", []string{
			"a is TIMESTAMP, because its strings are RFC 3339 timestamps; they read back in UTC, with 3 or 6 fractional digits or none"}},
		{"no timestamps", []string{`{"a":"2026-07-26T01:02:03","b":"2026-07-26T01:02:03.1234567Z","c":"2026-07-26T24:00:00Z","d":"2026-07-26 01:02:03Z"}`, `{"e":"2026-07-26T01:02:03Z"}`, `{"e":""}`},
			"a STRING, b STRING, c STRING, d STRING, e STRING", nil},
		{"dates", []string{`{"a":"2026-07-26"}`}, "a DATE", []string{"a is DATE, because its strings are dates"}},
		{"no dates", []string{`{"a":"2026-7-26","b":"2026-02-30"}`, `{"c":"2026-07-26"}`, `{"c":"2026-07-26T00:00:00Z"}`}, "a STRING, b STRING, c STRING", nil},
		{"names", []string{`{"+1":1,"-1":2,"a b":3,"":4,"1st":5,"名前":6,"a.b":{"c":7}}`}, "plus_1 INT64, minus_1 INT64, a_b INT64, empty INT64, _1st INT64, u540du524d INT64, a_b_2 {c INT64}", []string{
			"+1 is column plus_1, because column names are letters, digits and underscores",
			"-1 is column minus_1, because column names are letters, digits and underscores",
			`"a b" is column a_b, because column names are letters, digits and underscores`,
			`"" is column empty, because the key is empty`,
			"1st is column _1st, because column names are letters, digits and underscores",
			"名前 is column u540du524d, because column names are letters, digits and underscores",
			`"a.b" is column a_b_2, because column names are letters, digits and underscores`}},
		{"names that differ in case", []string{`{"URL":1,"url":2,"url_2":3}`}, "url_3 INT64, url INT64, url_2 INT64", []string{`URL is column url_3, because BigQuery takes it for the same name as "url"`}},
		{"reserved names", []string{`{"_TABLE_x":1,"a":{"_partitiontime":2}}`}, "key_TABLE_x INT64, a {key_partitiontime INT64}", []string{
			"_TABLE_x is column key_TABLE_x, because BigQuery keeps names that begin with _TABLE_ for itself",
			"a._partitiontime is column a.key_partitiontime, because BigQuery keeps names that begin with _PARTITION for itself"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := infer(t, InferOptions{}, c.docs...)
			if got := outline(r.Mapping.Schema.Fields); got != c.want {
				t.Errorf("columns %s, want %s", got, c.want)
			}
			var why []string
			for _, choice := range r.Choices {
				why = append(why, choice.String())
			}
			if diff := cmp.Diff(c.why, why); diff != "" {
				t.Errorf("choices (-want +got):\n%s", diff)
			}
			if r.Documents != len(c.docs) {
				t.Errorf("%d documents, want %d", r.Documents, len(c.docs))
			}
			checkLossless(t, r, c.docs)
		})
	}
}

// checkLossless writes documents as rows and back and compares them as JSON, with nothing in them left out and timestamps
// as instants.
func checkLossless(tb fataler, r *Inferred, docs []string) {
	tb.Helper()
	s, err := New(itself, r.Mapping, Options{})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	d, err := row.NewDecoder(r.Mapping.Schema)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	w := NewWriter(WriteOptions{Keys: r.Mapping.Keys})
	rest := ""
	if r.Mapping.Rest != "" {
		rest = r.Mapping.Keys.Names[len(r.Mapping.Keys.Names)-1] // the column comes last
	}
	for _, doc := range docs {
		data, err := s.AppendRow(nil, table.Destination{}, []byte(doc))
		if err != nil {
			tb.Fatalf("%s: %v", doc, err)
		}
		decoded, err := d.Decode(data)
		if err != nil {
			tb.Fatalf("%s: %v", doc, err)
		}
		back, err := w.AppendJSON(nil, decoded)
		if err != nil {
			tb.Fatalf("%s: %v", doc, err)
		}
		if diff := cmp.Diff(essence(tb, []byte(doc), ""), essence(tb, back, rest)); diff != "" {
			tb.Fatalf("%s\ncomes back as\n%s\n(-in +out):\n%s", doc, back, diff)
		}
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// essence is a document without what holds nothing, with numbers and timestamps in one spelling.
func essence(tb fataler, doc []byte, without string) any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		tb.Fatalf("%s: %v", doc, err)
	}
	if without != "" {
		delete(v, without)
	}
	return essential(v)
}

func essential(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = essential(e); e != nil {
				out[k] = e
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		out := make([]any, len(v))
		some := false
		for i, e := range v {
			out[i] = essential(e)
			some = some || out[i] != nil
		}
		if some {
			return out
		}
		return nil
	case json.Number:
		if len(v) > 200 {
			return v.String()
		}
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return r.String()
		}
		return v.String()
	case string:
		if micros, err := row.ParseTimestamp(v); err == nil && timestampShape([]byte(v)) {
			return fmt.Sprintf("instant %d", micros)
		}
	}
	return v
}

func TestInferOptions(t *testing.T) {
	docs := []string{`{"at":"2026-07-26T01:02:03Z","on":"2026-07-26","rest":1,"tags":{"a":1,"b":[2]},"list":[{"x":1}]}`}
	r := infer(t, InferOptions{TimesAsStrings: true, Rest: "rest", JSONPaths: []string{"tags", "list[]"}}, docs...)
	if got, want := outline(r.Mapping.Schema.Fields), "at STRING, on STRING, rest_2 INT64, tags JSON, list [JSON], rest JSON"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
	if got, want := r.Mapping.Keys.Names, []string{"at", "on", "rest", "tags", "list", "rest_2"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	checkLossless(t, r, docs)
}

func TestRestHoldsWhatHasNoColumn(t *testing.T) {
	r := infer(t, InferOptions{Rest: "rest"}, `{"a":{"b":1,"n":null},"l":[]}`)
	s, err := New(itself, r.Mapping, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(r.Mapping.Schema)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.AppendRow(nil, table.Destination{}, []byte(`{"a":{"b":1,"n":null},"l":[],"new":[1,"x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if rest, want := string(got.Values[1].Bytes), `{"/a/n":null,"/l":[],"/new":[1,"x"]}`; rest != want {
		t.Errorf("rest holds %s, want %s", rest, want)
	}
	if diff := cmp.Diff([]string{"a.n", "l"}, r.NoColumn); diff != "" {
		t.Errorf("without a column (-want +got):\n%s", diff)
	}
}

// What was not sampled is refused where a column would change it, and passes where it holds nothing.
func TestExact(t *testing.T) {
	r := infer(t, InferOptions{}, `{"s":"a","i":1,"f":0.5,"n":9223372036854775808,"b":true,"ts":"2026-07-26T01:02:03Z","d":"2026-07-26","j":[1,"x"],"o":{"x":1}}`)
	s, err := New(itself, r.Mapping, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		doc  string
		kind row.Kind
		path string
	}{
		{`{"s":5}`, row.KindType, "s"}, {`{"s":true}`, row.KindType, "s"}, {`{"i":"5"}`, row.KindType, "i"}, {`{"i":1.0}`, row.KindType, "i"}, {`{"i":9223372036854775808}`, row.KindRange, "i"},
		{`{"f":"1"}`, row.KindType, "f"}, {`{"f":"NaN"}`, row.KindType, "f"}, {`{"f":0.12345678901234567890}`, row.KindScale, "f"}, {`{"f":1e400}`, row.KindRange, "f"}, {`{"f":9007199254740993}`, row.KindScale, "f"},
		{`{"f":1e-400}`, row.KindScale, "f"}, {`{"f":0e400}`, "", ""}, {`{"f":-0.0}`, "", ""}, {`{"f":12345678901234567}`, row.KindScale, "f"}, {`{"f":1e22}`, "", ""}, {`{"f":0.30000000000000004}`, "", ""}, {`{"f":5e-324}`, "", ""},
		{`{"f":4e-324}`, row.KindScale, "f"}, {`{"f":1.7976931348623157e308}`, "", ""},
		{`{"n":"1"}`, row.KindType, "n"}, {`{"n":1.5}`, "", ""}, {`{"b":"true"}`, row.KindType, "b"}, {`{"ts":1700000000}`, row.KindType, "ts"}, {`{"ts":"2026-07-26 01:02:03"}`, row.KindType, "ts"},
		{`{"ts":"2026-07-26T01:02:03.1234567Z"}`, row.KindType, "ts"}, {`{"ts":"20260726"}`, row.KindType, "ts"}, {`{"ts":"2026-02-30T01:02:03Z"}`, row.KindRange, "ts"}, {`{"ts":"2026-07-26T01:02:03.5-08:00"}`, "", ""},
		{`{"d":"2026-7-26"}`, row.KindType, "d"}, {`{"d":20660}`, row.KindType, "d"}, {`{"j":"text"}`, "", ""}, {`{"j":{"any":1}}`, "", ""}, {`{"o":[]}`, row.KindType, "o"}, {`{"o":{"x":null,"y":null}}`, "", ""},
		{`{"new":null}`, "", ""}, {`{"new":[]}`, "", ""}, {`{"new":{"a":[null,{}]}}`, "", ""}, {`{"new":0}`, row.KindUnknown, "new"}, {`{"new":""}`, row.KindUnknown, "new"}, {`{"new":[[false]]}`, row.KindUnknown, "new"},
		{`{"S":"a"}`, row.KindUnknown, "S"}, {`{"o":{"y":1}}`, row.KindUnknown, "o.y"},
	} {
		_, err := s.AppendRow(nil, table.Destination{}, []byte(c.doc))
		if kind := kindOf(t, err); kind != c.kind || err != nil && err.(*row.Error).Path != c.path {
			t.Errorf("%s: %v, want %q at %q", c.doc, err, c.kind, c.path)
		}
	}
	ignoring, err := New(itself, r.Mapping, Options{IgnoreUnknownFields: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ignoring.AppendRow(nil, table.Destination{}, []byte(`{"new":0,"o":{"y":1}}`)); err != nil {
		t.Errorf("IgnoreUnknownFields: %v", err)
	}
}

func TestDepth(t *testing.T) {
	doc := strings.Repeat(`{"a":`, 18) + "1" + strings.Repeat("}", 18)
	r := infer(t, InferOptions{}, doc)
	f, depth := &r.Mapping.Schema.Fields[0], 0
	for f.Type == table.Struct {
		f, depth = &f.Fields[0], depth+1
	}
	if depth != table.MaxDepth || f.Type != table.JSON {
		t.Errorf("%v below %d STRUCTs, want JSON below %d", f.Type, depth, table.MaxDepth)
	}
	if len(r.Choices) != 1 || r.Choices[0].Decision != AsJSON || !strings.Contains(r.Choices[0].Why, "15 STRUCTs") {
		t.Errorf("choices %v, want one for JSON that says why", r.Choices)
	}
	checkLossless(t, r, []string{doc})
}

func TestTooManyColumns(t *testing.T) {
	wide := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"user-%d":1`, i)
		}
		return `{"id":1,"by_user":{` + b.String()[1:] + `}}`
	}
	inf := NewInference(InferOptions{})
	if err := inf.Add([]byte(wide(table.MaxColumns))); err != nil {
		t.Fatal(err)
	}
	_, err := inf.Schema()
	if kindOf(t, err) != row.KindSchema || err.(*row.Error).Path != "by_user" || !strings.Contains(err.Error(), "JSONPaths") {
		t.Errorf("%v, want %s at by_user with the way out", err, row.KindSchema)
	}
	if err := inf.Add([]byte(strings.ReplaceAll(wide(5*table.MaxColumns), "user-", "u"))); kindOf(t, err) != row.KindSchema {
		t.Errorf("%v, want %s: memory must not grow for ever", err, row.KindSchema)
	}
	r := infer(t, InferOptions{JSONPaths: []string{"by_user"}}, wide(6*table.MaxColumns))
	if got, want := outline(r.Mapping.Schema.Fields), "id INT64, by_user JSON"; got != want {
		t.Errorf("columns %s, want %s", got, want)
	}
}

func TestNothingToInfer(t *testing.T) {
	for _, docs := range [][]string{nil, {`{"a":null}`, `{"b":[{}]}`}} {
		inf := NewInference(InferOptions{})
		for _, doc := range docs {
			if err := inf.Add([]byte(doc)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := inf.Schema(); kindOf(t, err) != row.KindEmpty {
			t.Errorf("%q: %v, want %s", docs, err, row.KindEmpty)
		}
	}
}

func TestBadDocumentsChangeNothing(t *testing.T) {
	inf := NewInference(InferOptions{})
	for _, doc := range []string{`{"a":1,"b":`, `[1]`, `{"a":1}{"b":2}`, "{\"a\":\"\xff\"}", `{}`} {
		if err := inf.Add([]byte(doc)); err == nil {
			t.Errorf("%s is accepted", doc)
		}
	}
	if err := inf.Add([]byte(`{"c":1}`)); err != nil {
		t.Fatal(err)
	}
	r, err := inf.Schema()
	if err != nil || outline(r.Mapping.Schema.Fields) != "c INT64" || r.Documents != 1 {
		t.Errorf("%v, %v, want c INT64 of one document", r, err)
	}
}

var nameParts = rapid.SampledFrom([]string{"a", "A", "b", "url", "URL", "Url", "_", "2", "_2", "+", "-", " ", ".", "é", "名", "k", "\u212a", "_TABLE_", "_partition", "/", "\"", "~"})

func keyGen() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(nameParts, 0, 3), func(parts []string) string { return strings.Join(parts, "") })
}

func TestNamesAreLegalDistinctAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(keyGen(), 1, 12, rapid.ID[string]).Draw(t, "keys")
		keys = append(keys, strings.Repeat("x", 299)+"-1", strings.Repeat("x", 300)+"-2")
		names := nameColumns(keys, "rest")
		seen := map[string]string{"rest": "the rest"}
		for _, key := range keys {
			name := names[key].name
			if err := table.CheckName(name); err != nil || !table.Identifier(name) {
				t.Fatalf("%q is column %q: %v", key, name, err)
			}
			if other, twice := seen[table.FoldName(name)]; twice {
				t.Fatalf("%q and %q are column %q", key, other, name)
			}
			seen[table.FoldName(name)] = key
			if (name == key) != (names[key].why == "") {
				t.Fatalf("%q is column %q, because %q", key, name, names[key].why)
			}
		}
		again := nameColumns(rapid.Permutation(keys).Draw(t, "order"), "rest")
		if diff := cmp.Diff(names, again, cmp.AllowUnexported(columnName{})); diff != "" {
			t.Fatalf("names depend on the order of keys (-one +other):\n%s", diff)
		}
	})
}

// docGen draws a JSON object, deep levels deep at most.
func docGen(deep int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		keys := rapid.SliceOfNDistinct(keyGen(), 1, 4, rapid.ID[string]).Draw(t, "keys")
		var members []string
		for _, k := range keys {
			members = append(members, string(row.AppendQuoted(nil, k))+":"+jsonGen(deep-1).Draw(t, "value"))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

func jsonGen(deep int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{`null`, `true`, `1`, `-5`, `9223372036854775808`, `0.5`, `1e3`, `0.1234567890123456789`, `1e-50`, `1e400`, `"x"`, `""`, `"\u00e9"`,
		`"2026-07-26"`, `"2026-07-26T01:02:03Z"`, `"2026-07-26T01:02:03.5+02:00"`})
	if deep <= 0 {
		return scalar
	}
	array := rapid.Map(rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[string] { return jsonGen(deep - 1) }), 0, 3), func(e []string) string {
		return "[" + strings.Join(e, ", ") + "]"
	})
	return rapid.OneOf(scalar, scalar, docGen(deep-1), array, rapid.Just(`{}`))
}

func TestInferenceLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := rapid.SliceOfN(docGen(4), 1, 4).Draw(t, "docs")
		inf := NewInference(InferOptions{Rest: rapid.SampledFrom([]string{"", "a", "rest"}).Draw(t, "rest"), TimesAsStrings: rapid.Bool().Draw(t, "strings")})
		for _, doc := range docs {
			if err := inf.Add([]byte(doc)); err != nil {
				t.Fatalf("%s: %v", doc, err)
			}
		}
		r, err := inf.Schema()
		if err != nil {
			if kind := err.(*row.Error).Kind; kind != row.KindEmpty {
				t.Fatal(err)
			}
			return
		}
		checkLossless(t, r, docs)
	})
}

func TestDescribedKeys(t *testing.T) {
	r := infer(t, InferOptions{}, `{"a":{"+1":1,"\"q\"":{"x":1}},"b":[{"-1":1}],"c":1}`)
	if diff := cmp.Diff(r.Mapping.Keys, DescribedKeys(r.Mapping.Schema)); diff != "" {
		t.Errorf("keys (-inferred +described):\n%s", diff)
	}
	if k := DescribedKeys(benchSchema); k != nil {
		t.Errorf("keys %v of a schema that describes none, want nil", k)
	}
	odd := &table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64, Description: `JSON key "cut`}, {Name: "b", Type: table.Int64, Description: "JSON key of the parent"}}}
	if k := DescribedKeys(odd); k != nil {
		t.Errorf("keys %v, want nil: the descriptions only look alike", k.Names)
	}
}

func TestSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lit := rapid.StringMatching(`-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,20})?(e[-+]?[0-9]{1,3})?`).Draw(t, "lit")
		v, err := strconv.ParseFloat(lit, 64)
		if err != nil {
			return
		}
		a, _ := new(big.Rat).SetString(lit)
		b, _ := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
		if got, want := survives([]byte(lit), v), a.Cmp(b) == 0; got != want {
			t.Fatalf("survives(%s) = %v, want %v", lit, got, want)
		}
	})
}
