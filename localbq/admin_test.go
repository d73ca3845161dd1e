package localbq_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq"
)

// admin calls the admin interface and decodes its answer into v, which may be nil.
func admin(t *testing.T, bq *localbq.Instance, method, path, body string, v any) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+bq.REST()+"/local/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	r, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%s %s answered %q: %v", method, path, b, err)
		}
	}
	return r.StatusCode
}

func TestAdminFaults(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	var list []struct {
		Name  string
		Fired int
	}
	rule := `{"name":"r","match":{"method":"AppendRows","table":"d.t","nth":1},"action":{"status":{"code":"ABORTED","message":"by hand"}}}`
	if code := admin(t, bq, "POST", "faults", rule, &list); code != 200 || len(list) != 1 || list[0].Name != "r" {
		t.Fatalf("added: %d %+v", code, list)
	}
	open().refused(ids.first(t, stream("d.t"), "id: 1"), codes.Aborted, "by hand")
	admin(t, bq, "GET", "faults", "", &list)
	if list[0].Fired != 1 {
		t.Errorf("fired %d times, want once", list[0].Fired)
	}
	if code := admin(t, bq, "DELETE", "faults", "", &list); code != 200 || len(list) != 0 {
		t.Errorf("cleared: %d %+v", code, list)
	}
	if code := admin(t, bq, "POST", "faults", `[{"name":"a","action":{"hang":true},"match":{"table":"d.other"}}]`, nil); code != 200 {
		t.Errorf("an array of rules: %d", code)
	}
	if code := admin(t, bq, "POST", "faults/a/release", "", nil); code != 200 {
		t.Errorf("release: %d", code)
	}
	var refused struct{ Error string }
	for path, body := range map[string]string{"faults": `{"actoin":{}}`, "faults/none/release": "", "barriers/7/release": "", "nothing": "", "tables/d.none/mode": ""} {
		method := "POST"
		if strings.HasPrefix(path, "tables") {
			method, body = "PUT", `{"mode":"null"}`
		}
		refused.Error = ""
		if code := admin(t, bq, method, path, body, &refused); code < 400 || refused.Error == "" {
			t.Errorf("%s: %d %q", path, code, refused.Error)
		}
	}
}

func TestAdminBarrier(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	if code := admin(t, bq, "GET", "barriers/next?timeout=1ms", "", nil); code != http.StatusNoContent {
		t.Errorf("without a barrier: %d, want 204", code)
	}
	admin(t, bq, "POST", "faults", `{"name":"b","phase":"applied","action":{"barrier":true}}`, nil)
	c := open()
	if err := c.Send(ids.first(t, stream("d.t"), "id: 1")); err != nil {
		t.Fatal(err)
	}
	var b struct {
		ID          int64
		Rule, Phase string
		Call        struct{ Method, Table string }
	}
	if code := admin(t, bq, "GET", "barriers/next", "", &b); code != 200 || b.Rule != "b" || b.Phase != "applied" || b.Call.Method != "AppendRows" {
		t.Fatalf("%d %+v", code, b)
	}
	if code := admin(t, bq, "POST", "barriers/1/release", "", nil); code != 200 {
		t.Errorf("release: %d", code)
	}
	if r, err := c.Recv(); err != nil || r.GetError() != nil {
		t.Errorf("answer %v, %v", r, err)
	}
	admin(t, bq, "POST", "faults", `{"name":"c","action":{"barrier":true}}`, nil)
	if err := c.Send(ids.first(t, stream("d.t"), "id: 2")); err != nil {
		t.Fatal(err)
	}
	admin(t, bq, "GET", "barriers/next", "", nil)
	if code := admin(t, bq, "POST", "barriers/2/cut", "", nil); code != 200 {
		t.Errorf("cut: %d", code)
	}
	if r, err := c.Recv(); err == nil {
		t.Errorf("answer %v after the cut", r)
	}
	wantContents(t, bq, "d.t", `{"id":1}`)
}

func TestAdminClock(t *testing.T) {
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Clock: clock})
	var now struct{ Now time.Time }
	before := clock.Now()
	if code := admin(t, bq, "POST", "clock/advance", `{"by":"6h"}`, &now); code != 200 || !now.Now.Equal(before.Add(6*time.Hour)) {
		t.Errorf("%d %v", code, now.Now)
	}
	for _, by := range []string{"-1s", "2562047h"} {
		for range 40 { // further than the years that timestamps can show
			if code := admin(t, bq, "POST", "clock/advance", `{"by":"`+by+`"}`, &now); code == 400 {
				break
			}
		}
		if code := admin(t, bq, "POST", "clock/advance", `{"by":"`+by+`"}`, nil); code != 400 {
			t.Errorf("by %s: %d, want 400", by, code)
		}
	}
	if code := admin(t, bq, "GET", "clock", "", &now); code != 200 || now.Now.Year() < 9000 {
		t.Errorf("%d %v", code, now.Now)
	}
	if code := admin(t, start(t, localbq.Config{}), "POST", "clock/advance", `{"by":"6h"}`, nil); code != http.StatusConflict {
		t.Errorf("a clock that runs by itself: %d, want 409", code)
	}
}

func TestAdminAudit(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	open().append(ids.first(t, stream("d.t"), "id: 1", "id: 2"))
	var report struct {
		Rows            int64
		AckedNotVisible []any
		AppliedTwice    []any
		Unaccounted     []any
	}
	if code := admin(t, bq, "GET", "audit/d.t", "", &report); code != 200 || report.Rows != 2 || len(report.AckedNotVisible)+len(report.AppliedTwice)+len(report.Unaccounted) != 0 {
		t.Errorf("%d %+v", code, report)
	}
	r, err := http.Get("http://" + bq.REST() + "/local/v1/audit")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer r.Body.Close()
	lines := json.NewDecoder(r.Body)
	appends := 0
	for {
		var record localbq.AuditRecord
		if err := lines.Decode(&record); err != nil {
			break
		}
		if record.RPC != "AppendRows" {
			continue
		}
		appends++
		if record.Table != path("d.t") || record.Rows != 2 || len(record.Digests) != 2 || record.Digests[0] == record.Digests[1] ||
			record.Effect != "visible" || record.First != 0 || record.Count != 2 || record.Code != "OK" || record.Fate != "sent" ||
			record.After <= record.Before || record.Request == 0 || record.Principal != "anonymous@local" || record.Conn == "" {
			t.Errorf("record %+v", record)
		}
	}
	if appends != 1 {
		t.Errorf("%d records of appends, want 1", appends)
	}
	if code := admin(t, bq, "PUT", "tables/d.t/mode", `{"mode":"null"}`, nil); code != 200 {
		t.Errorf("mode: %d", code)
	}
	if _, err := bq.Batches("d.t"); err == nil {
		t.Error("the table can still be read")
	}
}
