package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
)

func uploading(table, format, schema string) string {
	return fmt.Sprintf(`"load":{"destinationTable":{"projectId":"p","datasetId":"d","tableId":%q},"sourceFormat":%q,"schema":%s}`, table, format, schema)
}

// send makes a request to a URL, headers being "Name: value".
func (x *transfers) send(method, url, body string, headers ...string) answer {
	x.Helper()
	plain := x.url
	defer func() { x.url = plain }()
	x.url = ""
	return x.do(method, url, body, headers...)
}

func TestUpload(t *testing.T) {
	x := setupTransfers(t)
	base := x.server.URL + "/upload/bigquery/v2/projects/p/jobs?uploadType="
	job := func(id, table string) string {
		return fmt.Sprintf(`{"jobReference":{"projectId":"p","jobId":%q},"configuration":{%s}}`, id, uploading(table, ndjson, schemaOf("a:INTEGER")))
	}
	t.Run("multipart", func(t *testing.T) {
		body := "--xx\r\nContent-Type: application/json\r\n\r\n" + job("m", "m") + "\r\n--xx\r\nContent-Type: */*\r\n\r\n{\"a\":1}\n{\"a\":2}\n\r\n--xx--\r\n"
		x.send("POST", base+"multipart", body, "Content-Type: multipart/related; boundary=xx").ok()
		if f := failure(x.wait("m")); f != "" {
			t.Fatal(f)
		}
		x.wantRows("m", `{"a":1}`, `{"a":2}`)
		x.send("POST", base+"multipart", body, "Content-Type: multipart/related; boundary=xx").refused(409, "duplicate", "Already Exists: Job p:US.m")
		x.wantRows("m", `{"a":1}`, `{"a":2}`)
		if a := x.send("POST", base+"multipart", "{}", "Content-Type: application/json"); a.code != 400 {
			t.Errorf("a body that is no multipart: %d", a.code)
		}
	})
	t.Run("resumable", func(t *testing.T) {
		a := x.send("POST", base+"resumable", job("r", "r"), "Content-Type: application/json").ok()
		where := a.header.Get("Location")
		line := `{"a":7}` + "\n"
		first := strings.Repeat(line, chunkBytes/len(line))
		if a := x.send("PUT", where, first, fmt.Sprintf("Content-Range: bytes 0-%d/*", len(first)-1), "X-GUploader-No-308: yes").ok(); a.header.Get("X-Http-Status-Code-Override") != "308" {
			t.Errorf("headers are %v", a.header)
		}
		// The same part once more, as after a lost answer, then a question, then the rest.
		x.send("PUT", where, first, fmt.Sprintf("Content-Range: bytes 0-%d/*", len(first)-1), "X-GUploader-No-308: yes").ok()
		q := x.send("PUT", where, "", "Content-Range: bytes */*", "X-GUploader-No-308: yes").ok()
		if got, want := q.header.Get("Range"), fmt.Sprintf("bytes=0-%d", len(first)-1); got != want {
			t.Errorf("Range is %q, want %q", got, want)
		}
		end := fmt.Sprintf("Content-Range: bytes %d-%d/%d", len(first), len(first)+len(line)-1, len(first)+len(line))
		x.send("PUT", where, line, end).ok()
		x.send("PUT", where, line, end).ok() // again: the same job
		if f := failure(x.wait("r")); f != "" {
			t.Fatal(f)
		}
		if n := strings.Count(x.rows("r"), "7"); n != chunkBytes/len(line)+1 {
			t.Errorf("%d rows, want %d", n, chunkBytes/len(line)+1)
		}
		if a := x.send("PUT", base+"resumable&upload_id=none", line); a.code != http.StatusNotFound {
			t.Errorf("an upload that is none: %d", a.code)
		}
	})
	t.Run("the official client", func(t *testing.T) {
		source := bigquery.NewReaderSource(strings.NewReader("1,x\n2,\"y\nz\"\n"))
		source.Schema = bigquery.Schema{{Name: "n", Type: bigquery.IntegerFieldType}, {Name: "s", Type: bigquery.StringFieldType}}
		source.AllowQuotedNewlines = true
		job, err := x.official().Dataset("d").Table("go").LoaderFrom(source).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil || status.Err() != nil {
			t.Fatal(err, status.Err())
		}
		x.wantRows("go", `{"n":1,"s":"x"}`, `{"n":2,"s":"y\nz"}`)
	})
}
