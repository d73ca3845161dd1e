package rest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/civil"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func (f *fixture) ref(table string) store.TableRef {
	return store.TableRef{Project: "p", Dataset: "d", Table: table}
}

// everyType has a column of each type.
var everyType = &schema.Schema{Fields: []*schema.Field{
	{Name: "i", Type: schema.Int64}, {Name: "f", Type: schema.Float64}, {Name: "b", Type: schema.Bool},
	{Name: "s", Type: schema.String}, {Name: "y", Type: schema.Bytes}, {Name: "n", Type: schema.Numeric},
	{Name: "bn", Type: schema.BigNumeric}, {Name: "d", Type: schema.Date}, {Name: "t", Type: schema.Time},
	{Name: "dt", Type: schema.DateTime}, {Name: "ts", Type: schema.Timestamp}, {Name: "iv", Type: schema.Interval},
	{Name: "g", Type: schema.Geography}, {Name: "j", Type: schema.JSON}, {Name: "r", Type: schema.Range, RangeElement: schema.Date},
	{Name: "st", Type: schema.Struct, Fields: []*schema.Field{{Name: "x", Type: schema.Int64}, {Name: "l", Type: schema.String, Mode: schema.Repeated}}},
	{Name: "a", Type: schema.Int64, Mode: schema.Repeated},
	{Name: "p", Type: schema.Timestamp, TimestampPrecision: 12},
}}

const everyRow = `[{"i": -9223372036854775808, "f": 1.5, "b": true, "s": "a\"\\\n\u0001é", "y": "AP8=", "n": "123.400000000",
	"bn": "0.00000000000000000000000000000000000001", "d": "1970-10-28", "t": "13:14:15.016000", "dt": "2020-10-01T12:00:00",
	"ts": "2014-08-19T12:41:35.220000Z", "iv": {"months": 14, "days": -3, "micros": 3723500000}, "g": "POINT(1 2)", "j": "{\"a\":1}",
	"r": {"start": "2020-01-01", "end": null}, "st": {"x": null, "l": ["p", "q"]}, "a": [1, 2], "p": "2014-08-19T12:41:35.220000000001Z"},
	{}]`

func TestListRows(t *testing.T) {
	f := setup(t)
	f.dataset()
	if _, err := f.store.CreateTable(f.ref("t"), &schema.Definition{Schema: everyType}); err != nil {
		t.Fatal(err)
	}
	f.write(f.ref("t"), everyRow)
	cells := func(row any) map[string]string {
		out := map[string]string{}
		for i, cell := range row.(map[string]any)["f"].([]any) {
			out[everyType.Fields[i].Name] = compact(t, cell.(map[string]any)["v"])
		}
		return out
	}
	got := f.do("GET", tablesPath+"/t/data", "").ok()
	if got.at("totalRows") != "2" || got.at("pageToken") != nil || got.at("kind") != "bigquery#tableDataList" {
		t.Errorf("got %s", got.raw)
	}
	rows := got.at("rows").([]any)
	first := cells(rows[0])
	for name, want := range map[string]string{
		"i": `"-9223372036854775808"`, "f": `"1.5"`, "b": `"true"`, "s": "\"a\\\"\\\\\\n\\u0001é\"", "y": `"AP8="`, "n": `"123.4"`,
		"bn": `"0.00000000000000000000000000000000000001"`, "d": `"1970-10-28"`, "t": `"13:14:15.016000"`, "dt": `"2020-10-01T12:00:00"`,
		"ts": `"1408452095.220000"`, "iv": `"1-2 -3 1:2:3.5"`, "g": `"POINT(1 2)"`, "j": `"{\"a\":1}"`, "r": `"[2020-01-01, UNBOUNDED)"`,
		"st": `{"f":[{"v":null},{"v":[{"v":"p"},{"v":"q"}]}]}`, "a": `[{"v":"1"},{"v":"2"}]`, "p": `"1408452095.220000"`,
	} {
		if first[name] != want {
			t.Errorf("%s: got %s, want %s", name, first[name], want)
		}
	}
	for name, v := range cells(rows[1]) {
		if want := map[bool]string{true: "[]", false: "null"}[name == "a"]; v != want {
			t.Errorf("NULL %s: got %s, want %s", name, v, want)
		}
	}
	for format, want := range map[string][2]string{
		"useInt64Timestamp=true":               {`"1408452095220000"`, `"1408452095220000"`},
		"timestampOutputFormat=ISO8601_STRING": {`"2014-08-19T12:41:35.220000Z"`, `"2014-08-19T12:41:35.220000000001Z"`},
	} {
		got := cells(f.do("GET", tablesPath+"/t/data?maxResults=1&formatOptions."+format, "").ok().at("rows").([]any)[0])
		if got["ts"] != want[0] || got["p"] != want[1] {
			t.Errorf("%s: got %s and %s, want %v", format, got["ts"], got["p"], want)
		}
	}
}

func TestListRowsPages(t *testing.T) {
	f := setup(t)
	f.dataset()
	if _, err := f.store.CreateTable(f.ref("t"), &schema.Definition{Schema: &schema.Schema{Fields: []*schema.Field{{Name: "n", Type: schema.Int64}, {Name: "s", Type: schema.String}}}}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		f.write(f.ref("t"), fmt.Sprintf(`[{"n": %d}, {"n": %d}, {"n": %d}]`, 3*i, 3*i+1, 3*i+2))
	}
	read := func(a answer) (out []string) {
		rows, _ := a.at("rows").([]any)
		for _, r := range rows {
			out = append(out, r.(map[string]any)["f"].([]any)[0].(map[string]any)["v"].(string))
		}
		return out
	}
	t.Run("LBQ-163 pages walk to the end of one snapshot", func(t *testing.T) {
		var all []string
		token := ""
		for page := range 10 {
			got := f.do("GET", tablesPath+"/t/data?maxResults=7&pageToken="+token, "").ok()
			all = append(all, read(got)...)
			if got.at("totalRows") != "30" {
				t.Errorf("totalRows %v on page %d", got.at("totalRows"), page)
			}
			f.clock.Advance(time.Second)
			f.write(f.ref("t"), `[{"n": 99}]`)
			if token, _ = got.at("pageToken").(string); token == "" {
				break
			}
		}
		if len(all) != 30 || all[0] != "0" || all[29] != "29" {
			t.Errorf("read %v", all)
		}
	})
	t.Run("start index, selected fields, no rows", func(t *testing.T) {
		if got := read(f.do("GET", tablesPath+"/t/data?startIndex=28&maxResults=1&selectedFields=N", "").ok()); len(got) != 1 || got[0] != "28" {
			t.Errorf("got %v", got)
		}
		got := f.do("GET", tablesPath+"/t/data?maxResults=0", "").ok()
		if got.at("rows") != nil || got.at("totalRows") == "0" {
			t.Errorf("got %s", got.raw)
		}
		if got := f.do("GET", tablesPath+"/t/data?startIndex=1000", "").ok(); got.at("rows") != nil || got.at("pageToken") != nil {
			t.Errorf("got %s", got.raw)
		}
	})
	t.Run("faults", func(t *testing.T) {
		f.do("GET", tablesPath+"/t/data?pageToken=zz!", "").refused(400, "invalid", "Invalid value 'zz!' for parameter pageToken: expected a token of an earlier answer")
		f.do("GET", tablesPath+"/t/data?maxResults=-1", "").refused(400, "invalid", "Invalid value '-1' for parameter maxResults: expected a number from 0")
		f.do("GET", tablesPath+"/t/data?selectedFields=x", "").refused(400, "invalid", "The following selected fields do not exist in the table schema: x")
	})
	t.Run("a page holds at most ten million bytes", func(t *testing.T) {
		f.write(f.ref("t"), `[{"s": "`+strings.Repeat("x", 6_000_000)+`"}, {"s": "`+strings.Repeat("y", 6_000_000)+`"}, {"s": "z"}]`)
		total := f.do("GET", tablesPath+"/t/data?maxResults=0", "").ok().at("totalRows").(string)
		var n int
		fmt.Sscan(total, &n)
		got := f.do("GET", fmt.Sprintf(tablesPath+"/t/data?startIndex=%d", n-3), "").ok()
		if rows := got.at("rows").([]any); len(rows) != 2 || got.at("pageToken") == nil {
			t.Errorf("%d rows on the page, token %v", len(rows), got.at("pageToken"))
		}
	})
}

func TestOfficialClientReadsRows(t *testing.T) {
	f := setup(t)
	f.dataset()
	if _, err := f.store.CreateTable(f.ref("t"), &schema.Definition{Schema: everyType}); err != nil {
		t.Fatal(err)
	}
	f.write(f.ref("t"), everyRow)
	it := f.official().Dataset("d").Table("t").Read(t.Context())
	row := map[string]bigquery.Value{}
	if err := it.Next(&row); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"i": int64(-9223372036854775808), "f": 1.5, "b": true, "s": "a\"\\\n\u0001é", "d": civil.Date{Year: 1970, Month: 10, Day: 28},
		"g": "POINT(1 2)", "j": `{"a":1}`, "ts": time.Date(2014, 8, 19, 12, 41, 35, 220_000_000, time.UTC),
		"dt": civil.DateTime{Date: civil.Date{Year: 2020, Month: 10, Day: 1}, Time: civil.Time{Hour: 12}},
	} {
		if got := row[name]; got != want {
			t.Errorf("%s: got %v (%T), want %v", name, got, got, want)
		}
	}
	if got := row["iv"].(*bigquery.IntervalValue).String(); got != "1-2 -3 1:2:3.5" {
		t.Errorf("iv: got %s", got)
	}
	if err := it.Next(&row); err != nil || row["i"] != nil {
		t.Errorf("second row: %v %v", row["i"], err)
	}
	if err := it.Next(&row); !errors.Is(err, iterator.Done) {
		t.Errorf("third row: %v", err)
	}
}
