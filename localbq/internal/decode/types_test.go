package decode

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// one is a descriptor of a field v, and beside it the types it needs.
func one(f *descriptorpb.FieldDescriptorProto, nested ...any) *descriptorpb.DescriptorProto {
	return messageOf("Row", append([]any{f}, nested...)...)
}

// TestTypes is the table of what feeds which column. Values that have no plain text are given as text of the protobuf
// library.
func TestTypes(t *testing.T) {
	moment := messageOf("Timestamp", field("seconds", "int64"), field("nanos", "int32"))
	duration := messageOf("Duration", field("seconds", "int64"), field("nanos", "int32"))
	v := func(kind string) *descriptorpb.DescriptorProto { return one(field("v", kind)) }
	c := func(typ schema.Type) *schema.Field { return col("v", typ) }
	sized := func(typ schema.Type, n int64) *schema.Field { return &schema.Field{Name: "v", Type: typ, MaxLength: n} }
	cases := []struct {
		name string
		d    *descriptorpb.DescriptorProto
		c    *schema.Field
		row  string
		want string // the row as JSON; the message of the row error behind "!"
	}{
		{"int64", v("int64"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"int32", v("int32"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"sint32", v("sint32"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"sint64", v("sint64"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"sfixed32", v("sfixed32"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"sfixed64", v("sfixed64"), c(schema.Int64), "v: -42", `{"v":-42}`},
		{"uint32", v("uint32"), c(schema.Int64), "v: 4294967295", `{"v":4294967295}`},
		{"fixed32", v("fixed32"), c(schema.Int64), "v: 4294967295", `{"v":4294967295}`},
		{"LBQ-72 enum to INT64", one(of("v", "enum", "E"), enumOf("E", "A", "B")), c(schema.Int64), "v: B", `{"v":10}`},
		{"enum to STRING", one(of("v", "enum", "E"), enumOf("E", "A", "B")), c(schema.String), "v: B", `{"v":"B"}`},

		{"double", v("double"), c(schema.Float64), "v: 1.5", `{"v":1.5}`},
		{"float", v("float"), c(schema.Float64), "v: 1.5", `{"v":1.5}`},
		{"int64 to FLOAT64", v("int64"), c(schema.Float64), "v: -3", `{"v":-3}`},
		{"uint64 to FLOAT64", v("uint64"), c(schema.Float64), "v: 9007199254740992", `{"v":9007199254740992}`},

		{"bool", v("bool"), c(schema.Bool), "v: true", `{"v":true}`},
		{"int64 to BOOL", v("int64"), c(schema.Bool), "v: 2", `{"v":true}`},
		{"zero to BOOL", v("uint64"), c(schema.Bool), "v: 0", `{"v":false}`},

		{"string", v("string"), c(schema.String), `v: "é"`, `{"v":"é"}`},
		{"STRING(2) counts characters", v("string"), sized(schema.String, 2), `v: "éé"`, `{"v":"éé"}`},
		{"LBQ-53 STRING(10)", one(field("foo", "string")), &schema.Field{Name: "foo", Type: schema.String, MaxLength: 10}, `foo: "twelve chars"`,
			"!Field foo: STRING(10) has maximum length 10 but got a value with length 12 on field foo."},
		{"bytes", v("bytes"), c(schema.Bytes), `v: "\377"`, `{"v":"/w=="}`},
		{"string to BYTES", v("string"), c(schema.Bytes), `v: "a"`, `{"v":"YQ=="}`},
		{"BYTES(1)", v("bytes"), sized(schema.Bytes, 1), `v: "ab"`, "!Field v: BYTES(1) has maximum length 1 but got a value with length 2 on field v."},

		{"LBQ-76 NUMERIC bytes", v("bytes"), c(schema.Numeric), `v: "\000\222\066\273\034"`, `{"v":"123.4"}`},
		{"LBQ-76 NUMERIC bytes below zero", v("bytes"), c(schema.Numeric), `v: "\000\200\005\065\214\006\340"`, `{"v":"-9000000"}`},
		{"LBQ-77 NUMERIC bytes, the least significant first", v("bytes"), c(schema.Numeric), `v: "\000\312\232\073"`, `{"v":"1"}`},
		{"NUMERIC empty bytes", v("bytes"), c(schema.Numeric), `v: ""`, `{"v":"0"}`},
		{"NUMERIC string", v("string"), c(schema.Numeric), `v: "123.4"`, `{"v":"123.4"}`},
		{"NUMERIC double", v("double"), c(schema.Numeric), `v: 0.1`, `{"v":"0.1"}`},
		{"NUMERIC int64", v("int64"), c(schema.Numeric), `v: -9000000`, `{"v":"-9000000"}`},
		{"NUMERIC uint64", v("uint64"), c(schema.Numeric), `v: 18446744073709551615`, `{"v":"18446744073709551615"}`},
		{"NUMERIC too large", v("string"), c(schema.Numeric), `v: "1e29"`, "!NUMERIC value is out of range: 1e29 on field v."},
		{"LBQ-78 NUMERIC(10,2) rounds", v("string"), &schema.Field{Name: "v", Type: schema.Numeric, Precision: 10, Scale: 2}, `v: "1.245"`, `{"v":"1.25"}`},
		{"NUMERIC(3,1) refuses integer digits", v("string"), &schema.Field{Name: "v", Type: schema.Numeric, Precision: 3, Scale: 1}, `v: "100"`,
			"!NUMERIC(3, 1) has precision 3 and scale 1 but got a value that is not in range: 100 on field v."},
		{"LBQ-79 BIGNUMERIC", v("string"), c(schema.BigNumeric), `v: "123456789012345678901234567890.1234567891"`, `{"v":"123456789012345678901234567890.1234567891"}`},

		{"LBQ-82 DATE", v("int32"), c(schema.Date), "v: 300", `{"v":"1970-10-28"}`},
		{"DATE int64", v("int64"), c(schema.Date), "v: -1", `{"v":"1969-12-31"}`},
		{"DATE string", v("string"), c(schema.Date), `v: "2024-02-29"`, `{"v":"2024-02-29"}`},
		{"DATE too late", v("int32"), c(schema.Date), "v: 2932897", "!Date field value is out of range: 2932897 on field v."},
		{"DATE beyond 32 bits", v("int64"), c(schema.Date), "v: 4294967296", "!Date field value is out of range: 4294967296 on field v."},
		{"LBQ-80 TIME", v("int64"), c(schema.Time), "v: 102806536767", `{"v":"23:59:59.999999"}`},
		{"LBQ-80 TIME early", v("int64"), c(schema.Time), fmt.Sprint("v: ", 1<<32|2<<26|3<<20|4), `{"v":"01:02:03.000004"}`},
		{"TIME with a bit too many", v("int64"), c(schema.Time), "v: 137438953472", "!Invalid time value 137438953472: bits are set above the hour on field v."},
		{"TIME string", v("string"), c(schema.Time), `v: "1:2:3"`, `{"v":"01:02:03"}`},
		{"LBQ-81 DATETIME", v("int64"), c(schema.DateTime), fmt.Sprint("v: ", 2020<<46|10<<42|1<<37|12<<32), `{"v":"2020-10-01T12:00:00"}`},
		{"LBQ-85 DATETIME string", v("string"), c(schema.DateTime), `v: "2026-02-30"`, `!Invalid datetime string "2026-02-30" on field v.`},
		{"TIMESTAMP", v("int64"), c(schema.Timestamp), "v: 1785027723456789", `{"v":"2026-07-26T01:02:03.456789Z"}`},
		{"TIMESTAMP int32", v("int32"), c(schema.Timestamp), "v: -1", `{"v":"1969-12-31T23:59:59.999999Z"}`},
		{"TIMESTAMP uint32", v("uint32"), c(schema.Timestamp), "v: 1", `{"v":"1970-01-01T00:00:00.000001Z"}`},
		{"LBQ-84 TIMESTAMP string", v("string"), c(schema.Timestamp), `v: "2022-02-02 01:02:03"`, `{"v":"2022-02-02T01:02:03Z"}`},
		{"LBQ-52 TIMESTAMP too early", one(field("bar", "int64")), col("bar", schema.Timestamp), fmt.Sprint("bar: ", math.MinInt64),
			"!Timestamp field value is out of range: -9223372036854775808 on field bar."},
		{"LBQ-83 TIMESTAMP message", one(of("v", "message", "Timestamp"), moment), c(schema.Timestamp), "v { seconds: -1 nanos: 999999999 }", `{"v":"1969-12-31T23:59:59.999999Z"}`},
		{"TIMESTAMP message out of range", one(of("v", "message", "Timestamp"), moment), c(schema.Timestamp), "v { nanos: -1 }",
			"!Timestamp field value is out of range: 0 seconds and -1 nanoseconds on field v."},
		{"TIMESTAMP(12)", v("string"), &schema.Field{Name: "v", Type: schema.Timestamp, TimestampPrecision: 12}, `v: "2024-01-02 03:04:05.123456789012"`, `{"v":"2024-01-02T03:04:05.123456789012Z"}`},
		{"TIMESTAMP(12) message", one(of("v", "message", "Timestamp"), moment), &schema.Field{Name: "v", Type: schema.Timestamp, TimestampPrecision: 12},
			"v { seconds: 1 nanos: 123456789 }", `{"v":"1970-01-01T00:00:01.123456789000Z"}`},

		{"JSON", v("string"), c(schema.JSON), `v: "{ \"b\": 1, \"a\": null }"`, `{"v":"{\"a\":null,\"b\":1}"}`},
		{"LBQ-86 JSON null is a value", v("string"), c(schema.JSON), `v: "null"`, `{"v":"null"}`},
		{"LBQ-86 JSON empty", v("string"), c(schema.JSON), `v: ""`, "!syntax error while parsing JSON at byte 0: unexpected end of text on field v."},
		{"LBQ-88 GEOGRAPHY WKT", v("string"), c(schema.Geography), `v: "POINT (1 2)"`, `{"v":"POINT(1 2)"}`},
		{"LBQ-88 GEOGRAPHY GeoJSON", v("string"), c(schema.Geography), `v: "{\"type\":\"Point\",\"coordinates\":[1,2]}"`, `{"v":"POINT(1 2)"}`},
		{"LBQ-88 GEOGRAPHY bad", v("string"), c(schema.Geography), `v: "POINT"`, "!Invalid geography value: expected ( before the end of the text on field v."},
		{"INTERVAL", v("string"), c(schema.Interval), `v: "1-2 3 4:5:6"`, `{"v":{"days":3,"micros":14706000000,"months":14}}`},
		{"INTERVAL duration", one(of("v", "message", "Duration"), duration), c(schema.Interval), "v { seconds: 2 nanos: 5000 }", `{"v":{"days":0,"micros":2000005,"months":0}}`},
		{"INTERVAL too long", one(of("v", "message", "Duration"), duration), c(schema.Interval), "v { seconds: 1000000000000 }",
			"!Interval value is out of range: 1000000000000000000 microseconds on field v."},

		{"wrapper", one(of("v", "message", "Int64Value"), messageOf("Int64Value", field("value", "int64"))), c(schema.Int64), "v { value: 7 }", `{"v":7}`},
		{"wrapper of zero", one(of("v", "message", "google_protobuf_Int64Value"), messageOf("google_protobuf_Int64Value", field("value", "int64"))), c(schema.Int64), "v { }", `{"v":0}`},
		{"LBQ-90 wrapper into a record", one(of("v", "message", "StringValue"), messageOf("StringValue", field("value", "string"))),
			structOf("v", col("value", schema.String)), `v { value: "x" }`, `{"v":{"value":"x"}}`},
		{"struct", one(of("v", "message", "S"), messageOf("S", field("a", "int64"))), structOf("v", col("a", schema.Int64), col("b", schema.String)),
			"v { a: 1 }", `{"v":{"a":1,"b":null}}`},
		{"struct unset", one(of("v", "message", "S"), messageOf("S", field("a", "int64"))), structOf("v", col("a", schema.Int64)), "", `{"v":null}`},
		{"struct empty", one(of("v", "message", "S"), messageOf("S", field("a", "int64"))), structOf("v", col("a", schema.Int64)), "v { }", `{"v":{"a":null}}`},
		{"LBQ-62 unset is NULL", v("int64"), c(schema.Int64), "", `{"v":null}`},
		{"LBQ-61 declared default", one(withDefault(field("v", "int32"), "4")), c(schema.Int64), "", `{"v":4}`},
		{"declared default string", one(withDefault(field("v", "string"), "")), c(schema.String), "", `{"v":""}`},
		{"declared default enum", one(withDefault(of("v", "enum", "E"), "B"), enumOf("E", "A", "B")), c(schema.String), "", `{"v":"B"}`},
		{"declared default bytes", one(withDefault(field("v", "bytes"), `\001\'`)), c(schema.Bytes), "", `{"v":"ASc="}`},
		{"declared default negative sint", one(withDefault(field("v", "sint64"), "-5")), c(schema.Int64), "", `{"v":-5}`},

		{"repeated", one(repeated(field("v", "string"))), many(c(schema.String)), `v: "a" v: "b"`, `{"v":["a","b"]}`},
		{"repeated empty", one(repeated(field("v", "string"))), many(c(schema.String)), ``, `{"v":[]}`},
		{"LBQ-87 repeated JSON", one(repeated(field("v", "string"))), many(c(schema.JSON)), `v: "[1, 2]" v: "{}"`, `{"v":["[1,2]","{}"]}`},
		{"packed", one(packed(field("v", "int64"))), many(c(schema.Int64)), `v: 1 v: 2 v: 300`, `{"v":[1,2,300]}`},
		{"LBQ-73 packed sint", one(packed(field("v", "sint32"))), many(c(schema.Int64)), `v: -1 v: 2`, `{"v":[-1,2]}`},
		{"LBQ-73 packed fixed", one(packed(field("v", "fixed32"))), many(c(schema.Int64)), `v: 1 v: 2`, `{"v":[1,2]}`},
		{"LBQ-73 packed bool", one(packed(field("v", "bool"))), many(c(schema.Bool)), `v: true v: false`, `{"v":[true,false]}`},
		{"LBQ-73 fixed, signed, of 32 bits", one(packed(field("v", "sfixed32"))), many(c(schema.Int64)), `v: -2147483648 v: 2`, `{"v":[-2147483648,2]}`},
		{"LBQ-73 fixed, signed, of 64 bits", one(repeated(field("v", "sfixed64"))), many(c(schema.Int64)), `v: -3 v: 4`, `{"v":[-3,4]}`},
		{"LBQ-73 sint of 64 bits", one(packed(field("v", "sint64"))), many(c(schema.Int64)), `v: -4294967297 v: 1`, `{"v":[-4294967297,1]}`},
		{"packed double", one(packed(field("v", "double"))), many(c(schema.Float64)), `v: 1.5 v: -2`, `{"v":[1.5,-2]}`},
		{"repeated struct", one(repeated(of("v", "message", "S")), messageOf("S", repeated(field("a", "int64")))), many(structOf("v", many(col("a", schema.Int64)))),
			"v { a: 1 a: 2 } v { } v { a: 3 }", `{"v":[{"a":[1,2]},{"a":[]},{"a":[3]}]}`},

		{"LBQ-89 range", one(of("v", "message", "R"), messageOf("R", field("start", "int32"), field("end", "int32"))), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date},
			"v { start: 0 end: 300 }", `{"v":{"end":"1970-10-28","start":"1970-01-01"}}`},
		{"LBQ-89 range unbounded", one(of("v", "message", "R"), messageOf("R", field("start", "string"), field("end", "string"))), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.DateTime},
			`v { start: "2024-01-01" }`, `{"v":{"end":null,"start":"2024-01-01T00:00:00"}}`},
		{"range backwards", one(of("v", "message", "R"), messageOf("R", field("start", "int64"), field("end", "int64"))), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Timestamp},
			`v { start: 5 end: 5 }`, "!Range start must be less than range end on field v."},
		{"group", one(of("v", "group", "V"), messageOf("V", field("a", "int64"))), structOf("v", col("a", schema.Int64)), "V { a: 1 }", `{"v":{"a":1}}`},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			p := compile(t, k.d, tableOf(k.c))
			encoded := rows(t, k.d, k.row)
			if message, bad := strings.CutPrefix(k.want, "!"); bad {
				got := p.Decode(encoded, Request{})
				if len(got) != 1 || got[0].Index != 0 || got[0].Message != message {
					t.Errorf("got %+v, want %q", got, message)
				}
				return
			}
			if got := decoded(t, p, Request{}, encoded); got != k.want {
				t.Errorf("got %s, want %s", got, k.want)
			}
			// The plan is as good for the next batch, and a batch of rows with and without a value.
			again := append(encoded, rows(t, k.d, "", k.row)...)
			absent := strings.TrimSpace(decoded(t, compile(t, k.d, tableOf(k.c)), Request{}, rows(t, k.d, "")))
			if got, want := decoded(t, p, Request{}, again), k.want+"\n"+absent+"\n"+k.want; got != want {
				t.Errorf("again: got\n%s, want\n%s", got, want)
			}
		})
	}
	t.Run("LBQ-75 infinities and NaN", func(t *testing.T) {
		p := compile(t, v("double"), tableOf(c(schema.Float64)))
		if bad := p.Decode(rows(t, v("double"), "v: inf", "v: -inf", "v: nan"), Request{}); bad != nil {
			t.Fatal(bad)
		}
		values := p.Take().Column(0)
		if got := []string{values.ValueStr(0), values.ValueStr(1), values.ValueStr(2)}; fmt.Sprint(got) != "[+Inf -Inf NaN]" {
			t.Errorf("got %v", got)
		}
	})
}

// TestMismatch is the other half of the table: fields that cannot feed their columns.
func TestMismatch(t *testing.T) {
	sub := messageOf("S", field("a", "int64"))
	cases := map[string]struct {
		f    *descriptorpb.FieldDescriptorProto
		c    *schema.Field
		want string // proto type, column type
	}{
		"LBQ-74 uint64 to INT64": {field("v", "uint64"), col("v", schema.Int64), "uint64, BigQuery field type INTEGER"},
		"fixed64 to INT64":       {field("v", "fixed64"), col("v", schema.Int64), "fixed64, BigQuery field type INTEGER"},
		"bool to INT64":          {field("v", "bool"), col("v", schema.Int64), "bool, BigQuery field type INTEGER"},
		"string to INT64":        {field("v", "string"), col("v", schema.Int64), "string, BigQuery field type INTEGER"},
		"string to FLOAT64":      {field("v", "string"), col("v", schema.Float64), "string, BigQuery field type FLOAT"},
		"double to BOOL":         {field("v", "double"), col("v", schema.Bool), "double, BigQuery field type BOOLEAN"},
		"bytes to STRING":        {field("v", "bytes"), col("v", schema.String), "bytes, BigQuery field type STRING"},
		"int64 to BYTES":         {field("v", "int64"), col("v", schema.Bytes), "int64, BigQuery field type BYTES"},
		"bool to NUMERIC":        {field("v", "bool"), col("v", schema.Numeric), "bool, BigQuery field type NUMERIC"},
		"uint32 to DATE":         {field("v", "uint32"), col("v", schema.Date), "uint32, BigQuery field type DATE"},
		"int32 to TIME":          {field("v", "int32"), col("v", schema.Time), "int32, BigQuery field type TIME"},
		"double to TIMESTAMP":    {field("v", "double"), col("v", schema.Timestamp), "double, BigQuery field type TIMESTAMP"},
		"bytes to JSON":          {field("v", "bytes"), col("v", schema.JSON), "bytes, BigQuery field type JSON"},
		"int64 to GEOGRAPHY":     {field("v", "int64"), col("v", schema.Geography), "int64, BigQuery field type GEOGRAPHY"},
		"int64 to INTERVAL":      {field("v", "int64"), col("v", schema.Interval), "int64, BigQuery field type INTERVAL"},
		"string to RANGE":        {field("v", "string"), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date}, "string, BigQuery field type RANGE"},
		"string to STRUCT":       {field("v", "string"), structOf("v", col("a", schema.Int64)), "string, BigQuery field type RECORD"},
		"message to INT64":       {of("v", "message", "S"), col("v", schema.Int64), "message Row.S, BigQuery field type INTEGER"},
		"repeated to NULLABLE":   {repeated(field("v", "int64")), col("v", schema.Int64), "repeated int64, BigQuery field type NULLABLE INTEGER"},
		"singular to REPEATED":   {field("v", "int64"), many(col("v", schema.Int64)), "singular int64, BigQuery field type REPEATED INTEGER"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(one(c.f, sub), "tab", tableOf(c.c))
			want := "The proto field mismatched with BigQuery field at tab.v, the proto field type " + c.want
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
