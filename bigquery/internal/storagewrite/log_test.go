package storagewrite

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
)

// logged are the lines of a log in JSON whose message is one of these.
func logged(t *testing.T, log string, msgs ...string) (lines []map[string]any) {
	t.Helper()
	for text := range strings.Lines(log) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		for _, msg := range msgs {
			if line["msg"] == msg {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// Every repair tells at INFO what failed, where and why, which attempt of how many comes and after which wait; never what
// rows hold, nor what the service says about single rows.
func TestRepairsAreLogged(t *testing.T) {
	const path = "projects/p/datasets/d/tables/t/streams/_default"
	t.Run("rounds", func(t *testing.T) {
		b, log := logBench(t, &far{appends: map[string][]string{"": {"UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "ok"}}})
		b.write("Sekret")
		b.flush()
		lines := logged(t, log.String(), "append failed: repairing", "re-append failed: trying again")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want one for the failure and one for each round that failed: %s", len(lines), log)
		}
		for i, line := range lines {
			if line["level"] != "INFO" || line["lane"] != float64(0) || line["destination"] != "p.d.t" || line["stream"] != path || line["code"] != "UNAVAILABLE" ||
				line["cause"] == "" || line["kind"] != "transient" || line["of"] != float64(3) {
				t.Errorf("line %d is %v", i, line)
			}
			if i > 0 && (line["attempt"] != float64(i) || line["backoff"] == nil) {
				t.Errorf("round %d is %v", i, line)
			}
		}
		if strings.Contains(log.String(), "Sekret") {
			t.Errorf("the log has a row: %s", log)
		}
	})
	t.Run("new columns", func(t *testing.T) {
		b, log := logBench(t, answering("MM", "MM", "MM", "ok"))
		b.w.cfg.Update.AllowNewFields, b.w.tables.update.AllowNewFields = true, true
		b.write("Sekret")
		b.flush()
		lines := logged(t, log.String(), "the write service does not know the table's new columns yet: its rows wait, and the lane with them")
		if len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["destination"] != "p.d.t" {
			t.Errorf("logged %s", log)
		}
		if lines := logged(t, log.String(), "table compared with the schema of rows"); len(lines) != 1 || lines[0]["outcome"] != "updated" {
			t.Errorf("logged %s", log)
		}
	})
	t.Run("a table", func(t *testing.T) {
		b, log := logBench(t, &far{appends: map[string][]string{"": {"PERMISSION_DENIED", "ok"}}})
		b.write("Sekret")
		b.flush()
		lines := logged(t, log.String(), "table may not exist: creating it")
		if len(lines) != 1 || lines[0]["level"] != "INFO" || lines[0]["destination"] != "p.d.t" || lines[0]["code"] != "PERMISSION_DENIED" {
			t.Errorf("logged %s", log)
		}
	})
	t.Run("rows", func(t *testing.T) {
		b, log := logBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}})
		b.write("aa", "bb")
		b.sendPending()
		b.far.answerWith(&storagepb.AppendRowsResponse{RowErrors: []*storagepb.RowError{{Index: 1, Message: "cannot convert Sekret"}}})
		b.flush()
		if got := b.ledger.Reports()[0].LastError; strings.Contains(log.String()+got.Text, "Sekret") || got.Code != "INVALID_ARGUMENT" || got.At.IsZero() {
			t.Errorf("the last error is %+v, and the log %s", got, log)
		}
	})
}

// The same for streams of a lane's own: which one, and at which offset.
func TestRecoveriesAreLogged(t *testing.T) {
	log := new(strings.Builder)
	inJSON := func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(log, nil)) }
	t.Run("rounds", func(t *testing.T) {
		log.Reset()
		b := newBuffered(t, &far{appends: map[string][]string{"": {"UNAVAILABLE", "UNAVAILABLE", "ok"}}}, inJSON)
		b.write("Sekret")
		b.flush()
		lines := logged(t, log.String(), "append failed: repairing", "append failed: trying again")
		if len(lines) < 2 {
			t.Fatalf("%d lines: %s", len(lines), log)
		}
		for _, line := range lines {
			stream, _ := line["stream"].(string)
			if line["level"] != "INFO" || line["destination"] != "p.d.t" || !strings.HasPrefix(stream, "projects/p/datasets/d/tables/t/streams/s") ||
				line["offset"] != float64(0) || line["code"] != "UNAVAILABLE" || line["attempt"] == nil || line["of"] != float64(3) {
				t.Errorf("logged %v", line)
			}
		}
		if len(logged(t, log.String(), "stream created")) != 1 || strings.Contains(log.String(), "Sekret") {
			t.Errorf("logged %s", log)
		}
	})
	t.Run("a stream that cannot be created", func(t *testing.T) {
		log.Reset()
		b := newBuffered(t, &far{makes: []string{"UNAVAILABLE", "ok"}}, inJSON)
		b.write("aa")
		b.flush()
		lines := logged(t, log.String(), "create write stream failed: trying again")
		if len(lines) != 1 || lines[0]["stream"] != nil || lines[0]["attempt"] != float64(1) {
			t.Errorf("logged %s", log)
		}
	})
}

// logBench is a bench that logs JSON.
func logBench(t *testing.T, f *far) (*bench, *strings.Builder) {
	log := new(strings.Builder)
	return newBench(t, f, func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(log, nil)) }), log
}
