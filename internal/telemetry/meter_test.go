package telemetry

import (
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/stream"
)

func TestMeterShowsSeries(t *testing.T) {
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	sent := stream.Instrument{Name: "millrace.bigquery.sink.records_sent", Unit: "1", Help: "Rows sent."}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				m.Counter(sent, stream.Label{Key: "lane", Value: "0"}).Add(1)
			}
		})
	}
	wg.Wait()
	m.Counter(sent, stream.Label{Key: "lane", Value: "a\"b\n\xff"})
	m.Gauge(stream.Instrument{Name: "millrace.engine.commit_duration_ms", Unit: "ms", Help: "Time."}).Set(8)
	m.Counter(stream.Instrument{Name: "millrace.engine.bytes_read", Unit: "By", Help: "Bytes."}).Add(9)
	m.Gauge(stream.Instrument{Name: "millrace.engine.lanes", Unit: "1", Help: "Lanes."}).Set(7)

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(w.Body)
	for _, want := range []string{
		`millrace_bigquery_sink_records_sent_total{lane="0"} 400`,
		`# HELP millrace_bigquery_sink_records_sent_total Rows sent.`,
		"millrace_engine_lanes 7", `} 0`, "millrace_engine_commit_duration_ms 8", "millrace_engine_bytes_read_total 9",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %q in:\n%s", want, body)
		}
	}
}
