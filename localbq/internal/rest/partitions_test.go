package rest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// partitioned makes a table d.id of columns n and day with more in its resource.
func (x *transfers) partitioned(id, more string) {
	x.Helper()
	x.do("POST", "/projects/p/datasets/d/tables", fmt.Sprintf(`{"tableReference":{"tableId":%q},"schema":%s,%s}`, id, schemaOf("n:INTEGER", "day:DATE"), more)).ok()
}

const (
	byDay       = `"timePartitioning":{"type":"DAY","field":"day"}`
	byIngestion = `"timePartitioning":{"type":"DAY"}`
)

// listed are the values of column n of the rows that tabledata.list gives of a table or a partition.
func (x *transfers) listed(id string) string {
	x.Helper()
	a := x.do("GET", "/projects/p/datasets/d/tables/"+id+"/data?selectedFields=n", "").ok()
	var out []string
	rows, _ := a.body["rows"].([]any)
	for _, r := range rows {
		out = append(out, fmt.Sprint(r.(map[string]any)["f"].([]any)[0].(map[string]any)["v"]))
	}
	if got := fmt.Sprint(a.body["totalRows"]); got != fmt.Sprint(len(out)) {
		x.Errorf("%s: %d rows and totalRows %s", id, len(out), got)
	}
	return strings.Join(out, " ")
}

func (x *transfers) wantListed(id, want string) {
	x.Helper()
	if got := x.listed(id); got != want {
		x.Errorf("%s holds %q, want %q", id, got, want)
	}
}

func TestPartitionsOfLoads(t *testing.T) {
	x := setupTransfers(t)
	x.puts("second", `{"n":1,"day":"2026-01-02"}`, `{"n":2,"day":"2026-01-02"}`)
	x.puts("third", `{"n":3,"day":"2026-01-03"}`)
	x.puts("null", `{"n":4}`)
	write := func(d string) string { return `"writeDisposition":"WRITE_` + d + `"` }
	t.Run("a column of days", func(t *testing.T) {
		x := x.in(t)
		x.partitioned("t", byDay)
		x.done("a1", loading("t$20260102", ndjson, "gs://b-1/second"))
		x.done("a2", loading("t", ndjson, "gs://b-1/third"))
		x.done("a3", loading("t$__NULL__", ndjson, "gs://b-1/null"))
		x.fails("a4", loading("t$20260102", ndjson, "gs://b-1/third"), "invalid: Some rows belong to different partitions rather than destination partition 20260102")
		x.fails("a5", loading("t$20260102", ndjson, "gs://b-1/null"), "Some rows belong to different partitions")
		x.wantListed("t", "1 2 3 4")
		x.wantListed("t$20260102", "1 2")
		x.wantListed("t$20260103", "3")
		x.wantListed("t$20260104", "")
		x.wantListed("t$__NULL__", "4")

		x.fails("b1", loading("t$20260102", ndjson, "gs://b-1/second", write("EMPTY")), "duplicate: Already Exists: Table p:d.t$20260102")
		x.fails("b2", loading("t$20260102", ndjson, "gs://b-1/third", write("TRUNCATE")), "Some rows belong to different partitions")
		x.wantListed("t", "1 2 3 4")
		x.done("b3", loading("t$20260103", ndjson, "gs://b-1/third", write("TRUNCATE")))
		x.wantListed("t", "1 2 4 3")
		x.done("b4", loading("t$20260103", ndjson, "gs://b-1/third", write("TRUNCATE_DATA")))
		x.wantListed("t", "1 2 4 3")
		x.puts("wide", `{"n":5,"day":"2026-01-04","more":"x"}`)
		x.done("b5", loading("t$20260104", ndjson, "gs://b-1/wide", write("EMPTY"), `"ignoreUnknownValues":true`))
		x.puts("none", ``)
		x.done("b6", loading("t$20260102", ndjson, "gs://b-1/none", write("TRUNCATE")))
		x.wantListed("t", "4 3 5")

		wide := `"schema":` + schemaOf("n:INTEGER", "day:DATE", "more:STRING")
		x.done("c1", loading("t$20260104", ndjson, "gs://b-1/wide", write("TRUNCATE"), wide, `"schemaUpdateOptions":["ALLOW_FIELD_ADDITION"]`))
		if got := x.columns("t"); !strings.HasSuffix(got, "more:STRING:NULLABLE") {
			t.Errorf("the columns are %s", got)
		}
		x.wantListed("t", "4 3 5")
		x.insert("c2", loading("t", ndjson, "gs://b-1/wide", write("TRUNCATE"), wide, `"schemaUpdateOptions":["ALLOW_FIELD_ADDITION"]`)).refused(400, "invalid",
			"Schema update options should only be specified with WRITE_APPEND disposition, or with WRITE_TRUNCATE disposition on a table partition.")
		for _, id := range []string{"t$2026", "t$20260230", "t$x", "t$2026010203", "t$20260102$1", "t$'; DROP", "t$2026\n01"} {
			x.fails("d"+fmt.Sprintf("%x", id), loading(id, ndjson, "gs://b-1/second"), "Invalid partition decorator $")
		}
		for _, id := range []string{"t$", "$20260102", "$"} {
			x.insert("e", loading(id, ndjson, "gs://b-1/second")).refused(400, "invalid", fmt.Sprintf("Invalid table ID %q: expected the id of a partition behind the $", id))
		}
	})
	t.Run("ingestion time", func(t *testing.T) {
		x := x.in(t)
		x.partitioned("i", byIngestion)
		now := x.clock.Now().Format("20060102")
		x.done("i1", loading("i$19700101", ndjson, "gs://b-1/second"))
		x.done("i2", loading("i", ndjson, "gs://b-1/third"))
		x.done("i3", loading("i$20200229", ndjson, "gs://b-1/null"))
		x.wantListed("i$19700101", "1 2")
		x.wantListed("i$"+now, "3")
		x.wantListed("i$20200229", "4")
		x.done("i4", loading("i$19700101", ndjson, "gs://b-1/third", write("TRUNCATE")))
		x.wantListed("i$19700101", "3")
		x.wantListed("i", "3 4 3")
		x.fails("i5", loading("i$__UNPARTITIONED__", ndjson, "gs://b-1/third"), "Partition $__UNPARTITIONED__ cannot be written")
		x.fails("i6", loading("i$__NULL__", ndjson, "gs://b-1/third"), "Invalid partition decorator")
	})
	t.Run("hours, months, years and ranges", func(t *testing.T) {
		x := x.in(t)
		for unit, id := range map[string]string{"HOUR": "2026010203", "MONTH": "202601", "YEAR": "2026"} {
			x.partitioned(unit, fmt.Sprintf(`"timePartitioning":{"type":%q}`, unit))
			x.done("u"+unit, loading(unit+"$"+id, ndjson, "gs://b-1/second"))
			x.wantListed(unit+"$"+id, "1 2")
			x.fails("v"+unit, loading(unit+"$20260102", ndjson, "gs://b-1/second"), "Invalid partition decorator")
		}
		x.partitioned("months", `"timePartitioning":{"type":"MONTH","field":"day"}`)
		x.done("m1", loading("months$202601", ndjson, "gs://b-1/third"))
		x.fails("m2", loading("months$202602", ndjson, "gs://b-1/third"), "Some rows belong to different partitions")
		x.partitioned("ranges", `"rangePartitioning":{"field":"n","range":{"start":"1","end":"3","interval":"2"}}`)
		x.done("r1", loading("ranges$1", ndjson, "gs://b-1/second"))
		x.fails("r2", loading("ranges$1", ndjson, "gs://b-1/third"), "Some rows belong to different partitions rather than destination partition 1")
		x.done("r3", loading("ranges$__UNPARTITIONED__", ndjson, "gs://b-1/third"))
		x.fails("r4", loading("ranges$2", ndjson, "gs://b-1/third"), "Invalid partition decorator $2")
		x.wantListed("ranges$1", "1 2")
		x.wantListed("ranges$__UNPARTITIONED__", "3")
	})
	t.Run("tables that are not there, or not partitioned", func(t *testing.T) {
		x := x.in(t)
		columns := `"schema":` + schemaOf("n:INTEGER", "day:DATE")
		x.done("n1", loading("made$20260102", ndjson, "gs://b-1/second", columns, byDay))
		x.wantListed("made$20260102", "1 2")
		x.fails("n2", loading("made2$20260102", ndjson, "gs://b-1/second", columns), "Cannot read partition information from a table that is not partitioned: p:d.made2$20260102")
		x.fails("n3", loading("made3$20260102", ndjson, "gs://b-1/third", columns, byDay), "Some rows belong to different partitions")
		x.do("GET", "/projects/p/datasets/d/tables/made3", "").refused(404, "notFound", "Not found: Table p:d.made3")
		x.table("bare", "n:INTEGER")
		x.fails("n4", loading("bare$20260102", ndjson, "gs://b-1/second"), "No such field: day.")
		x.do("GET", "/projects/p/datasets/d/tables/bare$20260102/data", "").refused(400, "invalid", "Cannot read partition information from a table that is not partitioned: p:d.bare$20260102")
	})
	t.Run("4,000 partitions of one job, and one more", func(t *testing.T) {
		x := x.in(t)
		var lines []string
		for n := range 4001 {
			lines = append(lines, fmt.Sprintf(`{"n":%d}`, n))
		}
		x.puts("many", lines...)
		x.puts("fewer", lines[1:]...)
		x.partitioned("many", `"rangePartitioning":{"field":"n","range":{"start":"0","end":"10000","interval":"1"}}`)
		x.fails("t1", loading("many", ndjson, "gs://b-1/many"), "Too many partitions produced by query, allowed 4000, query produces at least 4001 partitions")
		x.done("t2", loading("many", ndjson, "gs://b-1/fewer"))
	})
}

func TestPartitionsOfCopies(t *testing.T) {
	x := setupTransfers(t)
	x.puts("second", `{"n":1,"day":"2026-01-02"}`, `{"n":2,"day":"2026-01-02"}`)
	x.puts("third", `{"n":3,"day":"2026-01-03"}`)
	for _, id := range []string{"a", "b"} {
		x.partitioned(id, byDay)
		x.done("l2"+id, loading(id, ndjson, "gs://b-1/second"))
		x.done("l3"+id, loading(id, ndjson, "gs://b-1/third"))
	}
	x.done("c1", copying("b$20260102", []string{"a$20260102"}, `"writeDisposition":"WRITE_TRUNCATE"`))
	x.wantListed("b", "3 1 2")
	x.fails("c2", copying("b$20260102", []string{"a"}, `"writeDisposition":"WRITE_APPEND"`), "Some rows belong to different partitions")
	x.fails("c3", copying("b$20260102", []string{"a$20260102"}), "duplicate: Already Exists: Table p:d.b$20260102")
	x.done("c4", copying("c", []string{"a$20260103", "b$20260102"}))
	x.wantListed("c", "3 1 2")
	x.wantListed("c$20260103", "3")
	x.insert("c5", copying("c@1", []string{"a"})).refused(400, "invalid", `Invalid table ID "c@1": a snapshot decorator cannot name a table to write`)

	t.Run("rows stay in their partitions of ingestion time", func(t *testing.T) {
		x := x.in(t)
		x.partitioned("i", byIngestion)
		x.done("i1", loading("i$20200101", ndjson, "gs://b-1/second"))
		x.done("i2", loading("i$20200102", ndjson, "gs://b-1/third"))
		x.clock.Advance(24 * time.Hour)
		x.done("i3", copying("j", []string{"i"}))
		x.wantListed("j$20200101", "1 2")
		x.wantListed("j$20200102", "3")
		x.done("i4", copying("j$20200103", []string{"i"}))
		x.wantListed("j$20200103", "1 2 3")
		x.done("i5", copying("k", []string{"i$20200102"}))
		x.wantListed("k$20200102", "3")
		x.table("bare", "n:INTEGER", "day:DATE")
		x.done("i6", copying("bare", []string{"i", "a"}, `"writeDisposition":"WRITE_APPEND"`))
		x.wantListed("bare", "1 2 3 1 2 3")
		x.done("i7", copying("k", []string{"bare"}, `"writeDisposition":"WRITE_APPEND"`))
		x.wantListed("k$"+x.clock.Now().Format("20060102"), "1 2 3 1 2 3")
		x.fails("i8", copying("k", []string{"a"}, `"writeDisposition":"WRITE_APPEND"`), "Incompatible table partitioning specification")
	})
	t.Run("a partition as it was, and extracted", func(t *testing.T) {
		x := x.in(t)
		x.clock.Advance(time.Second)
		before := x.clock.Now().UnixMilli()
		x.clock.Advance(time.Second)
		x.done("h1", loading("a$20260103", ndjson, "gs://b-1/third"))
		x.wantListed("a$20260103", "3 3")
		x.done("h2", copying("old", []string{fmt.Sprintf("a$20260103@%d", before)}))
		x.wantListed("old", "3")
		x.done("h3", `"extract":{"sourceTable":{"projectId":"p","datasetId":"d","tableId":"a$20260103"},"destinationUris":["gs://b-1/out"],"destinationFormat":"NEWLINE_DELIMITED_JSON"}`)
		x.done("h4", loading("back", ndjson, "gs://b-1/out", `"schema":`+schemaOf("n:INTEGER", "day:DATE")))
		x.wantListed("back", "3 3")
	})
}

func TestPartitionsOfTables(t *testing.T) {
	x := setupTransfers(t)
	x.partitioned("i", byIngestion)
	x.partitioned("day", byDay)
	x.partitioned("hours", `"timePartitioning":{"type":"HOUR"}`)
	rows := func(day string, n ...int) string {
		var out []string
		for _, n := range n {
			out = append(out, fmt.Sprintf(`{"json":{"n":%d,"day":%q}}`, n, day))
		}
		return `{"rows":[` + strings.Join(out, ",") + `]}`
	}
	const tables = "/projects/p/datasets/d/tables/"
	now := x.clock.Now()
	yesterday := now.AddDate(0, 0, -1)
	id, date := yesterday.Format("20060102"), yesterday.Format(time.DateOnly)
	x.do("POST", tables+"i$"+id+"/insertAll", rows(date, 1, 2)).ok()
	x.do("POST", tables+"i/insertAll", rows(date, 3)).ok()
	x.do("POST", tables+"day$"+id+"/insertAll", rows(date, 1, 2)).ok()
	x.do("POST", tables+"day$"+id+"/insertAll", rows("2020-01-01", 1)).refused(400, "invalid", "Some rows belong to different partitions rather than destination partition "+id)
	x.wantListed("i$"+id, "1 2")
	x.wantListed("i$"+now.Format("20060102"), "3")
	x.wantListed("day$"+id, "1 2")
	for _, far := range []string{"i$" + now.AddDate(0, 0, -32).Format("20060102"), "i$" + now.AddDate(0, 0, 17).Format("20060102"), "hours$" + now.Format("2006010215")} {
		_, partition, _ := strings.Cut(far, "$")
		x.do("POST", tables+far+"/insertAll", rows(date, 1)).refused(400, "invalid", "Rows can be streamed into partitions of a day only, from 31 days ago to 16 days ahead: $"+partition)
	}
	x.do("POST", tables+"i$"+id+"/insertAll", `{"templateSuffix":"x",`+rows(date, 1)[1:]).refused(400, "invalid", "Table decorators cannot be used with templateSuffix: p:d.i$"+id)
	x.do("POST", tables+"i$/insertAll", rows(date, 1)).refused(400, "invalid", `Invalid table ID "i$": expected the id of a partition behind the $`)

	a := x.do("GET", tables+"i$"+id, "").ok()
	if a.body["id"] != "p:d.i$"+id || a.body["numRows"] != "2" || a.at("tableReference", "tableId") != "i$"+id {
		t.Errorf("the partition is %s", a.raw)
	}
	if got := x.do("GET", tables+"i", "").ok().body["numRows"]; got != "3" {
		t.Errorf("the table has %v rows, want 3", got)
	}
	x.do("DELETE", tables+"i$"+id, "")
	x.wantListed("i", "3")
	x.do("GET", tables+"i", "").ok()
	if a := x.do("POST", "/projects/p/datasets/d/tables", `{"tableReference":{"tableId":"x$20260101"}}`); a.code != 400 {
		t.Errorf("a table with a decorator is made: %s", a.raw)
	}
}
