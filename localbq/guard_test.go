package localbq_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// warnings are the log's lines of that level.
func warnings(t *testing.T, log *bytes.Buffer) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r["level"] == "WARN" {
			out = append(out, r)
		}
	}
	return out
}

func TestListeners(t *testing.T) {
	t.Run("loopback unless told otherwise, without a word", func(t *testing.T) {
		for name, c := range map[string]localbq.Config{
			"nothing": {}, "ports only": {RESTAddr: ":0", GRPCAddr: ":0", GCSAddr: ":0"}, "IPv6": {RESTAddr: "[::1]:0"},
			"a single port": {SinglePort: true}, "a single port without a host": {SinglePort: true, RESTAddr: ":0"}, "a name": {GRPCAddr: "localhost:0"},
		} {
			var log bytes.Buffer
			c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
			bq := start(t, c)
			for _, addr := range []string{bq.REST(), bq.GRPC(), bq.GCS()} {
				host, _, err := net.SplitHostPort(addr)
				if err != nil || !net.ParseIP(host).IsLoopback() {
					t.Errorf("%s: it listens on %s, %v", name, addr, err)
				}
			}
			if w := warnings(t, &log); len(w) != 0 || len(bq.Exposed()) != 0 {
				t.Errorf("%s: warnings %v, exposed %v", name, w, bq.Exposed())
			}
		}
	})
	t.Run("beyond it every listener is named, with what that means", func(t *testing.T) {
		for name, c := range map[string]localbq.Config{
			"REST": {RESTAddr: "0.0.0.0:0"}, "gRPC": {GRPCAddr: "0.0.0.0:0"}, "Cloud Storage": {GCSAddr: "0.0.0.0:0"},
			"single port": {SinglePort: true, RESTAddr: "0.0.0.0:0"},
		} {
			var log bytes.Buffer
			c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
			bq := start(t, c)
			w := warnings(t, &log)
			if len(w) != 1 || w[0]["listener"] != name || !strings.Contains(w[0]["msg"].(string), "checks no credentials") {
				t.Errorf("%s: warnings %v", name, w)
			}
			if got := bq.Exposed(); !slices.Equal(got, []string{name}) {
				t.Errorf("%s: exposed %v", name, got)
			}
		}
	})
	t.Run("an address that is none", func(t *testing.T) {
		_, err := localbq.Start(t.Context(), localbq.Config{GCSAddr: "127.0.0.1"})
		if err == nil || !strings.Contains(err.Error(), `Cloud Storage: address "127.0.0.1": expected host:port`) {
			t.Errorf("got %v", err)
		}
	})
}

// knock makes one request with these headers, Host among them, and tells the answer's code.
func knock(t *testing.T, method, url string, headers map[string]string, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		if k == "Host" {
			q.Host = v
		}
		q.Header.Set(k, v)
	}
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func TestWebPages(t *testing.T) {
	const fault = `{"match": {"method": "tables.get"}, "action": {"reset": true}}`
	for name, c := range map[string]localbq.Config{"three ports": {}, "single port": {SinglePort: true}} {
		t.Run(name, func(t *testing.T) {
			c.Hosts = []string{"bigquery.test.internal"}
			bq := start(t, c)
			admin, rest, gcs := "http://"+bq.REST()+"/local/v1/faults", "http://"+bq.REST()+"/bigquery/v2/projects", "http://"+bq.GCS()+"/storage/v1/b?project=p"
			t.Run("a page of another origin drives nothing", func(t *testing.T) {
				for _, headers := range []map[string]string{
					{"Origin": "https://evil.example", "Content-Type": "text/plain"},
					{"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://" + bq.REST() + ".evil.example"}, {"Origin": "http://%zz"},
					{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "whatever"},
				} {
					if code, body := knock(t, "POST", admin, headers, fault); code != http.StatusForbidden || !strings.Contains(body, "web pages of other origins") {
						t.Errorf("%v: %d %s", headers, code, body)
					}
					for _, url := range []string{admin, rest, gcs} {
						if code, _ := knock(t, "GET", url, headers, ""); code != http.StatusForbidden {
							t.Errorf("%v: GET %s: %d", headers, url, code)
						}
					}
				}
				if code, _ := knock(t, "OPTIONS", admin, map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"}, ""); code != http.StatusForbidden {
					t.Errorf("preflight: %d", code)
				}
				if rules := bq.Faults().List(); len(rules) != 0 {
					t.Errorf("armed: %v", rules)
				}
			})
			t.Run("a name that somebody points at this machine is not answered", func(t *testing.T) {
				for _, host := range []string{"evil.example", "evil.example:9050", "127.0.0.1.evil.example:80", "localhost.evil.example", "EVIL.example."} {
					for _, url := range []string{admin, rest, gcs} {
						if code, body := knock(t, "GET", url, map[string]string{"Host": host}, ""); code != http.StatusForbidden || !strings.Contains(body, host) {
							t.Errorf("%s at %s: %d %s", host, url, code, body)
						}
					}
				}
			})
			t.Run("programs and pages of its own are answered", func(t *testing.T) {
				for _, headers := range []map[string]string{
					{}, {"Host": "localhost:9050"}, {"Host": "LOCALHOST."}, {"Host": "bq.localhost"}, {"Host": "[::1]:9050"}, {"Host": "192.0.2.7:9050"},
					{"Host": "bigquery:9050"}, {"Host": "BigQuery.test.internal:1"},
					{"Origin": "http://" + bq.REST(), "Host": bq.REST(), "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
				} {
					if code, body := knock(t, "GET", admin, headers, ""); code != http.StatusOK {
						t.Errorf("%v: %d %s", headers, code, body)
					}
				}
			})
		})
	}
}
