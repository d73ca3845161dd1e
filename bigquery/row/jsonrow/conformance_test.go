package jsonrow

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// docCase is a document and the row it gives, or the error.
type docCase struct {
	name    string
	fields  []table.Field
	options Options
	doc     string
	want    []row.Value
	kind    row.Kind
	path    string
}

// run checks the row, and that a BigQuery stores its values whichever way it goes there.
func (c docCase) run(t *testing.T, l *stored.Local, m *Mapping) {
	t.Helper()
	one := rowtest.Case[[]byte]{Name: c.doc, Record: func() []byte { return []byte(c.doc) }, Values: c.want}
	if c.kind != "" {
		one.Err = &row.Error{Kind: c.kind, Path: c.path}
	}
	rowtest.Test(t, rowtest.Format[[]byte]{
		New:         func() (row.Serializer[[]byte], error) { return New(itself, m, c.options) },
		Destination: table.Destination{Project: "p", Dataset: "d", Table: "t"},
		Cases:       []rowtest.Case[[]byte]{one},
		Scribble:    func(b []byte) { clear(b) },
	})
	if c.kind != "" {
		return
	}
	s, err := New(itself, m, c.options)
	if err != nil {
		t.Fatal(err)
	}
	kept := c.want
	if own, ok := keptAs[string(kept[0].Bytes)]; ok {
		kept = text(own)
	}
	_, err = stored.CheckKept(t.Context(), l, s, [][]row.Value{c.want}, [][]row.Value{kept}, []byte(c.doc))
	if noJSON := string(c.want[0].Bytes) == "not json"; noJSON != (err != nil) {
		t.Errorf("%v, want an error of the service: %v", err, noJSON)
	}
}

// keptAs is what BigQuery makes of texts for JSON and GEOGRAPHY columns.
var keptAs = map[string]string{`{"k":1.50}`: `{"k":1.5}`, `{"a":1,"a":2}`: `{"a":1}`, `"\u0041"`: `"A"`, `{"type":"Point","coordinates":[1,2]}`: "POINT(1 2)"}

func col(typ table.Type) []table.Field { return []table.Field{{Name: "c", Type: typ}} }

func listOf(typ table.Type) []table.Field {
	return []table.Field{{Name: "c", Type: typ, Mode: table.Repeated}}
}

func whole(n int64) []row.Value      { return []row.Value{{Int: n}} }
func text(s string) []row.Value      { return []row.Value{rowtest.Text(s)} }
func float(f float64) []row.Value    { return []row.Value{rowtest.Float(f)} }
func numeric9(s string) []row.Value  { return []row.Value{rowtest.Decimal(table.Numeric, s)} }
func numeric38(s string) []row.Value { return []row.Value{rowtest.Decimal(table.BigNumeric, s)} }
func null() []row.Value              { return []row.Value{rowtest.Null} }
func elements(v ...row.Value) []row.Value {
	return []row.Value{rowtest.List(v...)}
}

var nameAndNumber = []table.Field{{Name: "name", Type: table.String, Mode: table.Required}, {Name: "n", Type: table.Int64}}

func TestDocuments(t *testing.T) {
	l := stored.Start(t)
	members := []table.Field{{Name: "x", Type: table.Int64, Mode: table.Required}}
	items := []table.Field{{Name: "items", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "price", Type: table.Int64}}}}
	for _, c := range []docCase{
		{name: "SER-96 both", fields: nameAndNumber, doc: `{"name":"alice","n":3}`, want: []row.Value{rowtest.Text("alice"), {Int: 3}}},
		{name: "SER-97 null", fields: nameAndNumber, doc: `{"name":"a","n":null}`, want: []row.Value{rowtest.Text("a"), rowtest.Null}},
		{name: "SER-97 required missing", fields: nameAndNumber, doc: `{"n":1}`, kind: row.KindRequired, path: "name"},
		{name: "SER-97 required null", fields: nameAndNumber, doc: `{"name":null}`, kind: row.KindRequired, path: "name"},
		{name: "SER-98 no JSON", fields: nameAndNumber, doc: `{not json`, kind: row.KindJSON},
		{name: "SER-98 array", fields: nameAndNumber, doc: `[1,2]`, kind: row.KindJSON},
		{name: "SER-98 string", fields: nameAndNumber, doc: `"x"`, kind: row.KindJSON},
		{name: "SER-98 bare key", fields: nameAndNumber, doc: `{name:"a"}`, kind: row.KindJSON},
		{name: "nothing", fields: nameAndNumber, doc: ``, kind: row.KindJSON},
		{name: "white space", fields: nameAndNumber, doc: " \n", kind: row.KindJSON},
		{name: "byte order mark", fields: nameAndNumber, doc: "\ufeff{\"name\":\"a\"}", kind: row.KindJSON},
		{name: "SER-99 two objects", fields: nameAndNumber, doc: `{"name":"a"}{"name":"b"}`, kind: row.KindMulti},
		{name: "SER-99 trailing garbage", fields: nameAndNumber, doc: `{"name":"a"} x`, kind: row.KindMulti},
		{name: "SER-99 white space around", fields: nameAndNumber, doc: "  {\"name\":\"a\"}\n\n", want: []row.Value{rowtest.Text("a"), rowtest.Null}},
		{name: "white space within", fields: nameAndNumber, doc: "{ \"name\"\t: \"a\" ,\r\n\"n\" : 3 }", want: []row.Value{rowtest.Text("a"), {Int: 3}}},
		{name: "SER-100", fields: nameAndNumber, doc: `{}`, kind: row.KindEmptyDoc},
		{name: "SER-100 with a space", fields: nameAndNumber, doc: ` { } `, kind: row.KindEmptyDoc},
		{name: "SER-101", fields: nameAndNumber, doc: `{"name":"a","extra":1}`, kind: row.KindUnknown, path: "extra"},
		{name: "SER-101 ignored", fields: nameAndNumber, options: Options{IgnoreUnknownFields: true}, doc: `{"name":"a","extra":{"deep":[1,{}]}}`, want: []row.Value{rowtest.Text("a"), rowtest.Null}},
		{name: "SER-101 in a STRUCT", fields: items, doc: `{"items":[{"price":1},{"extra":1}]}`, kind: row.KindUnknown, path: "items[1].extra"},
		{name: "SER-101 in a STRUCT, ignored", fields: items, options: Options{IgnoreUnknownFields: true}, doc: `{"items":[{"extra":1}]}`, want: elements(rowtest.List(rowtest.Null))},
		{name: "SER-102", fields: col(table.Int64), options: Options{IgnoreUnknownFields: true}, doc: `{"extra":1}`, want: null()},
		{name: "SER-103", fields: []table.Field{{Name: "userName", Type: table.String}}, doc: `{"USERNAME":"a"}`, want: text("a")},
		{name: "SER-103 twice by case", fields: []table.Field{{Name: "userName", Type: table.String}}, doc: `{"userName":"a","USERNAME":"b"}`, kind: row.KindDuplicate, path: "userName"},
		{name: "SER-103 twice", fields: []table.Field{{Name: "userName", Type: table.String}}, doc: `{"userName":"a","userName":"a"}`, kind: row.KindDuplicate, path: "userName"},
		{name: "twice, null", fields: []table.Field{{Name: "userName", Type: table.String}}, doc: `{"userName":null,"userName":"a"}`, kind: row.KindDuplicate, path: "userName"},
		{name: "escaped key", fields: []table.Field{{Name: "userName", Type: table.String}}, doc: `{"\u0075serName":"a"}`, want: text("a")},
		{name: "Unicode case", fields: []table.Field{{Name: "größe", Type: table.Int64}}, doc: `{"GRÖẞE":1}`, want: whole(1)},
		{name: "SER-122 empty STRUCT", fields: []table.Field{{Name: "s", Type: table.Struct, Fields: col(table.Int64)}}, doc: `{"s":{}}`, want: []row.Value{rowtest.List(rowtest.Null)}},
		{name: "SER-122 required child", fields: []table.Field{{Name: "s", Type: table.Struct, Fields: members}}, doc: `{"s":{}}`, kind: row.KindRequired, path: "s.x"},
		{name: "SER-122 required child in a list", fields: []table.Field{{Name: "s", Type: table.Struct, Mode: table.Repeated, Fields: members}}, doc: `{"s":[{"x":1},{}]}`, kind: row.KindRequired, path: "s[1].x"},
		{name: "STRUCT from a string", fields: []table.Field{{Name: "s", Type: table.Struct, Fields: members}}, doc: `{"s":"x"}`, kind: row.KindType, path: "s"},
		{name: "STRUCT, NULL", fields: []table.Field{{Name: "s", Type: table.Struct, Fields: members}}, doc: `{"s":null}`, want: null()},
		{name: "path", fields: items, doc: `{"items":[{"price":1},{"price":2},{"price":"x"}]}`, kind: row.KindType, path: "items[2].price"},
		{name: "SER-123", fields: []table.Field{{Name: "c", Type: table.Range, Range: table.Date}}, doc: `{"c":{"start":"2026-07-26","end":null}}`, want: []row.Value{rowtest.List(row.Value{Int: 20660}, rowtest.Null)}},
		{name: "RANGE unbounded", fields: []table.Field{{Name: "c", Type: table.Range, Range: table.Timestamp}}, doc: `{"c":{}}`, want: []row.Value{rowtest.List(rowtest.Null, rowtest.Null)}},
		{name: "RANGE of DATETIME", fields: []table.Field{{Name: "c", Type: table.Range, Range: table.DateTime}}, doc: `{"c":{"end":"1970-01-01T00:00:01"}}`, want: []row.Value{rowtest.List(rowtest.Null, row.Value{Int: 1_000_000})}},
		{name: "RANGE with another key", fields: []table.Field{{Name: "c", Type: table.Range, Range: table.Date}}, doc: `{"c":{"begin":null}}`, kind: row.KindUnknown, path: "c.begin"},
		{name: "RANGE from text", fields: []table.Field{{Name: "c", Type: table.Range, Range: table.Date}}, doc: `{"c":"[2026-07-26, UNBOUNDED)"}`, kind: row.KindType, path: "c"},
		{name: "SER-126 half a pair", fields: col(table.String), doc: `{"c":"\ud800"}`, kind: row.KindText, path: "c"},
		{name: "SER-126 second half", fields: col(table.String), doc: `{"c":"\udc00\ud800"}`, kind: row.KindText, path: "c"},
		{name: "SER-126 pair cut", fields: col(table.String), doc: `{"c":"\ud800\u0041"}`, kind: row.KindText, path: "c"},
		{name: "SER-126 no UTF-8", fields: col(table.String), doc: "{\"c\":\"\xff\"}", kind: row.KindText, path: "c"},
		{name: "SER-126 no UTF-8 far in", fields: col(table.String), doc: "{\"c\":\"0123456789é0123456789\xc3\"}", kind: row.KindText, path: "c"},
		{name: "no UTF-8 in a key", fields: col(table.String), doc: "{\"\xff\":1}", kind: row.KindText},
		{name: "no UTF-8 outside of strings", fields: col(table.String), doc: "{\"c\":\xff}", kind: row.KindText, path: "c"},
		{name: "half a pair in a JSON column", fields: col(table.JSON), doc: `{"c":{"a":"\ud800"}}`, kind: row.KindText, path: "c"},
		{name: "pair", fields: col(table.String), doc: `{"c":"\ud83d\ude00\u0000\"\\\/\b\f\n\r\t"}`, want: text("😀\x00\"\\/\b\f\n\r\t")},
		{name: "control character", fields: col(table.String), doc: "{\"c\":\"a\nb\"}", kind: row.KindJSON, path: "c"},
		{name: "unknown escape", fields: col(table.String), doc: `{"c":"\x41"}`, kind: row.KindJSON, path: "c"},
		{name: "short escape", fields: col(table.String), doc: `{"c":"\u00"}`, kind: row.KindJSON, path: "c"},
		{name: "cut in a string", fields: col(table.String), doc: `{"c":"abc`, kind: row.KindJSON, path: "c"},
		{name: "cut in an escape", fields: col(table.String), doc: `{"c":"abc\`, kind: row.KindJSON, path: "c"},
		{name: "cut after a key", fields: col(table.String), doc: `{"c"`, kind: row.KindJSON},
		{name: "cut after a colon", fields: col(table.String), doc: `{"c":`, kind: row.KindJSON, path: "c"},
		{name: "cut after a value", fields: col(table.String), doc: `{"c":"a"`, kind: row.KindJSON, path: "c"},
		{name: "trailing comma", fields: col(table.String), doc: `{"c":"a",}`, kind: row.KindJSON},
		{name: "no comma", fields: nameAndNumber, doc: `{"name":"a" "n":1}`, kind: row.KindJSON, path: "name"},
		{name: "no colon", fields: col(table.String), doc: `{"c" "a"}`, kind: row.KindJSON},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, l, Fixed(&table.Schema{Fields: c.fields})) })
	}
}

func TestScalars(t *testing.T) {
	l := stored.Start(t)
	const at = 142258614586538368 // DATETIME 2021-09-27T20:51:10.752, packed
	datetime := func(packed int64) []row.Value {
		micros, err := row.UnpackDateTime(packed)
		if err != nil {
			t.Fatal(err)
		}
		return whole(micros)
	}
	reject, seconds, millis := Options{TimestampNumbers: RejectNumbers}, Options{TimestampNumbers: Seconds}, Options{TimestampNumbers: Millis}
	decimal102 := []table.Field{{Name: "c", Type: table.Numeric, Precision: 10, Scale: 2}}
	for _, c := range []struct {
		name    string
		fields  []table.Field
		options Options
		value   string
		want    []row.Value
		kind    row.Kind
	}{
		{"SER-104", col(table.String), Options{}, `5`, text("5"), ""},
		{"SER-104", col(table.String), Options{}, `1.50`, text("1.50"), ""},
		{"SER-104", col(table.String), Options{}, `true`, text("true"), ""},
		{"SER-104", col(table.String), Options{}, `false`, text("false"), ""},
		{"SER-104", col(table.String), Options{}, `{}`, nil, row.KindType},
		{"SER-104", col(table.String), Options{}, `[]`, nil, row.KindType},
		{"empty string", col(table.String), Options{}, `""`, text(""), ""},
		{"SER-105", col(table.Int64), Options{}, `"12"`, whole(12), ""},
		{"SER-105", col(table.Int64), Options{}, `-0`, whole(0), ""},
		{"SER-105", col(table.Int64), Options{}, `"-012"`, whole(-12), ""},
		{"SER-105", col(table.Int64), Options{}, `1.0`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `1e3`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `"+1"`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `" 1"`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `""`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `"-"`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `true`, nil, row.KindType},
		{"SER-105", col(table.Int64), Options{}, `9223372036854775807`, whole(math.MaxInt64), ""},
		{"SER-105", col(table.Int64), Options{}, `-9223372036854775808`, whole(math.MinInt64), ""},
		{"SER-105", col(table.Int64), Options{}, `9223372036854775808`, nil, row.KindRange},
		{"SER-105", col(table.Int64), Options{}, `-9223372036854775809`, nil, row.KindRange},
		{"SER-105", col(table.Int64), Options{}, `"100000000000000000000"`, nil, row.KindRange},
		{"bare minus", col(table.Int64), Options{}, `-`, nil, row.KindJSON},
		{"plus", col(table.Int64), Options{}, `+1`, nil, row.KindJSON},
		{"SER-106", col(table.Bool), Options{}, `"TRUE"`, whole(1), ""},
		{"SER-106", col(table.Bool), Options{}, `"fAlse"`, whole(0), ""},
		{"SER-106", col(table.Bool), Options{}, `true`, whole(1), ""},
		{"SER-106", col(table.Bool), Options{}, `1`, nil, row.KindType},
		{"SER-106", col(table.Bool), Options{}, `"yes"`, nil, row.KindType},
		{"SER-106", col(table.Bool), Options{}, `tru`, nil, row.KindJSON},
		{"SER-107", col(table.Float64), Options{}, `"NaN"`, float(quietNaN), ""},
		{"SER-107", col(table.Float64), Options{}, `"-Infinity"`, float(math.Inf(-1)), ""},
		{"SER-107", col(table.Float64), Options{}, `"Infinity"`, float(math.Inf(1)), ""},
		{"SER-107", col(table.Float64), Options{}, `2`, float(2), ""},
		{"SER-107", col(table.Float64), Options{}, `"2.5e-3"`, float(0.0025), ""},
		{"SER-107", col(table.Float64), Options{}, `1e400`, nil, row.KindRange},
		{"SER-107", col(table.Float64), Options{}, `"1e400"`, nil, row.KindRange},
		{"SER-107", col(table.Float64), Options{}, `"inf"`, nil, row.KindType},
		{"SER-107", col(table.Float64), Options{}, `"0x1p3"`, nil, row.KindType},
		{"SER-107", col(table.Float64), Options{}, `"1_0"`, nil, row.KindType},
		{"SER-107", col(table.Float64), Options{}, `""`, nil, row.KindType},
		{"SER-107", col(table.Float64), Options{}, `true`, nil, row.KindType},
		{"a point without digits", col(table.Float64), Options{}, `1.`, nil, row.KindJSON},
		{"an exponent without digits", col(table.Float64), Options{}, `1e+`, nil, row.KindJSON},
		{"SER-108", col(table.Numeric), Options{}, `"1.25"`, numeric9("1.25"), ""},
		{"SER-108", col(table.Numeric), Options{}, `1.25`, numeric9("1.25"), ""},
		{"SER-108", col(table.Numeric), Options{}, `1.2500000000000`, numeric9("1.25"), ""},
		{"SER-108", col(table.Numeric), Options{}, `1e2`, numeric9("100"), ""},
		{"SER-108", col(table.Numeric), Options{}, `12345678901234567890`, numeric9("12345678901234567890"), ""},
		{"SER-109", col(table.Numeric), Options{}, `0.1234567891`, nil, row.KindScale},
		{"SER-109", col(table.Numeric), Options{}, `"99999999999999999999999999999999"`, nil, row.KindRange},
		{"SER-109", decimal102, Options{}, `1.234`, nil, row.KindScale},
		{"SER-109", decimal102, Options{}, `1.230`, numeric9("1.23"), ""},
		{"SER-109", decimal102, Options{}, `123456789`, nil, row.KindRange},
		{"NUMERIC", col(table.Numeric), Options{}, `true`, nil, row.KindType},
		{"NUMERIC", col(table.Numeric), Options{}, `"one"`, nil, row.KindType},
		{"BIGNUMERIC", col(table.BigNumeric), Options{}, `1e-38`, numeric38("1e-38"), ""},
		{"SER-110", col(table.Timestamp), Options{}, `"2026-07-26T01:02:03.456789Z"`, whole(1785027723456789), ""},
		{"SER-110", col(table.Timestamp), Options{}, `"1970-01-01 00:00:00.000010"`, whole(10), ""},
		{"SER-110", col(table.Timestamp), Options{}, `"2018\/08\/19 12:11"`, whole(1534680660000000), ""},
		{"SER-110", col(table.Timestamp), Options{}, `"2022-04-05T09:06:11+04:00"`, whole(1649135171000000), ""},
		{"SER-111", col(table.Timestamp), Options{}, `1700000000`, whole(1700000000), ""},
		{"SER-111", col(table.Timestamp), seconds, `1700000000`, whole(1700000000000000), ""},
		{"SER-111", col(table.Timestamp), millis, `"-5"`, whole(-5000), ""},
		{"SER-111", col(table.Timestamp), reject, `1700000000`, nil, row.KindType},
		{"SER-111", col(table.Timestamp), reject, `"1700000000"`, nil, row.KindType},
		{"SER-111", col(table.Timestamp), seconds, `9223372036854775807`, nil, row.KindRange},
		{"SER-111", col(table.Timestamp), Options{}, `9223372036854775808`, nil, row.KindRange},
		{"SER-111", col(table.Timestamp), seconds, `253402300800`, nil, row.KindRange},
		{"SER-112", col(table.Timestamp), Options{}, `"20230101"`, whole(20230101), ""},
		{"SER-112", col(table.Timestamp), Options{}, `1.5`, nil, row.KindType},
		{"SER-112", col(table.Timestamp), Options{}, `"1.5e3"`, nil, row.KindType},
		{"SER-112", col(table.Timestamp), Options{}, `"NaN"`, nil, row.KindType},
		{"SER-112", col(table.Timestamp), Options{}, `"2026-07-26"`, nil, row.KindType},
		{"SER-112", col(table.Timestamp), Options{}, `"2022-04-05 09:06:11 PST"`, nil, row.KindType},
		{"SER-112", col(table.Timestamp), Options{}, `true`, nil, row.KindType},
		{"SER-113", col(table.Timestamp), Options{}, `"1969-12-31T23:59:59.9999999Z"`, whole(-1), ""},
		{"SER-113", col(table.Timestamp), Options{}, `"2026-02-30T00:00:00Z"`, nil, row.KindRange},
		{"SER-114", col(table.Date), Options{}, `"2026-07-26"`, whole(20660), ""},
		{"SER-114", col(table.Date), Options{}, `20660`, whole(20660), ""},
		{"SER-114", col(table.Date), Options{}, `"2026-7-26"`, whole(20660), ""},
		{"SER-114", col(table.Date), Options{}, `4294967296`, nil, row.KindRange},
		{"SER-114", col(table.Date), Options{}, `99999999999999999999`, nil, row.KindRange},
		{"SER-114", col(table.Date), Options{}, `2932897`, nil, row.KindRange},
		{"SER-114", col(table.Date), Options{}, `-719162`, whole(-719162), ""},
		{"SER-114", col(table.Date), Options{}, `"2027-02-29"`, nil, row.KindRange},
		{"SER-114", col(table.Date), Options{}, `"20660"`, nil, row.KindType},
		{"SER-114", col(table.Date), Options{}, `1.5`, nil, row.KindType},
		{"SER-115", col(table.DateTime), Options{}, `"2021-09-27T20:51:10.752"`, datetime(at), ""},
		{"SER-115", col(table.DateTime), Options{}, `"2021-09-27t20:51:10.752"`, datetime(at), ""},
		{"SER-115", col(table.DateTime), Options{}, `"2021-9-27 20:51:10.752"`, datetime(at), ""},
		{"SER-115", col(table.DateTime), Options{}, `"2021-09-27"`, datetime(142258525253402624), ""},
		{"SER-116", col(table.DateTime), Options{}, `142258614586538368`, nil, row.KindType},
		{"SER-116", col(table.DateTime), Options{}, `"2026-08-04 24:00:00"`, nil, row.KindRange},
		{"SER-116", col(table.DateTime), Options{}, `"2021-09-27T20:51:10.1234567"`, nil, row.KindScale},
		{"SER-116", col(table.DateTime), Options{}, `"2021-09-27T20:51:10.752000000"`, datetime(at), ""},
		{"SER-117", col(table.Time), Options{}, `"01:02:03.456789"`, whole(3723456789), ""},
		{"SER-117", col(table.Time), Options{}, `"12:34"`, whole(45240000000), ""},
		{"SER-117", col(table.Time), Options{}, `5`, nil, row.KindType},
		{"SER-118", col(table.JSON), Options{}, `"{\"k\":1}"`, text(`{"k":1}`), ""},
		{"SER-118", col(table.JSON), Options{}, `{"k": 1.50}`, text(`{"k":1.50}`), ""},
		{"SER-118", col(table.JSON), Options{}, `7`, text(`7`), ""},
		{"SER-118", col(table.JSON), Options{}, `[ 1 , "a b" , {} , [ ] ]`, text(`[1,"a b",{},[]]`), ""},
		{"SER-118", col(table.JSON), Options{}, `{"a" :"\" : \\"}`, text(`{"a":"\" : \\"}`), ""},
		{"SER-118", col(table.JSON), Options{}, `{"a":1,"a":2}`, text(`{"a":1,"a":2}`), ""},
		{"SER-118", col(table.JSON), Options{}, `"not json"`, text(`not json`), ""},
		{"SER-118", col(table.JSON), Options{JSONColumns: Text}, `{}`, nil, row.KindType},
		{"SER-118", col(table.JSON), Options{JSONColumns: Text}, `"{}"`, text("{}"), ""},
		{"SER-118", col(table.JSON), Options{JSONColumns: Values}, `"a"`, text(`"a"`), ""},
		{"SER-118", col(table.JSON), Options{JSONColumns: Values}, `"\u0041"`, text(`"\u0041"`), ""},
		{"JSON null", col(table.JSON), Options{}, `null`, null(), ""},
		{"bad JSON", col(table.JSON), Options{}, `{"k":}`, nil, row.KindJSON},
		{"bad JSON", col(table.JSON), Options{}, `[1,]`, nil, row.KindJSON},
		{"bad JSON", col(table.JSON), Options{}, `{"k":1,}`, nil, row.KindJSON},
		{"bad JSON", col(table.JSON), Options{}, `[1}`, nil, row.KindJSON},
		{"SER-119", col(table.Geography), Options{}, `"POINT(1 2)"`, text("POINT(1 2)"), ""},
		{"SER-119", col(table.Geography), Options{}, `{"type": "Point", "coordinates": [1, 2]}`, text(`{"type":"Point","coordinates":[1,2]}`), ""},
		{"SER-119", col(table.Geography), Options{}, `1`, nil, row.KindType},
		{"SER-119", col(table.Geography), Options{}, `[]`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `"aGk="`, text("hi"), ""},
		{"SER-120", col(table.Bytes), Options{}, `"aGk"`, text("hi"), ""},
		{"SER-120", col(table.Bytes), Options{}, `[104, 105]`, text("hi"), ""},
		{"SER-120", col(table.Bytes), Options{}, `"-_\/+"`, text("\xfb\xff\xfe"), ""},
		{"SER-120", col(table.Bytes), Options{}, `"YQ=="`, text("a"), ""},
		{"SER-120", col(table.Bytes), Options{}, `""`, text(""), ""},
		{"SER-120", col(table.Bytes), Options{}, `[]`, text(""), ""},
		{"SER-120", col(table.Bytes), Options{}, `[255]`, text("\xff"), ""},
		{"SER-120", col(table.Bytes), Options{}, `[-1]`, text("\xff"), ""},
		{"SER-120", col(table.Bytes), Options{}, `[-128]`, text("\x80"), ""},
		{"SER-120", col(table.Bytes), Options{}, `[256]`, nil, row.KindRange},
		{"SER-120", col(table.Bytes), Options{}, `[-129]`, nil, row.KindRange},
		{"SER-120", col(table.Bytes), Options{}, `[1.5]`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `["1"]`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `[1,]`, nil, row.KindJSON},
		{"SER-120", col(table.Bytes), Options{}, `"a*"`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `"a"`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `"aGk=="`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `"===="`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `"aG\nk"`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{BytesEncoding: ByteArrays}, `"aGk="`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{BytesEncoding: Base64}, `[1]`, nil, row.KindType},
		{"SER-120", col(table.Bytes), Options{}, `1`, nil, row.KindType},
		{"INTERVAL", col(table.Interval), Options{}, `"1-2 3 4:5:6"`, elements(row.Value{Int: 14}, row.Value{Int: 3}, row.Value{Int: 14706000000}), ""},
		{"INTERVAL", col(table.Interval), Options{}, `1`, nil, row.KindType},
		{"SER-121", listOf(table.String), Options{}, `["a",1,"b"]`, elements(rowtest.Text("a"), rowtest.Text("1"), rowtest.Text("b")), ""},
		{"SER-121", listOf(table.String), Options{}, `null`, elements(), ""},
		{"SER-121", listOf(table.String), Options{}, `[ ]`, elements(), ""},
		{"SER-121", listOf(table.String), Options{}, `"a"`, nil, row.KindType},
		{"list of numbers", listOf(table.Int64), Options{}, `[1,2,300]`, elements(row.Value{Int: 1}, row.Value{Int: 2}, row.Value{Int: 300}), ""},
		{"list of dates", listOf(table.Date), Options{}, `[ "1970-01-02" , 2 ]`, elements(row.Value{Int: 1}, row.Value{Int: 2}), ""},
		{"list of floats", listOf(table.Float64), Options{}, `[1.5]`, elements(rowtest.Float(1.5)), ""},
		{"list of bytes", listOf(table.Bytes), Options{}, `["aGk=",[1]]`, elements(rowtest.Text("hi"), rowtest.Text("\x01")), ""},
		{"list of JSON", listOf(table.JSON), Options{}, `[1,"{}",[null]]`, elements(rowtest.Text("1"), rowtest.Text("{}"), rowtest.Text("[null]")), ""},
		{"SER-125", col(table.Int64), Options{}, `null`, null(), ""},
	} {
		dc := docCase{fields: c.fields, options: c.options, doc: `{"c":` + c.value + `}`, want: c.want, kind: c.kind}
		if c.kind != "" {
			dc.path = "c"
		}
		t.Run(c.name+" "+c.value, func(t *testing.T) { dc.run(t, l, Fixed(&table.Schema{Fields: dc.fields})) })
	}
	for _, c := range []docCase{
		{name: "SER-121 null element", fields: listOf(table.String), doc: `{"c":["a",null]}`, kind: row.KindNullElem, path: "c[1]"},
		{name: "null element of numbers", fields: listOf(table.Int64), doc: `{"c":[null]}`, kind: row.KindNullElem, path: "c[0]"},
		{name: "list, trailing comma", fields: listOf(table.Int64), doc: `{"c":[1,]}`, kind: row.KindJSON, path: "c[1]"},
		{name: "leading zero", fields: col(table.Int64), doc: `{"c":01}`, kind: row.KindJSON, path: "c"},
		{name: "element of another type", fields: listOf(table.Int64), doc: `{"c":[1,"x"]}`, kind: row.KindType, path: "c[1]"},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, l, Fixed(&table.Schema{Fields: c.fields})) })
	}
}

func TestSchemaFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		m    *Mapping
		o    Options
		want row.Kind
	}{
		{"SER-124 no columns", Fixed(&table.Schema{}), Options{}, row.KindEmpty},
		{"SER-124 case", Fixed(&table.Schema{Fields: []table.Field{{Name: "count", Type: table.Int64}, {Name: "COUNT", Type: table.Int64}}}), Options{}, row.KindCase},
		{"SER-123 range", Fixed(&table.Schema{Fields: col(table.Range)}), Options{}, row.KindColType},
		{"no schema", &Mapping{}, Options{}, row.KindEmpty},
		{"no mapping", nil, Options{}, row.KindSchema},
		{"too few keys", &Mapping{Schema: &table.Schema{Fields: nameAndNumber}, Keys: &Keys{Names: []string{"a"}}}, Options{}, row.KindSchema},
		{"keys twice", &Mapping{Schema: &table.Schema{Fields: nameAndNumber}, Keys: &Keys{Names: []string{"a", "a"}}}, Options{}, row.KindSchema},
		{"no column for the rest", &Mapping{Schema: &table.Schema{Fields: nameAndNumber}, Rest: "rest"}, Options{}, row.KindSchema},
		{"rest of another type", &Mapping{Schema: &table.Schema{Fields: nameAndNumber}, Rest: "n"}, Options{}, row.KindSchema},
		{"option out of range", Fixed(&table.Schema{Fields: nameAndNumber}), Options{JSONColumns: 9}, row.KindSchema},
	} {
		_, err := New(itself, c.m, c.o)
		if kind := kindOf(t, err); kind != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// SER-125: a column without a mode is NULLABLE.
func TestNoMode(t *testing.T) {
	schema, err := table.ParseSchemaJSON([]byte(`[{"name":"c","type":"INT64"},{"name":"s","type":"RECORD","fields":[{"name":"x","type":"STRING"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if c, x := schema.Fields[0], schema.Fields[1].Fields[0]; c.Mode != table.Nullable || x.Mode != table.Nullable {
		t.Errorf("modes %v and %v, want NULLABLE", c.Mode, x.Mode)
	}
	want := []row.Value{rowtest.Null, rowtest.List(rowtest.Null)}
	docCase{fields: schema.Fields, doc: `{"s":{}}`, want: want}.run(t, stored.Start(t), Fixed(schema))
}

// SER-141, SER-123: the very bytes.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		fields    []table.Field
		doc, want string
	}{
		{[]table.Field{{Name: "id", Type: table.Int64}, {Name: "name", Type: table.String}}, `{"id":-42,"name":"hi"}`, "08d6ffffffffffffffff0112026869"},
		{[]table.Field{{Name: "r", Type: table.Range, Range: table.Date}}, `{"r":{"start":"2026-07-26","end":null}}`, "0a0408b4a101"},
		{listOf(table.Int64), `{"c":[1,2,300]}`, "0a040102ac02"},
		{listOf(table.Int64), `{"c":[]}`, ""},
		{col(table.Int64), `{"c":0}`, "0800"},
		{[]table.Field{{Name: "s", Type: table.Struct, Fields: col(table.Int64)}}, `{"s":{"c":5}}`, "0a020805"},
		{col(table.Numeric), `{"c":1.25}`, "0a04807c814a"},
		{col(table.Bytes), `{"c":[]}`, "0a00"},
	} {
		s, err := New(itself, Fixed(&table.Schema{Fields: c.fields}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.AppendRow(nil, table.Destination{}, []byte(c.doc))
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s is %x, %v, want %s", c.doc, got, err, c.want)
		}
		if s.Fingerprint(table.Destination{}) != 0 {
			t.Error("SER-125: the fingerprint is not 0")
		}
	}
}
