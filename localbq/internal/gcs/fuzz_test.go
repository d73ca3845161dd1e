package gcs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/gcs"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
)

const related = "multipart/related; boundary=x"

// FuzzUpload sends any body by every way that a body has: answers are a client's fault or no fault, cost what was sent, and
// leave whole objects.
func FuzzUpload(f *testing.F) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("--x\r\nContent-Type: application/json\r\n\r\n{\"name\": \"o\"}\r\n--x\r\n\r\ncontent\r\n--x--"))
	_ = z.Close()
	for _, seed := range []struct {
		way    uint8
		header string
		body   string
	}{
		{0, "text/plain", "content"},
		{1, related, "--x\r\nContent-Type: application/json\r\n\r\n{\"name\": \"o\", \"crc32c\": \"AAAAAA==\"}\r\n--x\r\nContent-Type: text/plain\r\n\r\ncontent\r\n--x--\r\n"},
		{1, `multipart/mixed; boundary="x"`, "--x\n\n{\"name\":\"o\",\"metadata\":{\"a\":\"b\"}}\n--x\nContent-Transfer-Encoding: base64\n\nYQ==\n--x\n\nmore\n--x--"},
		{1 | 128, related, packed.String()},
		{2, "5", `{"contentType": "text/plain", "md5Hash": "XUFAKrxLKna5cZ2REBfFkg=="}`},
		{3, "bytes 0-4/5", "hello"},
		{3, "bytes 0-4/*", "hello"},
		{3, "bytes 7-11/999999999999999999", "hello"},
		{3, "", "hello"},
		{4, "bytes */*", ""},
		{4, "bytes */5", "x"},
		{5, "multipart/mixed; boundary=x", "--x\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\nDELETE /storage/v1/b/lake/o/a HTTP/1.1\r\n\r\n--x\r\n\r\nPOST /batch HTTP/1.1\r\n\r\n--x--\r\n"},
		{5, "multipart/mixed; boundary=x", "--x\r\n\r\nPATCH /storage/v1/b/lake/o/a HTTP/1.1\r\nContent-Length: 17\r\n\r\n{\"metadata\": null}\r\n--x--\r\n"},
		{6, "", `{"name": "b-2", "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]}, "location": "us"}`},
		{7, "", `{"sourceObjects": [{"name": "a"}, {"name": "a", "generation": "1"}], "destination": {"contentType": "x"}}`},
		{8, "", `{"contentType": "x", "metadata": {"k": null}}`},
		{9, "", `{"metadata": {"k": null}, "contentType": ""}`},
	} {
		f.Add(seed.way, seed.header, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, way uint8, header string, body []byte) {
		kept, err := objects.New(objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		}()
		face := gcs.New(gcs.Deps{Objects: kept})
		send := func(method, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, bytes.NewReader(body))
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			face.ServeHTTP(w, r)
			return w
		}
		send("POST", "/storage/v1/b?project=p", []byte(`{"name": "lake"}`))
		send("POST", "/upload/storage/v1/b/lake/o?uploadType=media&name=a", []byte("a"))
		session := strings.TrimPrefix(send("POST", "/upload/storage/v1/b/lake/o?uploadType=resumable&name=r", nil).Header().Get("Location"), "http://example.com")
		factor := uint64(64)
		var encoding []string
		if way&128 != 0 {
			encoding, factor = []string{"Content-Encoding", "gzip"}, 16<<10 // a byte may unpack to a thousand, and buffers grow
		}
		hostile.Proportional(t, len(header)+len(body), factor, 4<<20, func() {
			var w *httptest.ResponseRecorder
			switch way & 127 % 10 {
			case 0:
				w = send("POST", "/upload/storage/v1/b/lake/o?uploadType=media&name=o", body, append(encoding, "Content-Type", header)...)
			case 1:
				w = send("POST", "/upload/storage/v1/b/lake/o?uploadType=multipart", body, append(encoding, "Content-Type", header)...)
			case 2:
				w = send("POST", "/upload/storage/v1/b/lake/o?uploadType=resumable&name=s", body, append(encoding, "X-Upload-Content-Length", header)...)
			case 3:
				w = send("PUT", session, body, "Content-Range", header)
				send("PUT", session, nil, "Content-Range", "bytes */*")
			case 4:
				w = send("PUT", session, body, "Content-Range", header)
			case 5:
				w = send("POST", "/batch/storage/v1", body, "Content-Type", header)
			case 6:
				w = send("POST", "/storage/v1/b?project=p", body, encoding...)
			case 7:
				w = send("POST", "/storage/v1/b/lake/o/c/compose", body, encoding...)
			case 8:
				w = send("POST", "/storage/v1/b/lake/o/a/rewriteTo/b/lake/o/d", body, encoding...)
			case 9:
				w = send("PATCH", "/storage/v1/b/lake/o/a", body, encoding...)
			}
			if w.Code >= 500 && w.Code != http.StatusNotImplemented {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		for _, o := range []string{"o", "r"} {
			if w := send("GET", "/storage/v1/b/lake/o/"+o+"?alt=media", nil); w.Code == 200 && w.Body.Len() > 1100*len(body) {
				t.Errorf("object %s has %d bytes of a body of %d", o, w.Body.Len(), len(body))
			}
		}
	})
}
