package rest

import (
	"fmt"
	"strings"
	"testing"
)

func copying(to string, from []string, more ...string) string {
	var sources []string
	for _, f := range from {
		sources = append(sources, fmt.Sprintf(`{"projectId":"p","datasetId":"d","tableId":%q}`, f))
	}
	fields := append([]string{`"sourceTables":[` + strings.Join(sources, ",") + `]`, fmt.Sprintf(`"destinationTable":{"projectId":"p","datasetId":"d","tableId":%q}`, to)}, more...)
	return `"copy":{` + strings.Join(fields, ",") + `}`
}

func TestCopy(t *testing.T) {
	x := setupTransfers(t)
	for i, id := range []string{"a", "b"} {
		x.do("POST", "/projects/p/datasets/d/tables", fmt.Sprintf(`{"tableReference":{"tableId":%q},"schema":%s,"clustering":{"fields":["n"]}}`, id, schemaOf("n:INTEGER", "s:STRING:REPEATED"))).ok()
		x.puts(id, fmt.Sprintf(`{"n":%d,"s":["x"]}`, i))
		x.done("load"+id, loading(id, ndjson, "gs://b-1/"+id))
	}
	job := x.done("c1", copying("t", []string{"a", "b"}))
	x.wantRows("t", `{"n":0,"s":["x"]}`, `{"n":1,"s":["x"]}`)
	if got := job["statistics"].(map[string]any)["copy"].(map[string]any)["copiedRows"]; got != "2" {
		t.Errorf("copiedRows is %v, want 2", got)
	}
	if c := x.do("GET", "/projects/p/datasets/d/tables/t", "").ok().body["clustering"]; c == nil {
		t.Error("the copy is not clustered as its first source is")
	}
	x.fails("c2", copying("t", []string{"a"}), "duplicate: Already Exists: Table p:d.t")
	x.done("c3", copying("t", []string{"a"}, `"writeDisposition":"WRITE_APPEND"`))
	x.wantRows("t", `{"n":0,"s":["x"]}`, `{"n":1,"s":["x"]}`, `{"n":0,"s":["x"]}`)
	x.done("c4", copying("t", []string{"b"}, `"writeDisposition":"WRITE_TRUNCATE"`))
	x.wantRows("t", `{"n":1,"s":["x"]}`)
	x.done("c5", copying("t", []string{"t", "t"}, `"writeDisposition":"WRITE_APPEND"`))
	x.wantRows("t", `{"n":1,"s":["x"]}`, `{"n":1,"s":["x"]}`, `{"n":1,"s":["x"]}`)
	x.table("other", "n:STRING")
	x.fails("c6", copying("t", []string{"other"}, `"writeDisposition":"WRITE_APPEND"`), "Provided Schema does not match Table p:d.t")
	x.fails("c7", copying("new", []string{"a", "other"}), "Provided Schema does not match Table p:d.other")
	x.fails("c8", copying("new", []string{"none"}), "notFound: Not found: Table p:d.none")
	x.fails("c9", copying("new", []string{"a"}, `"createDisposition":"CREATE_NEVER"`), "notFound: Not found: Table p:d.new")

	t.Run("a decorator reads history", func(t *testing.T) {
		before := x.clock.Now().UnixMilli() + 1000
		x.clock.Advance(2_000_000_000)
		x.done("more", loading("a", ndjson, "gs://b-1/a"))
		x.done("old", copying("old", []string{fmt.Sprintf("a@%d", before)}))
		x.wantRows("old", `{"n":0,"s":["x"]}`)
	})
	t.Run("LBQ-171 1,201 copy sources: 400", func(t *testing.T) {
		sources := make([]string, 1201)
		for i := range sources {
			sources[i] = "a"
		}
		x.insert("many", copying("t", sources)).refused(400, "invalid", "Too many source tables: 1201, at most 1200 are allowed")
	})
	t.Run("LBQ-172 copy with WRITE_TRUNCATE_DATA: 400", func(t *testing.T) {
		x.insert("data", copying("t", []string{"a"}, `"writeDisposition":"WRITE_TRUNCATE_DATA"`)).refused(400, "invalid", "Invalid value for writeDisposition: WRITE_TRUNCATE_DATA is not a valid value")
	})
	x.insert("clone", copying("t", []string{"a"}, `"operationType":"CLONE"`)).refused(501, "notImplemented", "local BigQuery does not implement copy jobs of operationType CLONE")
}
