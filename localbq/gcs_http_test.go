package localbq_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

func TestStorageHTTP(t *testing.T) {
	bq := start(t, localbq.Config{})
	_, lake := bucket(t, bq)
	ask := func(method, path, contentType, body string) (int, string) {
		t.Helper()
		q, err := http.NewRequest(method, "http://"+bq.GCS()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", contentType)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	t.Run("a batch deletes many, each with an answer of its own", func(t *testing.T) {
		put(t, lake.Object("one"), nil)
		put(t, lake.Object("t/wo"), nil)
		part := func(id, path string) string {
			return "--cut\r\nContent-Type: application/http\r\nContent-ID: <" + id + ">\r\n\r\nDELETE /storage/v1/b/lake/o/" + path + " HTTP/1.1\r\n\r\n"
		}
		code, text := ask("POST", "/batch/storage/v1", "multipart/mixed; boundary=cut",
			part("x+1", "one")+part("x+2", "none")+part("x+3", "t%2Fwo")+"--cut--\r\n")
		if code != 200 || strings.Count(text, "HTTP/1.1 204") != 2 || strings.Count(text, "HTTP/1.1 404") != 1 || !strings.Contains(text, "<response-x+3>") {
			t.Errorf("got %d\n%s", code, text)
		}
		if _, err := lake.Object("t/wo").Attrs(context.Background()); err == nil {
			t.Error("t/wo is still there")
		}
	})
	t.Run("a call of a batch that is shorter than it says is refused, with the batch", func(t *testing.T) {
		for _, length := range []string{"Content-Length: 97", "Transfer-Encoding: chunked"} {
			code, text := ask("POST", "/batch/storage/v1", "multipart/mixed; boundary=cut",
				"--cut\r\n\r\nPATCH /storage/v1/b/lake/o/one HTTP/1.1\r\n"+length+"\r\n\r\n{}\r\n--cut--\r\n")
			if code != 400 || !strings.Contains(text, "Malformed call in the batch request") {
				t.Errorf("%s: %d %s", length, code, text)
			}
		}
	})
	t.Run("uploads in one request", func(t *testing.T) {
		if code, text := ask("POST", "/upload/storage/v1/b/lake/o?uploadType=media&name=simple", "text/plain", "hello"); code != 200 {
			t.Errorf("media: %d %s", code, text)
		}
		wantBytes(t, get(t, lake.Object("simple")), []byte("hello"))
		if code, text := ask("POST", "/upload/storage/v1/b/lake/o?uploadType=multipart", "multipart/related; boundary=cut",
			"--cut\r\nContent-Type: application/json\r\n\r\n{\"name\":\"half\"}\r\n--cut\r\nContent-Type: text/plain\r\n\r\nhel"); code != 400 {
			t.Errorf("a body without an end: %d %s, want 400", code, text)
		}
	})
	t.Run("what is not there is refused by name", func(t *testing.T) {
		for _, c := range [][2]string{{"GET", "/storage/v1/b/lake/iam"}, {"POST", "/storage/v1/b/lake/o/simple/moveTo/o/x"}, {"GET", "/storage/v1/b/lake/o?softDeleted=true"},
			{"GET", "/storage/v1/b/lake/o?matchGlob=x"}, {"PUT", "/lake/simple"}, {"GET", "/lake"}} {
			if code, text := ask(c[0], c[1], "", ""); code != 501 || !strings.Contains(text, "local Cloud Storage") {
				t.Errorf("%s %s: %d %s, want 501", c[0], c[1], code, text)
			}
		}
	})
}
