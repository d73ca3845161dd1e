package localbq_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// TestStorageChanges changes buckets and objects by hand, with entity tags.
func TestStorageChanges(t *testing.T) {
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Clock: clock})
	_, lake := bucket(t, bq)
	ask := func(method, path, body string, headers ...string) (int, map[string]any) {
		t.Helper()
		q, err := http.NewRequest(method, "http://"+bq.GCS()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			q.Header.Set(name, value)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{"text": string(text)}
		_ = json.Unmarshal(text, &out) // a body of no JSON is looked at as text
		return r.StatusCode, out
	}
	wants := func(code int, method, path, body string, headers ...string) map[string]any {
		t.Helper()
		got, answer := ask(method, path, body, headers...)
		if got != code {
			t.Errorf("%s %s %v: %d %v, want %d", method, path, headers, got, answer, code)
		}
		return answer
	}
	const b, o = "/storage/v1/b/lake", "/storage/v1/b/lake/o/obj"
	t.Run("buckets are patched and updated", func(t *testing.T) {
		tag := wants(200, "PATCH", b, `{"labels":{"a":"1","b":"2"},"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":400}}]}}`)["etag"]
		got := wants(200, "PATCH", b, `{"labels":{"a":null,"c":"3"}}`, fmt.Sprintf("If-Match: %v", tag))
		if fmt.Sprintf("%v %v %v", got["labels"], got["lifecycle"] != nil, got["metageneration"]) != "map[b:2 c:3] true 3" {
			t.Errorf("the bucket is %v", got)
		}
		wants(412, "PATCH", b, `{"labels":{"a":"x"}}`, fmt.Sprintf("If-Match: %v", tag))
		wants(412, "DELETE", b, ``, fmt.Sprintf("If-Match: %v", tag))
		wants(412, "PATCH", b+"?ifMetagenerationMatch=9", `{}`)
		wants(304, "GET", b, ``, fmt.Sprintf("If-None-Match: %v", got["etag"]))
		if got := wants(200, "PUT", b, `{"storageClass":"NEARLINE"}`); got["labels"] != nil || got["lifecycle"] != nil || got["storageClass"] != "NEARLINE" {
			t.Errorf("the updated bucket is %v", got)
		}
		wants(400, "PATCH", b, `{"location":"EU"}`)
		wants(400, "PATCH", b, `{"name":"other"}`)
		wants(501, "PATCH", b, `{"versioning":{"enabled":true}}`)
		wants(501, "PATCH", b, `{"retentionPolicy":{"retentionPeriod":"1"}}`)
		wants(404, "PATCH", "/storage/v1/b/none", `{}`)
	})
	t.Run("a rule that comes later deletes what is old enough", func(t *testing.T) {
		put(t, lake.Object("old"), []byte("x"))
		clock.Advance(48 * time.Hour)
		wants(200, "PATCH", b, `{"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":1,"matchesPrefix":["old"]}}]}}`)
		clock.Advance(time.Minute)
		wants(404, "GET", "/storage/v1/b/lake/o/old", ``)
	})
	t.Run("objects are updated, by entity tag", func(t *testing.T) {
		put(t, lake.Object("obj"), []byte("content"))
		first := wants(200, "PATCH", o, `{"contentType":"a/b","cacheControl":"no-store","metadata":{"k":"v"}}`)
		got := wants(200, "PUT", o, `{"contentType":"c/d"}`, fmt.Sprintf("If-Match: %q", first["etag"]))
		if got["contentType"] != "c/d" || got["cacheControl"] != nil || got["metadata"] != nil || got["generation"] != first["generation"] {
			t.Errorf("the updated object is %v", got)
		}
		for _, method := range []string{"PUT", "PATCH", "DELETE", "GET"} {
			wants(412, method, o, `{}`, fmt.Sprintf("If-Match: %q", first["etag"]))
		}
		wants(412, "PATCH", o, `{}`, fmt.Sprintf("If-None-Match: %q", got["etag"]))
		wants(412, "GET", o+"?alt=media", ``, fmt.Sprintf("If-Match: %q", first["etag"]))
		wants(304, "GET", o+"?alt=media", ``, fmt.Sprintf("If-None-Match: %q", got["etag"]))
		wants(200, "GET", o, ``, "If-Match: *")
		wants(501, "POST", "/upload/storage/v1/b/lake/o?uploadType=media&name=obj", `x`, "If-Match: *")
		wantBytes(t, get(t, lake.Object("obj")), []byte("content"))
	})
	t.Run("objects are copied in one call", func(t *testing.T) {
		got := wants(200, "POST", o+"/copyTo/b/lake/o/to%2F%2E%2E%2Fcopy", `{"contentType":"x/y"}`)
		if got["name"] != "to/../copy" || got["contentType"] != "x/y" || got["kind"] != "storage#object" {
			t.Errorf("the copy is %v", got)
		}
		wantBytes(t, get(t, lake.Object("to/../copy")), []byte("content"))
		wants(412, "POST", o+"/copyTo/b/lake/o/copy?ifSourceGenerationMatch=1", `{}`)
		wants(412, "POST", o+"/copyTo/b/lake/o/obj?ifGenerationMatch=0", `{}`)
		wants(404, "POST", "/storage/v1/b/lake/o/none/copyTo/b/lake/o/copy", `{}`)
	})
	t.Run("what is packed for the way is unpacked, and what an object is packed with is kept", func(t *testing.T) {
		const media = "/upload/storage/v1/b/lake/o?uploadType=media&name="
		wants(200, "POST", media+"way", zip(t, "content"), "Content-Encoding: gzip")
		wantBytes(t, get(t, lake.Object("way")), []byte("content"))
		if got := wants(200, "POST", media+"kept&contentEncoding=gzip", zip(t, "content")); got["contentEncoding"] != "gzip" {
			t.Errorf("the object is %v", got)
		}
		if got := wants(200, "GET", "/storage/v1/b/lake/o/kept?alt=media", ``, "Accept-Encoding: identity"); got["text"] != "content" {
			t.Errorf("read as %q", got["text"])
		}
		if got := wants(200, "GET", "/storage/v1/b/lake/o/kept?alt=media", ``, "Accept-Encoding: gzip"); got["text"] != zip(t, "content") {
			t.Errorf("read packed as %q", got["text"])
		}
		s := begin(t, bq, "chunked")
		r, err := http.NewRequest("PUT", s.url, strings.NewReader(zip(t, "content")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != 501 {
			t.Errorf("a packed chunk: %s, want 501", answer.Status)
		}
	})
}
