package deadletter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/stream"
)

func TestIdentity(t *testing.T) {
	record := func(change func(*deadletter.Letter)) [16]byte {
		l := deadletter.Letter{Time: time.Unix(1, 0), Job: "j", File: "f", Split: "s", Position: 7, Reason: "r", Lane: 1, Destination: "d"}
		l.SetRecord([]byte("text"))
		change(&l)
		return l.Identity()
	}
	same := record(func(*deadletter.Letter) {})
	for name, change := range map[string]func(*deadletter.Letter){
		"time": func(l *deadletter.Letter) { l.Time = time.Unix(2, 0) }, "reason": func(l *deadletter.Letter) { l.Reason = "x" },
		"lane": func(l *deadletter.Letter) { l.Lane = 2 }, "destination": func(l *deadletter.Letter) { l.Destination = "e" },
		"as bytes": func(l *deadletter.Letter) { l.Record, l.RecordBytes = nil, []byte("text") },
	} {
		if record(change) != same {
			t.Errorf("another %s makes another letter", name)
		}
	}
	for name, change := range map[string]func(*deadletter.Letter){
		"job": func(l *deadletter.Letter) { l.Job = "k" }, "split": func(l *deadletter.Letter) { l.Split = "t" }, "file": func(l *deadletter.Letter) { l.File = "g" },
		"position": func(l *deadletter.Letter) { l.Position = 8 }, "record": func(l *deadletter.Letter) { l.SetRecord([]byte("texu")) },
		"replays": func(l *deadletter.Letter) { l.Replays = 1 }, "kind": func(l *deadletter.Letter) { l.Record, l.RowBytes = nil, []byte("text") },
		"shift": func(l *deadletter.Letter) { l.Job, l.File = "jf", "" },
	} {
		if record(change) == same {
			t.Errorf("another %s makes the same letter", name)
		}
	}
}

// Lines of this release are read by later ones.
func TestLineIsReadForEver(t *testing.T) {
	l, err := deadletter.ParseLine([]byte(`{"time":"2026-11-30T11:48:49.959321414Z","job":"orders","connector":"bigquery","destination":"p.d.fixed","file":"in.csv","line":8,` +
		`"position":123,"split":"in.csv[0:200]","lane":1,"reason":"R-TYPE: field n","replays":1,"context":"id,n","record_base64":"/wA=","cut":true}` + "\n"))
	want := deadletter.Letter{Time: time.Date(2026, 11, 30, 11, 48, 49, 959321414, time.UTC), Job: "orders", Connector: "bigquery", Destination: "p.d.fixed",
		File: "in.csv", Line: 8, Position: 123, Split: "in.csv[0:200]", Lane: 1, Reason: "R-TYPE: field n", Replays: 1, Context: "id,n", RecordBytes: []byte{0xff, 0}, Cut: true}
	if diff := cmp.Diff(want, l); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// What is wrong with a line is said without what is in it.
func TestErrorsQuoteNothing(t *testing.T) {
	for _, line := range []string{"secret", `{"time":"secret"}`, `{"line":"secret"}`, `{"record_base64":"secret!"}`, `{"record":{"secret":1}}`, `["secret"]`,
		`{"record":"secret"}`, `{"time":"2026-01-01T00:00:00Z","record":"secret`, ""} {
		_, err := deadletter.ParseLine([]byte(line))
		if !errors.Is(err, deadletter.ErrNoLetter) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// FuzzLine holds two things: whatever a line holds, reading it ends well or badly; and whatever a letter holds, its line is one line
// that no terminal obeys, and its record and identity come back.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"time":"2026-01-01T00:00:00Z","connector":"c","record":"x"}`), "a\nb\x1b\u009b", []byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, line []byte, text string, record []byte) {
		if l, err := deadletter.ParseLine(line); err == nil {
			if _, err := l.AppendLine(nil); err != nil && l.Time.Year() <= 9999 {
				t.Errorf("%s was read and cannot be written: %v", line, err)
			}
		}
		l := deadletter.Of(&stream.FailedRecord{Connector: "c" + text, Destination: text, Reason: text, Original: record, Split: text,
			At: stream.Location{Name: text, Row: 7, Context: text}}, stream.HandlerContext{Job: text, Lane: 3}, time.Now())
		out, err := l.AppendLine(nil)
		if err != nil || bytes.Count(out, []byte{'\n'}) != 1 || out[len(out)-1] != '\n' || !json.Valid(out) {
			t.Fatalf("%q, %v", out, err)
		}
		for _, r := range string(out[:len(out)-1]) {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Errorf("%U as it is in %q", r, out)
			}
		}
		back, err := deadletter.ParseLine(out)
		if err != nil {
			t.Fatal(err)
		}
		if kind, payload := back.Payload(); record != nil && (kind != deadletter.Record || !bytes.Equal(payload, record)) {
			t.Errorf("%q came back as %s %q", record, kind, payload)
		}
		out, err = back.AppendLine(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := deadletter.ParseLine(out)
		if diff := cmp.Diff(back, again); diff != "" || err != nil || again.Identity() != back.Identity() {
			t.Errorf("written and read again: %v\n%s", err, diff)
		}
	})
}
