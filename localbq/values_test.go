package localbq_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq"
)

// listed is a table's rows as tabledata.list answers them: of each row its values as JSON.
func listed(t testing.TB, bq *localbq.Instance, table string) string {
	t.Helper()
	c, err := bqapi.NewService(t.Context(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	dataset, id, _ := strings.Cut(table, ".")
	page, err := c.Tabledata.List(localbq.DefaultProject, dataset, id).Do()
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Rows) == 0 {
		return "[]"
	}
	var out []string
	for _, r := range page.Rows {
		values := make([]any, len(r.F))
		for i, cell := range r.F {
			values[i] = cell.V
		}
		b, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return strings.Join(out, " ")
}

// TestValues writes over gRPC and reads over REST. The rules have their tables in internal/decode, value by value.
func TestValues(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)
	sized := func(typ string, precision, scale int64) *bqapi.TableFieldSchema {
		return &bqapi.TableFieldSchema{Name: "v", Type: typ, Precision: precision, Scale: scale}
	}
	v := func(typ string) *bqapi.TableFieldSchema { return column("v", typ) }
	many := func(typ string) *bqapi.TableFieldSchema { return column("v", typ, "REPEATED") }
	for i, k := range []struct {
		name   string
		column *bqapi.TableFieldSchema
		field  string
		row    string
		want   string // the row of tabledata.list; what the row error says behind "!"
	}{
		{"LBQ-62 unset", v("INTEGER"), "v int64", "", `[null]`},
		{"LBQ-73 fixed-width", many("INTEGER"), "v repeated sfixed64", "v: 1 v: -2 v: 3", `[[{"v":"1"},{"v":"-2"},{"v":"3"}]]`},
		{"LBQ-73 sint", many("INTEGER"), "v repeated sint64", "v: 1 v: -2", `[[{"v":"1"},{"v":"-2"}]]`},
		{"LBQ-73 bool", many("BOOLEAN"), "v repeated bool", "v: true v: false", `[[{"v":"true"},{"v":"false"}]]`},
		{"LBQ-75 infinity", v("FLOAT"), "v double", "v: inf", `["Infinity"]`},
		{"LBQ-76 NUMERIC bytes", v("NUMERIC"), "v bytes", `v: "\000\222\066\273\034"`, `["123.4"]`},
		{"LBQ-76 NUMERIC bytes below zero", v("NUMERIC"), "v bytes", `v: "\000\200\005\065\214\006\340"`, `["-9000000"]`},
		{"LBQ-77 the least significant byte first", v("NUMERIC"), "v bytes", `v: "\000\312\232\073"`, `["1"]`},
		{"LBQ-78 NUMERIC(10, 2) rounds", sized("NUMERIC", 10, 2), "v string", `v: "1.245"`, `["1.25"]`},
		{"LBQ-79 BIGNUMERIC of 30 and 10 digits", v("BIGNUMERIC"), "v string", `v: "123456789012345678901234567890.1234567891"`, `["123456789012345678901234567890.1234567891"]`},
		{"LBQ-80 TIME", v("TIME"), "v int64", "v: 102806536767", `["23:59:59.999999"]`},
		{"LBQ-80 TIME early", v("TIME"), "v int64", fmt.Sprint("v: ", 1<<32|2<<26|3<<20|4), `["01:02:03.000004"]`},
		{"LBQ-81 DATETIME", v("DATETIME"), "v int64", fmt.Sprint("v: ", 2020<<46|10<<42|1<<37|12<<32), `["2020-10-01T12:00:00"]`},
		{"LBQ-82 DATE", v("DATE"), "v int32", "v: 300", `["1970-10-28"]`},
		{"LBQ-85 no such day", v("DATETIME"), "v string", `v: "2026-02-30"`, `!Invalid datetime string "2026-02-30" on field v.`},
		{"LBQ-86 a JSON null is not NULL", v("JSON"), "v string", `v: "null"`, `["null"]`},
		{"LBQ-86 no JSON", v("JSON"), "v string", `v: ""`, "!on field v."},
		{"LBQ-87 REPEATED JSON", many("JSON"), "v repeated string", `v: "{\"a\":1}" v: "2"`, `[[{"v":"{\"a\":1}"},{"v":"2"}]]`},
		{"LBQ-88 WKT", v("GEOGRAPHY"), "v string", `v: "POINT(1 2)"`, `["POINT(1 2)"]`},
		{"LBQ-88 GeoJSON", v("GEOGRAPHY"), "v string", `v: "{\"type\":\"Point\",\"coordinates\":[1,2]}"`, `["POINT(1 2)"]`},
		{"LBQ-88 no geography", v("GEOGRAPHY"), "v string", `v: "POINT"`, "!on field v."},
	} {
		t.Run(k.name, func(t *testing.T) {
			table := fmt.Sprint("d.t", i)
			makeTable(t, bq, table, k.column)
			answer := connect(t, c).ask(describe(t, k.field).first(t, stream(table), k.row))
			if message, bad := strings.CutPrefix(k.want, "!"); bad {
				if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 0 || !strings.HasSuffix(e[0].GetMessage(), message) {
					t.Errorf("answered %v", answer)
				}
				k.want = "[]"
			} else if answer.GetError() != nil {
				t.Errorf("refused: %v %v", answer.GetError(), answer.GetRowErrors())
			}
			if got := listed(t, bq, table); got != k.want {
				t.Errorf("got %s, want %s", got, k.want)
			}
		})
	}
}
