package jsonrow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// This file is the serializer again, slow and plain: a tree by encoding/json, then a walk over the schema. It knows nothing
// of offsets and paths, and answers the first fault it meets, which need not be the first in the document.

// errSlow is any fault.
var errSlow = errors.New("refused")

// slowNode is a JSON value.
type slowNode struct {
	raw      string // its text
	text     string // of a string
	kind     byte   // { [ " 0 t n
	keys     []string
	children []slowNode // of objects and arrays
}

func slowParse(doc []byte) (slowNode, error) {
	if !utf8.Valid(doc) || slowDepth(doc) > maxDepth {
		return slowNode{}, errSlow
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return slowNode{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return slowNode{}, errSlow
	}
	return slowValue(raw)
}

var quotedText = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// slowDepth counts brackets outside of strings.
func slowDepth(doc []byte) (deepest int) {
	depth := 0
	for _, c := range quotedText.ReplaceAll(doc, nil) {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest
}

func slowValue(raw json.RawMessage) (n slowNode, err error) {
	raw = bytes.TrimSpace(raw)
	n.raw, n.kind = string(raw), raw[0]
	switch n.kind {
	case '{', '[':
		return n, n.open()
	case '"':
		n.text, err = slowString(n.raw)
	case 'f':
		n.kind = 't'
	case '-', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n.kind = '0'
	}
	return n, err
}

func (n *slowNode) open() error {
	dec := json.NewDecoder(strings.NewReader(n.raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		if n.kind == '{' {
			before := dec.InputOffset()
			if _, err := dec.Token(); err != nil {
				return err
			}
			quoted := n.raw[before:dec.InputOffset()]
			key, err := slowString(quoted[strings.IndexByte(quoted, '"'):])
			if err != nil {
				return err
			}
			n.keys = append(n.keys, key)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		child, err := slowValue(raw)
		if err != nil {
			return err
		}
		n.children = append(n.children, child)
	}
	return nil
}

var surrogates = regexp.MustCompile(`\\(\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2})`)

// slowString is the text of a quoted string. encoding/json replaces halves of surrogate pairs; here they are refused.
func slowString(quoted string) (s string, err error) {
	for _, m := range surrogates.FindAllString(quoted, -1) {
		if len(m) == 6 {
			return "", errSlow
		}
	}
	err = json.Unmarshal([]byte(quoted), &s)
	return s, err
}

func slowRow(fields []table.Field, o Options, doc []byte) ([]row.Value, error) {
	n, err := slowParse(doc)
	if err != nil {
		return nil, err
	}
	if n.kind != '{' || len(n.keys) == 0 {
		return nil, errSlow
	}
	return slowObject(fields, o, n)
}

func slowObject(fields []table.Field, o Options, n slowNode) ([]row.Value, error) {
	if n.kind != '{' {
		return nil, errSlow
	}
	values := make([]row.Value, len(fields))
	seen := make([]bool, len(fields))
	for i := range fields {
		values[i].Null = fields[i].Mode != table.Repeated
	}
	for k, key := range n.keys {
		i := slices.IndexFunc(fields, func(f table.Field) bool { return strings.EqualFold(f.Name, key) })
		if i < 0 {
			if !o.IgnoreUnknownFields {
				return nil, errSlow
			}
			continue
		}
		if seen[i] {
			return nil, errSlow
		}
		seen[i] = true
		var err error
		if values[i], err = slowColumn(&fields[i], o, n.children[k]); err != nil {
			return nil, err
		}
	}
	for i := range fields {
		if fields[i].Mode == table.Required && values[i].Null {
			return nil, errSlow
		}
	}
	return values, nil
}

func slowColumn(f *table.Field, o Options, n slowNode) (row.Value, error) {
	if f.Mode != table.Repeated {
		if n.kind == 'n' {
			return rowtest.Null, nil
		}
		return slowScalar(f, o, n)
	}
	if n.kind == 'n' {
		return row.Value{}, nil
	}
	if n.kind != '[' {
		return row.Value{}, errSlow
	}
	var out row.Value
	for _, child := range n.children {
		if child.kind == 'n' {
			return out, errSlow
		}
		v, err := slowScalar(f, o, child)
		if err != nil {
			return out, err
		}
		out.List = append(out.List, v)
	}
	return out, nil
}

var slowWhole = regexp.MustCompile(`^-?[0-9]+$`)

func slowInt(text string) (int64, error) {
	if !slowWhole.MatchString(text) {
		return 0, errSlow
	}
	n, _ := new(big.Int).SetString(text, 10)
	if !n.IsInt64() {
		return 0, errSlow
	}
	return n.Int64(), nil
}

// scalarText is the text of a string or a number.
func (n slowNode) scalarText() (string, error) {
	switch n.kind {
	case '"':
		return n.text, nil
	case '0':
		return n.raw, nil
	}
	return "", errSlow
}

func slowScalar(f *table.Field, o Options, n slowNode) (row.Value, error) {
	number := func(v int64, err error) (row.Value, error) { return row.Value{Int: v}, err }
	content := func(s string, err error) (row.Value, error) { return row.Value{Bytes: []byte(s)}, err }
	switch f.Type {
	case table.Struct, table.Range:
		values, err := slowObject(row.Members(f), o, n)
		return row.Value{List: values}, err
	case table.String:
		if n.kind == 't' {
			return content(n.raw, nil)
		}
		return content(n.scalarText())
	case table.Bool:
		return slowBool(n)
	case table.Int64:
		text, err := n.scalarText()
		if err != nil {
			return row.Value{}, err
		}
		return number(slowInt(text))
	case table.Float64:
		return slowFloat(n)
	case table.Numeric, table.BigNumeric:
		text, err := n.scalarText()
		if err != nil {
			return row.Value{}, err
		}
		v, err := row.ParseDecimal(row.DecimalOf(f), text)
		return row.Value{Bytes: v.AppendBigEndian(nil), Int: int64(row.DecimalOf(f).Scale())}, err
	case table.JSON:
		return content(slowJSON(o, n))
	case table.Geography:
		if n.kind == '{' {
			return content(compactText(n), nil)
		}
		return content(n.text, onlyString(n))
	case table.Interval:
		months, days, micros, err := row.ParseInterval(n.text)
		return rowtest.List(row.Value{Int: months}, row.Value{Int: days}, row.Value{Int: micros}), errors.Join(err, onlyString(n))
	case table.Bytes:
		return slowBytes(o, n)
	}
	return number(slowTime(f.Type, o, n))
}

func onlyString(n slowNode) error {
	if n.kind != '"' {
		return errSlow
	}
	return nil
}

func slowBool(n slowNode) (row.Value, error) {
	word := n.raw
	if n.kind == '"' {
		word = n.text
	}
	// ToUpper and ToLower of other letters must not make a word of what is none.
	switch {
	case n.kind != '"' && n.kind != 't', len(word) > 5:
	case strings.ToLower(word) == "true":
		return row.Value{Int: 1}, nil
	case strings.ToLower(word) == "false":
		return row.Value{}, nil
	}
	return row.Value{}, errSlow
}

func slowFloat(n slowNode) (row.Value, error) {
	text, err := n.scalarText()
	if err != nil {
		return row.Value{}, err
	}
	if !slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, text) && !json.Valid([]byte(text)) ||
		strings.ContainsAny(text, " \t\r\n\"tfn[{") && text != "NaN" && text != "Infinity" && text != "-Infinity" {
		return row.Value{}, errSlow
	}
	v, err := strconv.ParseFloat(text, 64)
	if text == "NaN" {
		v = quietNaN
	}
	return rowtest.Float(v), err
}

func compactText(n slowNode) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(n.raw)); err != nil {
		panic(err)
	}
	return b.String()
}

func slowJSON(o Options, n slowNode) (string, error) {
	switch {
	case n.kind == '"' && o.JSONColumns != Values:
		return n.text, nil
	case o.JSONColumns == Text:
		return "", errSlow
	}
	return compactText(n), nil
}

func slowBytes(o Options, n slowNode) (row.Value, error) {
	var out row.Value
	switch {
	case n.kind == '"' && o.BytesEncoding != ByteArrays:
		text := strings.NewReplacer("-", "+", "_", "/").Replace(n.text)
		if strings.ContainsAny(text, "\r\n") {
			return out, errSlow
		}
		encoding := base64.RawStdEncoding
		if strings.HasSuffix(text, "=") {
			encoding = base64.StdEncoding
		}
		b, err := encoding.DecodeString(text)
		out.Bytes = b
		return out, err
	case n.kind == '[' && o.BytesEncoding != Base64:
		for _, child := range n.children {
			v, err := slowInt(child.raw)
			if err != nil || v < -128 || v > 255 {
				return out, errSlow
			}
			out.Bytes = append(out.Bytes, byte(v))
		}
		return out, nil
	}
	return out, errSlow
}

func slowTime(typ table.Type, o Options, n slowNode) (int64, error) {
	text, err := n.scalarText()
	if err != nil {
		return 0, err
	}
	switch {
	case typ == table.Timestamp && (n.kind == '0' || slowWhole.MatchString(text)):
		v, err := slowInt(text)
		unit := []int64{1, 0, 1_000_000, 1000}[o.TimestampNumbers]
		micros := new(big.Int).Mul(big.NewInt(v), big.NewInt(unit))
		if err != nil || unit == 0 || !micros.IsInt64() || row.CheckMicros(micros.Int64()) != nil {
			return 0, errSlow
		}
		return micros.Int64(), nil
	case typ == table.Date && n.kind == '0':
		v, err := slowInt(text)
		if err != nil {
			return 0, err
		}
		return v, row.CheckDays(v)
	case n.kind == '0':
		return 0, errSlow
	case typ == table.Timestamp:
		return row.ParseTimestamp(text)
	case typ == table.Date:
		return row.ParseDate(text)
	case typ == table.Time:
		return row.ParseTime(text)
	}
	return row.ParseDateTime(text)
}

// allTypes has a column of every type; members are few, so that random documents meet them.
var allTypes = &table.Schema{Fields: []table.Field{
	{Name: "s", Type: table.String},
	{Name: "i", Type: table.Int64},
	{Name: "f", Type: table.Float64},
	{Name: "b", Type: table.Bool},
	{Name: "n", Type: table.Numeric},
	{Name: "bn", Type: table.BigNumeric},
	{Name: "nn", Type: table.Numeric, Precision: 5, Scale: 2},
	{Name: "by", Type: table.Bytes},
	{Name: "d", Type: table.Date},
	{Name: "t", Type: table.Time},
	{Name: "dt", Type: table.DateTime},
	{Name: "ts", Type: table.Timestamp},
	{Name: "iv", Type: table.Interval},
	{Name: "g", Type: table.Geography},
	{Name: "j", Type: table.JSON},
	{Name: "r", Type: table.Range, Range: table.Date},
	{Name: "st", Type: table.Struct, Fields: []table.Field{
		{Name: "s", Type: table.String, Mode: table.Required},
		{Name: "li", Type: table.Int64, Mode: table.Repeated},
		{Name: "in", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "j", Type: table.JSON, Mode: table.Repeated}}},
	}},
	{Name: "ls", Type: table.String, Mode: table.Repeated},
	{Name: "lf", Type: table.Float64, Mode: table.Repeated},
	{Name: "lts", Type: table.Timestamp, Mode: table.Repeated},
	{Name: "lb", Type: table.Bytes, Mode: table.Repeated},
	{Name: "lr", Type: table.Range, Range: table.DateTime, Mode: table.Repeated},
	{Name: "größe", Type: table.Int64},
}}

var slowSeeds = []string{
	`{"s":"a","i":1,"f":1.5,"b":true,"n":1.25,"bn":"1e-38","nn":123.45,"by":"aGk=","d":"2026-07-26","t":"01:02:03","dt":"2026-07-26T01:02:03"}`,
	`{"ts":"2026-07-26T01:02:03.456789Z","iv":"1-2 3 4:5:6","g":{"type": "Point"},"j":{"a": [1, "x"]},"r":{"start":"2026-07-26","end":null}}`,
	`{"st":{"s":"x","li":[1,2,300],"in":[{"j":[1,"{}",{"k":"\ud83d\ude00"}]},{}]},"ls":["a",1,true],"lf":[1,"NaN"],"lts":[0,"1970-01-01 00:00:00"]}`,
	`{"lb":["aGk",[1,-1,255]],"lr":[{},{"start":"2026-07-26"}],"GRÖẞE":-0,"by":[1,2]}`,
	`{"S":"\u0061\n","i":"007","j":"text","g":"POINT(1 2)","d":20660,"ts":"20230101","f":"-Infinity","b":"TRUE"}`,
	`{"s":"a","S":"b"}`, `{"unknown":{"a":[]}}`, `{}`, `{"s":1} x`, "{\"s\":\"\xff\"}", `{"s":"\ud800"}`, `[{}]`, `{"i":9223372036854775808}`, `{"st":{}}`,
}

func compareWithSlow(t fataler, s *Serializer[[]byte], d *row.Decoder, o Options, doc []byte) {
	t.Helper()
	schema, err := s.Schema(table.Destination{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	want, wantErr := slowRow(schema.Fields, o, doc)
	data, err := s.AppendRow(nil, table.Destination{}, doc)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: error %v, the slow version says %v", doc, err, wantErr)
	}
	if err != nil {
		var e *row.Error
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(doc)) || e.Msg == "" {
			t.Fatalf("%q: error %#v, want a *row.Error with a message and an offset within the document", doc, err)
		}
		return
	}
	got, err := d.Decode(data)
	if err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	if diff := cmp.Diff(plainValues(want), plainValues(got.Values)); diff != "" {
		t.Fatalf("%q (-slow +fast):\n%s", doc, diff)
	}
}

// plainValues makes nil and empty the same.
func plainValues(in []row.Value) []row.Value {
	out := make([]row.Value, len(in))
	for i, v := range in {
		if !v.Null {
			out[i] = row.Value{Int: v.Int, Bytes: append([]byte{}, v.Bytes...), List: plainValues(v.List)}
		} else {
			out[i].Null = true
		}
	}
	return out
}

func FuzzAppendRow(f *testing.F) {
	for _, seed := range slowSeeds {
		f.Add([]byte(seed), byte(0))
		f.Add([]byte(seed), byte(255))
	}
	f.Fuzz(func(t *testing.T, doc []byte, bits byte) {
		o := Options{
			TimestampNumbers:    TimestampNumbers(bits & 3),
			JSONColumns:         min(JSONColumns(bits>>2&3), lastJSONColumns),
			BytesEncoding:       min(BytesEncoding(bits>>4&3), lastBytesEncoding),
			IgnoreUnknownFields: bits&128 != 0,
		}
		s, d := fuzzPair(t, o)
		if bytes.Contains(doc, []byte("iv")) || bytes.Contains(doc, []byte("IV")) {
			// Intervals are passed on as they are, and only canonical ones decode.
			if _, err := slowRow(allTypes.Fields, o, doc); err != nil {
				_, _ = s.AppendRow(nil, table.Destination{}, doc)
				return
			}
		}
		compareWithSlow(t, s, d, o, doc)
	})
}

func fuzzPair(t *testing.T, o Options) (*Serializer[[]byte], *row.Decoder) {
	t.Helper()
	s, err := New(itself, Fixed(allTypes), o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(allTypes)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

// fragments are values that some column takes, or none.
var fragments = []string{
	`"a"`, `""`, `"\ud83d\ude00"`, `"\ud83d"`, `"x\u0041\n"`, "\"\xff\"", "\"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\"", `"12"`, `"-0"`, `"NaN"`, `"-Infinity"`, `"true"`, `"FALSE"`,
	`"2026-07-26"`, `"2026-7-6"`, `"2026-02-30"`, `"01:02:03.456789"`, `"24:00:00"`, `"2026-07-26T01:02:03Z"`, `"2026-07-26 1:2:3"`, `"aGk="`, `"aGk"`, `"a*"`, `"POINT(1 2)"`,
	`0`, `-0`, `1`, `-1`, `255`, `256`, `1.5`, `1.250`, `123.456`, `1e2`, `1E-2`, `1e400`, `1e-400`, `20660`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `0.1234567891`,
	`12345678901234567890123456789.5`, `1e39`, `01`, `1.`, `-`, `.5`, `+1`, `true`, `false`, `null`, `nul`, `True`,
	`{}`, `[]`, `[1,2,300]`, `[ 1 , -1 ]`, `["a",1,true]`, `["a",null]`, `[[1],[2]]`, `[1,`, `{"a":1}`, `{"a":1,"a":2}`, `{ "k" : [ 1, { } ] }`, `{"k":}`, `{k:1}`,
	`{"s":"x"}`, `{"s":"x","li":[1]}`, `{"S":"x","s":"y"}`, `{"s":"x","in":[{"j":[1,"{}"]},{}]}`, `{"s":"x","in":[{"j":null}]}`, `{"li":[]}`, `{"s":null}`,
	`{"start":"2026-07-26","end":null}`, `{"START":"2026-07-26"}`, `{"start":5}`, `{"start":"x"}`, `{"end":"2026-07-26T00:00:00","other":1}`,
}

func TestAppendRowAgainstSlow(t *testing.T) {
	names := []string{"other", "größe", "GRÖẞE", "gr\\u00f6ße", "I"}
	for _, f := range allTypes.Fields {
		if f.Type != table.Interval { // passed on as it is, so the decoder may refuse what the serializer takes
			names = append(names, f.Name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{
			TimestampNumbers:    rapid.SampledFrom([]TimestampNumbers{Micros, RejectNumbers, Seconds, Millis}).Draw(rt, "numbers"),
			JSONColumns:         rapid.SampledFrom([]JSONColumns{TextOrValue, Text, Values}).Draw(rt, "json"),
			BytesEncoding:       rapid.SampledFrom([]BytesEncoding{AnyBytes, Base64, ByteArrays}).Draw(rt, "bytes"),
			IgnoreUnknownFields: rapid.Bool().Draw(rt, "ignore"),
		}
		s, d := fuzzPair(t, o)
		for range 20 { // documents of one member each find more than one of twenty
			doc := `{"` + rapid.SampledFrom(names).Draw(rt, "key") + `":` + rapid.SampledFrom(fragments).Draw(rt, "value")
			if rapid.Bool().Draw(rt, "two") {
				doc += ` ,"` + rapid.SampledFrom(names).Draw(rt, "key2") + `" : ` + rapid.SampledFrom(fragments).Draw(rt, "value2")
			}
			compareWithSlow(t, s, d, o, []byte(doc+"}"))
		}
	})
}
