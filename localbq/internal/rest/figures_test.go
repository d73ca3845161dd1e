package rest

import (
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/profile"
)

func TestFiguresTrail(t *testing.T) {
	f := setup(t, func(d *Deps) { d.Profile.Windows.NumRows = profile.Window{Min: 5 * time.Minute, Max: 5 * time.Minute} })
	f.dataset()
	f.do("POST", tablesPath, `{"tableReference":{"tableId":"t"},"schema":{"fields":[{"name":"a","type":"INTEGER"}]}}`).ok()
	figures := func(rows, bytes string, buffer any) {
		t.Helper()
		got := f.do("GET", tablesPath+"/t", "").ok()
		if got.at("numRows") != rows || got.at("numBytes") != bytes {
			t.Errorf("%v rows of %v bytes, want %s of %s", got.at("numRows"), got.at("numBytes"), rows, bytes)
		}
		if b := compact(t, got.at("streamingBuffer")); b != compact(t, buffer) {
			t.Errorf("streaming buffer %s, want %s", b, compact(t, buffer))
		}
	}
	buffer := func(rows, bytes string, oldest time.Time) map[string]any {
		return map[string]any{"estimatedRows": rows, "estimatedBytes": bytes, "oldestEntryTime": millis(oldest)}
	}
	figures("0", "0", nil)
	first := f.clock.Now()
	f.write(f.ref("t"), `[{"a":1},{"a":2}]`)
	figures("0", "0", buffer("2", "16", first))
	f.clock.Advance(4 * time.Minute)
	second := f.clock.Now()
	f.write(f.ref("t"), `[{"a":3}]`)
	figures("0", "0", buffer("3", "24", first))
	f.clock.Advance(time.Minute + time.Second)
	figures("2", "16", buffer("1", "8", second))
	f.clock.Advance(4 * time.Minute)
	figures("3", "24", nil)
}
