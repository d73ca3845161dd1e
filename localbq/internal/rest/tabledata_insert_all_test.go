package rest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/civil"
)

const inserts = "/projects/p/datasets/d/tables/t/insertAll"

// wordsTable makes p:d.t with a required word and a count.
func (f *fixture) wordsTable() {
	f.Helper()
	f.dataset()
	f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference": {"tableId": "t"}, "schema": {"fields": [
		{"name": "word", "type": "STRING", "mode": "REQUIRED"}, {"name": "n", "type": "INTEGER", "defaultValueExpression": "7"}]}}`).ok()
}

func (f *fixture) rows(table string) string {
	f.Helper()
	return compact(f.T, f.do("GET", "/projects/p/datasets/d/tables/"+table+"/data", "").ok().at("rows"))
}

func TestInsertAll(t *testing.T) {
	t.Run("rows are visible at once", func(t *testing.T) {
		f := setup(t)
		f.wordsTable()
		a := f.do("POST", inserts, `{"rows": [{"json": {"WORD": "a", "n": 1}}, {"json": {"word": "b", "n": null}}, {"json": {"word": "c"}}]}`).ok()
		if a.raw != `{"kind":"bigquery#tableDataInsertAllResponse"}` {
			t.Error(a.raw)
		}
		if got := f.rows("t"); got != `[{"f":[{"v":"a"},{"v":"1"}]},{"f":[{"v":"b"},{"v":null}]},{"f":[{"v":"c"},{"v":"7"}]}]` {
			t.Error(got)
		}
	})
	t.Run("bad rows stop the others", func(t *testing.T) {
		f := setup(t)
		f.wordsTable()
		const rows = `"rows": [{"json": {"word": "a"}}, {"json": {"word": "b", "x": 1}}, {"json": {"n": 1}}, {"json": {"word": "c", "n": "many"}}]`
		a := f.do("POST", inserts, "{"+rows+"}").ok()
		want := `[{"errors":[{"debugInfo":"","location":"","message":"","reason":"stopped"}],"index":0},` +
			`{"errors":[{"debugInfo":"","location":"x","message":"no such field: x.","reason":"invalid"}],"index":1},` +
			`{"errors":[{"debugInfo":"","location":"","message":"Missing required field: word.","reason":"invalid"}],"index":2},` +
			`{"errors":[{"debugInfo":"","location":"n","message":"Cannot convert value to integer (bad value): many","reason":"invalid"}],"index":3}]`
		if got := compact(t, a.at("insertErrors")); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := f.rows("t"); got != "null" {
			t.Errorf("rows were written: %s", got)
		}
		a = f.do("POST", inserts, `{"skipInvalidRows": true, "ignoreUnknownValues": true, `+rows+"}").ok()
		if n := len(a.at("insertErrors").([]any)); n != 2 {
			t.Errorf("%d bad rows with skipInvalidRows: %s", n, a.raw)
		}
		if got := f.rows("t"); got != `[{"f":[{"v":"a"},{"v":"7"}]},{"f":[{"v":"b"},{"v":"7"}]}]` {
			t.Error(got)
		}
	})
	t.Run("an insertId is remembered for a minute", func(t *testing.T) {
		f := setup(t)
		f.wordsTable()
		send := func() {
			f.do("POST", inserts, `{"rows": [{"insertId": "1", "json": {"word": "a"}}, {"json": {"word": "b"}}]}`).ok()
		}
		send()
		f.clock.Advance(59 * time.Second)
		send()
		if got := strings.Count(f.rows("t"), `"a"`); got != 1 {
			t.Errorf("%d rows after 59 s", got)
		}
		f.clock.Advance(time.Second)
		send()
		if got := f.rows("t"); strings.Count(got, `"a"`) != 2 || strings.Count(got, `"b"`) != 3 {
			t.Errorf("after a minute: %s", got)
		}
	})
	t.Run("a template's suffix", func(t *testing.T) {
		f := setup(t)
		f.wordsTable()
		for range 2 {
			f.do("POST", inserts, `{"templateSuffix": "_2026", "rows": [{"json": {"word": "a"}}]}`).ok()
		}
		if got := f.rows("t_2026"); strings.Count(got, `"a"`) != 2 || f.rows("t") != "null" {
			t.Error(got)
		}
	})
	t.Run("requests that are refused", func(t *testing.T) {
		f := setup(t)
		f.wordsTable()
		f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference": {"tableId": "bare"}}`).ok()
		f.do("POST", inserts, `{}`).refused(400, "invalid", "No rows present in the request.")
		f.do("POST", "/projects/p/datasets/d/tables/bare/insertAll", `{"rows": [{"json": {}}]}`).refused(400, "invalid", "The destination table has no schema.")
		f.do("POST", "/projects/p/datasets/d/tables/none/insertAll", `{"rows": [{"json": {}}]}`).refused(404, "notFound", "Not found: Table p:d.none")
		f.do("POST", "/projects/p/datasets/d/tables/t$20260101/insertAll", `{"rows": [{"json": {}}]}`).refused(400, "invalid",
			"Cannot read partition information from a table that is not partitioned: p:d.t$20260101")
		f.do("POST", inserts, `{"rows": [{"json": {}}], "colour": 1}`).refused(501, "notImplemented",
			"local BigQuery does not implement tableDataInsertAllRequest.colour")
	})
}

func TestInsertAllTypes(t *testing.T) {
	f := setup(t)
	f.dataset()
	f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference": {"tableId": "t"}, "schema": {"fields": [
		{"name": "i", "type": "INTEGER"}, {"name": "f", "type": "FLOAT"}, {"name": "b", "type": "BOOLEAN"}, {"name": "s", "type": "STRING"},
		{"name": "y", "type": "BYTES"}, {"name": "num", "type": "NUMERIC"}, {"name": "ts", "type": "TIMESTAMP"}, {"name": "d", "type": "DATE"},
		{"name": "j", "type": "JSON"}, {"name": "g", "type": "GEOGRAPHY"}, {"name": "l", "type": "INTEGER", "mode": "REPEATED"},
		{"name": "r", "type": "RECORD", "fields": [{"name": "a", "type": "STRING"}, {"name": "m", "type": "RECORD", "mode": "REPEATED", "fields": [{"name": "z", "type": "TIME"}]}]},
		{"name": "span", "type": "RANGE", "rangeElementType": {"type": "DATE"}}]}}`).ok()
	insert := func(row string) string {
		a := f.do("POST", inserts, `{"rows": [{"json": `+row+`}]}`).ok()
		if a.at("insertErrors") == nil {
			return ""
		}
		e := a.at("insertErrors").([]any)[0].(map[string]any)["errors"].([]any)[0].(map[string]any)
		return e["location"].(string) + ": " + e["message"].(string)
	}
	if got := insert(`{"i": "12", "f": "NaN", "b": "True", "s": 1.50, "y": "aGk=", "num": 1.5, "ts": 1408452095.25, "d": "2026-01-02",
		"j": "{\"a\": 1}", "g": "POINT(1 2)", "l": [1, 2], "r": {"a": "x", "m": [{"z": "01:02:03"}, {}]}, "span": {"start": "2026-01-01", "end": null}}`); got != "" {
		t.Fatal(got)
	}
	want := `[{"f":[{"v":"12"},{"v":"NaN"},{"v":"true"},{"v":"1.50"},{"v":"aGk="},{"v":"1.5"},{"v":"1408452095.250000"},{"v":"2026-01-02"},` +
		`{"v":"{\"a\":1}"},{"v":"POINT(1 2)"},{"v":[{"v":"1"},{"v":"2"}]},{"v":{"f":[{"v":"x"},{"v":[{"v":{"f":[{"v":"01:02:03"}]}},{"v":{"f":[{"v":null}]}}]}]}},` +
		`{"v":"[2026-01-01, UNBOUNDED)"}]}]`
	if got := f.rows("t"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for row, want := range map[string]string{
		`{"l": [1, null]}`:    "l: Only optional fields can be set to NULL. Field: l; Value: NULL",
		`{"l": null}`:         "l: Only optional fields can be set to NULL. Field: l; Value: NULL",
		`{"i": [1]}`:          "i: Array specified for non-repeated field: i.",
		`{"i": {"a": 1}}`:     "i: This field: integer is not a record.",
		`{"r": {"a": {}}}`:    "r.a: This field: string is not a record.",
		`{"r": {"q": 1}}`:     "r.q: no such field: r.q.",
		`{"r": 1}`:            "r: This field: r is a record.",
		`{"b": "maybe"}`:      "b: Cannot convert value to boolean (bad value): maybe",
		`{"ts": 1e300}`:       "ts: Timestamp field value is out of range: 1e300",
		`{"i": 1, "I": 2}`:    "i: Field i is given twice.",
		`{"y": "%"}`:          "y: Could not decode base64 string to bytes.",
		`{"\u0000\"": 1}`:     "\u0000\": no such field: \u0000\".",
		`{"i": 1e99999}`:      "i: Cannot convert value to integer (bad value): 1e99999",
		`{"d": "2026-02-30"}`: "d: ",
		`{"span": {"start": "2026-01-02", "end": "2026-01-01"}}`: "span: Range start must be less than range end.",
	} {
		if got := insert(row); !strings.HasPrefix(got, want) || got == "" {
			t.Errorf("%s: got %q, want %q", row, got, want)
		}
	}
}

// The official client's Inserter retries, names rows by itself and reads row errors back.
func TestInsertAllOfficialClient(t *testing.T) {
	f := setup(t)
	f.wordsTable()
	type word struct {
		Word string `bigquery:"word"`
		N    int64  `bigquery:"n"`
	}
	in := f.official().Dataset("d").Table("t").Inserter()
	if err := in.Put(t.Context(), []*word{{"a", 1}, {"b", 2}}); err != nil {
		t.Fatal(err)
	}
	err := in.Put(t.Context(), &bigquery.ValuesSaver{
		Schema: bigquery.Schema{{Name: "word", Type: bigquery.DateFieldType}, {Name: "x", Type: bigquery.StringFieldType}},
		Row:    []bigquery.Value{civil.Date{Year: 2026, Month: 1, Day: 2}, "y"},
	})
	multi, ok := errors.AsType[bigquery.PutMultiError](err)
	if !ok || len(multi) != 1 || multi[0].RowIndex != 0 || !strings.Contains(multi.Error(), "no such field: x.") {
		t.Errorf("got %v", err)
	}
	if got := strings.Count(f.rows("t"), `{"f":`); got != 2 {
		t.Errorf("%d rows", got)
	}
}
