package rest

import (
	"errors"
	"testing"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

func TestDatasets(t *testing.T) {
	f := setup(t)
	f.do("GET", "/projects/p/datasets/d", "").refused(404, "notFound", "Not found: Dataset p:d")
	made := f.do("POST", "/projects/p/datasets", `{"datasetReference": {"datasetId": "d"}, "labels": {"a": "1", "b": "2"},
		"defaultTableExpirationMs": "3600000", "access": [{"role": "OWNER", "userByEmail": "x@y"}]}`).ok()
	for path, want := range map[string]any{
		"kind": "bigquery#dataset", "id": "p:d", "type": "DEFAULT", "location": "US", "maxTimeTravelHours": "168",
		"defaultTableExpirationMs": "3600000", "creationTime": "1777723200000",
	} {
		if got := made.at(path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	if got := compact(t, made.at("access")); got != `[{"role":"OWNER","userByEmail":"x@y"}]` {
		t.Errorf("access = %s", got)
	}
	f.do("POST", "/projects/p/datasets", `{"datasetReference": {"datasetId": "d"}}`).refused(409, "duplicate", "Already Exists: Dataset p:d")

	t.Run("patch merges labels and removes by null", func(t *testing.T) {
		got := f.do("PATCH", "/projects/p/datasets/d", `{"labels": {"a": null, "c": "3"}, "description": "x", "defaultTableExpirationMs": null}`).ok()
		if labels := compact(t, got.at("labels")); labels != `{"b":"2","c":"3"}` || got.at("description") != "x" {
			t.Errorf("got %s", got.raw)
		}
		if got.at("defaultTableExpirationMs") != nil || got.at("etag") == made.at("etag") {
			t.Errorf("got %s", got.raw)
		}
	})
	t.Run("update replaces", func(t *testing.T) {
		got := f.do("PUT", "/projects/p/datasets/d", `{"friendlyName": "n"}`).ok()
		if got.at("labels") != nil || got.at("description") != nil || got.at("friendlyName") != "n" || got.at("location") != "US" {
			t.Errorf("got %s", got.raw)
		}
	})
	t.Run("location is fixed", func(t *testing.T) {
		f.do("PATCH", "/projects/p/datasets/d", `{"location": "us"}`).ok()
		f.do("PATCH", "/projects/p/datasets/d", `{"location": "EU"}`).refused(400, "invalid", "Cannot change the location of dataset p:d from US to EU")
	})
	t.Run("method override", func(t *testing.T) {
		f.do("POST", "/projects/p/datasets/d", `{"description": "y"}`, "X-HTTP-Method-Override: PATCH").ok()
		if got := f.do("GET", "/projects/p/datasets/d", "").ok(); got.at("description") != "y" {
			t.Errorf("got %s", got.raw)
		}
	})
	t.Run("fields this service does not keep", func(t *testing.T) {
		f.do("POST", "/projects/p/datasets", `{"datasetReference": {"datasetId": "e"}, "linkedDatasetSource": {"sourceDataset": {"datasetId": "d"}}}`).
			refused(501, "notImplemented", "local BigQuery does not implement dataset.linkedDatasetSource")
		f.do("POST", "/projects/p/datasets/d:undelete", `{}`).refused(501, "notImplemented", "local BigQuery does not implement datasets.undelete")
	})
}

func TestDeleteDataset(t *testing.T) {
	t.Run("LBQ-152 dataset with tables", func(t *testing.T) {
		f := setup(t)
		f.dataset()
		f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference": {"tableId": "t"}}`).ok()
		f.do("DELETE", "/projects/p/datasets/d", "").refused(400, "resourceInUse", "Dataset p:d is still in use")
		if got := f.do("DELETE", "/projects/p/datasets/d?deleteContents=true", ""); got.code != 204 || got.raw != "" {
			t.Errorf("got %d %q", got.code, got.raw)
		}
		f.do("GET", "/projects/p/datasets/d/tables/t", "").refused(404, "notFound", "Not found: Dataset p:d")
	})
}

func TestOfficialClientDatasets(t *testing.T) {
	f := setup(t)
	c := f.official()
	ctx := t.Context()
	d := c.Dataset("d")
	if err := d.Create(ctx, &bigquery.DatasetMetadata{Location: "EU", Labels: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	err := d.Create(ctx, nil)
	if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 409 || e.Errors[0].Reason != "duplicate" {
		t.Errorf("second creation: %v", err)
	}
	md, err := d.Metadata(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if md.Location != "EU" || md.Labels["k"] != "v" || md.FullID != "p:d" {
		t.Errorf("metadata %+v", md)
	}
	change := bigquery.DatasetMetadataToUpdate{Description: "x"}
	change.DeleteLabel("k")
	changed, err := d.Update(ctx, change, md.ETag)
	if err != nil {
		t.Fatal(err)
	}
	if changed.Description != "x" || len(changed.Labels) != 0 {
		t.Errorf("changed %+v", changed)
	}
	_, err = d.Update(ctx, bigquery.DatasetMetadataToUpdate{Description: "y"}, md.ETag)
	if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 412 || e.Errors[0].Reason != "conditionNotMet" {
		t.Errorf("update with a stale etag: %v", err)
	}
	it := c.Datasets(ctx)
	it.PageInfo().MaxSize = 1
	if err := c.Dataset("c").Create(ctx, nil); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for {
		d, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.DatasetID)
	}
	if len(ids) != 2 || ids[0] != "c" || ids[1] != "d" {
		t.Errorf("listed %v", ids)
	}
	if err := d.Delete(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestDatasetUpdateModes(t *testing.T) {
	f := setup(t)
	f.dataset()
	const both = `{"description": "x", "access": [{"role": "READER", "userByEmail": "ada@example.com"}]}`
	patch := func(mode string) answer { return f.do("PATCH", "/projects/p/datasets/d?updateMode="+mode, both) }
	if a := patch("UPDATE_METADATA").ok(); a.at("description") != "x" || a.at("access") != nil {
		t.Errorf("metadata alone: %s", a.raw)
	}
	f.do("PATCH", "/projects/p/datasets/d", `{"description": null}`).ok()
	if a := patch("UPDATE_ACL").ok(); a.at("description") != nil || a.at("access") == nil {
		t.Errorf("access alone: %s", a.raw)
	}
	if a := f.do("PUT", "/projects/p/datasets/d?updateMode=UPDATE_METADATA", `{"description": "y"}`).ok(); a.at("description") != "y" || a.at("access") == nil {
		t.Errorf("an update of metadata: %s", a.raw)
	}
	if a := f.do("PUT", "/projects/p/datasets/d?updateMode=UPDATE_ACL", `{"access": []}`).ok(); a.at("description") != "y" {
		t.Errorf("an update of access: %s", a.raw)
	}
	patch("SOME").refused(400, "invalid", "Invalid value 'SOME' for parameter updateMode: expected UPDATE_METADATA, UPDATE_ACL or UPDATE_FULL")
}

func TestPatchWithoutSchema(t *testing.T) {
	f := setup(t)
	f.dataset()
	f.do("POST", "/projects/p/datasets/d/tables", `{"tableReference": {"tableId": "t"}, "schema": {"fields": [{"name": "a", "type": "INTEGER"}]}}`).ok()
	a := f.do("PATCH", "/projects/p/datasets/d/tables/t?autodetect_schema=false", `{"schema": null, "description": "x", "labels": {}}`).ok()
	if a.at("description") != "x" || a.at("schema") == nil {
		t.Error(a.raw)
	}
}
