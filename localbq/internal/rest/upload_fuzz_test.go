package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// FuzzUpload brings any file with a load job, by every way there is: the answer is JSON and no failure of the server's, and the
// job ends.
func FuzzUpload(f *testing.F) {
	const job = `{"jobReference":{"jobId":"j","location":"US"},"configuration":{"load":{"destinationTable":{"datasetId":"d","tableId":"t"},"sourceFormat":"CSV","schema":{"fields":[{"name":"a","type":"INTEGER"}]}}}}`
	for _, seed := range []struct {
		way    uint8
		header string
		body   string
	}{
		{0, `multipart/related; boundary="x"`, "--x\r\nContent-Type: application/json\r\n\r\n" + job + "\r\n--x\r\nContent-Type: */*\r\n\r\n1\n2\n\r\n--x--\r\n"},
		{0, "multipart/related; boundary=x", "--x\n\n{}\n--x\n\n\n--x--"},
		{1, "", job}, {2, "bytes 0-3/4", "1\n2\n"}, {2, "bytes 0-3/*", "1\n2\n"}, {2, "bytes 3-6/999999999999999999", "1\n2\n"}, {2, "", "x"}, {2, "bytes */*", ""}, {2, "bytes */0", ""},
	} {
		f.Add(seed.way, seed.header, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, way uint8, header string, body []byte) {
		s := setup(t)
		s.dataset()
		send := func(method, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, bytes.NewReader(body))
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			s.server.Config.Handler.ServeHTTP(w, r)
			return w
		}
		const path = "/upload/bigquery/v2/projects/p/jobs?uploadType="
		session := strings.TrimPrefix(send("POST", path+"resumable", []byte(job)).Header().Get("Location"), "http://example.com")
		hostile.Proportional(t, len(header)+len(body), 256, 8<<20, func() {
			var w *httptest.ResponseRecorder
			switch way % 3 {
			case 0:
				w = send("POST", path+"multipart", body, "Content-Type", header)
			case 1:
				w = send("POST", path+"resumable", body, "X-Upload-Content-Length", header)
			case 2:
				w = send("PUT", session, body, "Content-Range", header)
			}
			if w.Code >= 500 && w.Code != http.StatusNotImplemented || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	})
}
