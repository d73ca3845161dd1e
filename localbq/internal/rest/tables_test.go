package rest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

const tablesPath = "/projects/p/datasets/d/tables"

func TestInsertTable(t *testing.T) {
	f := setup(t)
	f.dataset()
	made := f.do("POST", tablesPath, `{"tableReference": {"projectId": "p", "datasetId": "d", "tableId": "t"}, "description": "x",
		"schema": {"fields": [
			{"name": "id", "type": "INT64", "mode": "REQUIRED"}, {"name": "at", "type": "TIMESTAMP"},
			{"name": "r", "type": "STRUCT", "mode": "REPEATED", "fields": [{"name": "ok", "type": "BOOL"}, {"name": "f", "type": "FLOAT64"}]},
			{"name": "n", "type": "NUMERIC", "precision": "10", "scale": "2"}]},
		"timePartitioning": {"type": "DAY", "field": "at", "expirationMs": "86400000"}, "requirePartitionFilter": true,
		"clustering": {"fields": ["id"]}, "labels": {"a": "1"}, "maxStaleness": "0-0 0 0:10:0",
		"tableConstraints": {"primaryKey": {"columns": ["id"]}}}`).ok()
	t.Run("types are answered by their legacy names", func(t *testing.T) {
		want := `{"fields":[{"mode":"REQUIRED","name":"id","type":"INTEGER"},{"mode":"NULLABLE","name":"at","type":"TIMESTAMP"},` +
			`{"fields":[{"mode":"NULLABLE","name":"ok","type":"BOOLEAN"},{"mode":"NULLABLE","name":"f","type":"FLOAT"}],"mode":"REPEATED","name":"r","type":"RECORD"},` +
			`{"mode":"NULLABLE","name":"n","precision":"10","scale":"2","type":"NUMERIC"}]}`
		if got := compact(t, made.at("schema")); got != want {
			t.Errorf("schema\n got %s\nwant %s", got, want)
		}
	})
	for path, want := range map[string]any{
		"kind": "bigquery#table", "id": "p:d.t", "type": "TABLE", "location": "US", "numRows": "0", "numBytes": "0",
		"requirePartitionFilter": true, "description": "x", "creationTime": "1777723200000",
		"selfLink": f.url + tablesPath + "/t",
	} {
		if got := made.at(path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	if got := compact(t, made.at("timePartitioning")); got != `{"expirationMs":"86400000","field":"at","type":"DAY"}` {
		t.Errorf("timePartitioning = %s", got)
	}
	if got := compact(t, made.at("tableConstraints")); got != `{"primaryKey":{"columns":["id"]}}` {
		t.Errorf("tableConstraints = %s", got)
	}
	if made.at("maxStaleness") != nil {
		t.Error("maxStaleness is answered, which only DDL can set")
	}
	t.Run("LBQ-146 duplicate", func(t *testing.T) {
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "t"}}`).refused(409, "duplicate", "Already Exists: Table p:d.t")
	})
	t.Run("LBQ-151 unknown clustering and partition columns", func(t *testing.T) {
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "u"}, "schema": {"fields": [{"name": "a", "type": "INT64"}]}, "clustering": {"fields": ["x"]}}`).
			refused(400, "invalid", "The field specified for clustering cannot be found in the schema. Invalid field: x")
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "u"}, "schema": {"fields": [{"name": "a", "type": "INT64"}]}, "timePartitioning": {"type": "DAY", "field": "x"}}`).
			refused(400, "invalid", "The field specified for partitioning cannot be found in the schema.")
	})
	t.Run("LBQ-98 absent table", func(t *testing.T) {
		f.do("GET", tablesPath+"/u", "").refused(404, "notFound", "Not found: Table p:d.u")
	})
	t.Run("bodies that mean something else", func(t *testing.T) {
		f.do("POST", tablesPath, `{}`).refused(400, "invalid", "Required parameter is missing: tableReference.tableId")
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "u", "datasetId": "e"}}`).
			refused(400, "invalid", "tableReference.datasetId e differs from the dataset of the request, d")
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "u"}, "externalDataConfiguration": {"sourceUris": ["gs://a/b"]}}`).
			refused(501, "notImplemented", "local BigQuery does not implement table.externalDataConfiguration")
		f.do("POST", tablesPath, `{"tableReference": {"tableId": "u"}, "view": {"query": "SELECT 1"}}`).
			refused(501, "notImplemented", "local BigQuery cannot make a view without a query engine: tests of this room have none")
		if got := f.do("POST", tablesPath, `{`); got.code != 400 {
			t.Errorf("cut JSON: got %d %s", got.code, got.raw)
		}
	})
}

func TestRacingCreations(t *testing.T) {
	t.Run("LBQ-147 sixteen racing creations", func(t *testing.T) {
		f := setup(t)
		f.dataset()
		var wg sync.WaitGroup
		codes := make([]int, 16)
		for i := range codes {
			wg.Go(func() { codes[i] = f.do("POST", tablesPath, `{"tableReference": {"tableId": "t"}}`).code })
		}
		wg.Wait()
		count := map[int]int{}
		for _, code := range codes {
			count[code]++
		}
		if count[200] != 1 || count[200]+count[409] != 16 {
			t.Errorf("codes %v, want one 200 and fifteen 409", count)
		}
	})
}

func TestChangeTable(t *testing.T) {
	f := setup(t)
	f.dataset()
	f.do("POST", tablesPath, `{"tableReference": {"tableId": "t"}, "labels": {"a": "1", "b": "2"},
		"schema": {"fields": [{"name": "a", "type": "INT64", "mode": "REQUIRED"}, {"name": "s", "type": "STRUCT", "fields": [{"name": "x", "type": "STRING"}]}]}}`).ok()
	t.Run("LBQ-148 etags", func(t *testing.T) {
		old := f.do("GET", tablesPath+"/t", "").ok()
		tag := old.at("etag").(string)
		fresh := f.do("PATCH", tablesPath+"/t", `{"description": "one"}`, "If-Match: "+tag).ok()
		if fresh.at("etag") == tag {
			t.Error("the etag has not changed")
		}
		f.do("PATCH", tablesPath+"/t", `{"description": "two"}`, "If-Match: "+tag).refused(412, "conditionNotMet", "Precondition Failed")
		whole := fmt.Sprintf(`{"description": "three", "labels": {"a": "1", "b": "2"}, "schema": %s}`, compact(t, fresh.at("schema")))
		f.do("PUT", tablesPath+"/t", whole, "If-Match: "+tag).refused(412, "conditionNotMet", "Precondition Failed")
		updated := f.do("PUT", tablesPath+"/t", whole, "If-Match: "+fresh.at("etag").(string)).ok()
		if updated.at("etag") == fresh.at("etag") || updated.at("description") != "three" {
			t.Errorf("updated: %s", updated.raw)
		}
		fresh = updated
		if got := f.do("GET", tablesPath+"/t", "", "If-None-Match: "+fresh.at("etag").(string)); got.code != http.StatusNotModified || got.raw != "" {
			t.Errorf("got %d %s, want 304", got.code, got.raw)
		}
		f.write(f.ref("t"), `[{"a": 1}]`)
		if got := f.do("GET", tablesPath+"/t", "").ok(); got.at("etag") != fresh.at("etag") || got.at("numRows") != "1" {
			t.Errorf("after a write: %s", got.raw)
		}
	})
	t.Run("LBQ-149 a new REQUIRED column", func(t *testing.T) {
		for _, method := range []string{"PATCH", "PUT"} {
			f.do(method, tablesPath+"/t", `{"schema": {"fields": [{"name": "a", "type": "INT64", "mode": "REQUIRED"},
				{"name": "s", "type": "STRUCT", "fields": [{"name": "x", "type": "STRING"}]}, {"name": "b", "type": "INT64", "mode": "REQUIRED"}]}}`).
				refused(400, "invalid", "Provided Schema does not match Table p:d.t. Cannot add required fields to an existing schema. (field: b)")
		}
	})
	t.Run("LBQ-150 REQUIRED to NULLABLE and back", func(t *testing.T) {
		with := func(mode string) string {
			return fmt.Sprintf(`{"schema": {"fields": [{"name": "a", "type": "INT64", "mode": %q},
				{"name": "s", "type": "STRUCT", "fields": [{"name": "x", "type": "STRING"}, {"name": "y", "type": "DATE"}]}]}}`, mode)
		}
		f.do("PATCH", tablesPath+"/t", with("NULLABLE")).ok()
		f.do("PATCH", tablesPath+"/t", with("REQUIRED")).
			refused(400, "invalid", "Provided Schema does not match Table p:d.t. Field a has changed mode from NULLABLE to REQUIRED")
	})
	t.Run("patch and labels", func(t *testing.T) {
		got := f.do("PATCH", tablesPath+"/t", `{"labels": {"a": null, "c": "3"}}`).ok()
		if labels := compact(t, got.at("labels")); labels != `{"b":"2","c":"3"}` {
			t.Errorf("labels %s", labels)
		}
	})
	t.Run("partitioning cannot be added", func(t *testing.T) {
		got := f.do("PATCH", tablesPath+"/t", `{"timePartitioning": {"type": "DAY"}}`)
		if got.code != 400 {
			t.Errorf("got %d %s", got.code, got.raw)
		}
	})
	t.Run("clustering can", func(t *testing.T) {
		got := f.do("PATCH", tablesPath+"/t", `{"clustering": {"fields": ["a"]}}`).ok()
		if clustering := compact(t, got.at("clustering")); clustering != `{"fields":["a"]}` {
			t.Errorf("clustering %s", clustering)
		}
	})
	t.Run("views of a table", func(t *testing.T) {
		if got := f.do("GET", tablesPath+"/t?view=BASIC", "").ok(); got.at("numRows") != nil {
			t.Errorf("BASIC has figures: %s", got.raw)
		}
		got := f.do("GET", tablesPath+"/t?selectedFields=s.x&fields=schema/fields(name,fields/name),id", "").ok()
		if want := `{"id":"p:d.t","schema":{"fields":[{"fields":[{"name":"x"}],"name":"s"}]}}`; got.raw != want {
			t.Errorf("got %s, want %s", got.raw, want)
		}
		f.do("GET", tablesPath+"/t?view=ALL", "").refused(400, "invalid", "Invalid value 'ALL' for parameter view: expected BASIC, STORAGE_STATS or FULL")
	})
}

func TestOfficialClientTables(t *testing.T) {
	f := setup(t)
	f.dataset()
	c, ctx := f.official(), t.Context()
	tab := c.Dataset("d").Table("t")
	err := tab.Create(ctx, &bigquery.TableMetadata{
		Schema: bigquery.Schema{
			{Name: "id", Type: bigquery.IntegerFieldType, Required: true},
			{Name: "tags", Type: bigquery.StringFieldType, Repeated: true},
			{Name: "at", Type: bigquery.TimestampFieldType},
		},
		TimePartitioning: &bigquery.TimePartitioning{Type: bigquery.DayPartitioningType, Field: "at"},
		Clustering:       &bigquery.Clustering{Fields: []string{"id"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	md, err := tab.Metadata(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if md.Type != bigquery.RegularTable || md.TimePartitioning.Field != "at" || md.NumRows != 0 || len(md.Schema) != 3 || !md.Schema[1].Repeated {
		t.Errorf("metadata %+v", md)
	}
	wider := append(md.Schema, &bigquery.FieldSchema{Name: "more", Type: bigquery.JSONFieldType})
	if _, err := tab.Update(ctx, bigquery.TableMetadataToUpdate{Schema: wider}, md.ETag); err != nil {
		t.Fatal(err)
	}
	_, err = tab.Update(ctx, bigquery.TableMetadataToUpdate{Schema: wider[:1]}, "")
	if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 400 {
		t.Errorf("narrowing: %v", err)
	}
	_, err = c.Dataset("d").Table("none").Metadata(ctx)
	if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 404 || e.Errors[0].Reason != "notFound" {
		t.Errorf("absent table: %v", err)
	}
	it := c.Dataset("d").Tables(ctx)
	first, err := it.Next()
	if err != nil || first.TableID != "t" {
		t.Fatalf("list: %v %v", first, err)
	}
	if _, err := it.Next(); !errors.Is(err, iterator.Done) {
		t.Errorf("list goes on: %v", err)
	}
	if err := tab.Delete(ctx); err != nil {
		t.Fatal(err)
	}
}
