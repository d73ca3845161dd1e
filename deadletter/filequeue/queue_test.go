package filequeue_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/stream"
)

func queue(t testing.TB, path string, o filequeue.Options) *filequeue.Queue {
	t.Helper()
	q, err := filequeue.New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// put offers records to a queue, flushes and closes.
func put(t testing.TB, p stream.FailurePolicy, job string, all ...stream.FailedRecord) {
	t.Helper()
	h, err := p.NewHandler(t.Context(), stream.HandlerContext{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := h.Handle(t.Context(), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
		t.Fatal(err)
	}
}

// letters is every letter of a queue.
func letters(t testing.TB, path string) (all []deadletter.Letter) {
	t.Helper()
	for e := range entries(t, path) {
		if e.Err == nil {
			all = append(all, e.Letter)
		}
	}
	return all
}

func entries(t testing.TB, path string) func(yield func(filequeue.Entry) bool) {
	t.Helper()
	names, err := filequeue.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(filequeue.Entry) bool) {
		for _, name := range names {
			for e, err := range filequeue.Read(name) {
				if err != nil {
					t.Fatal(err)
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

func TestLetters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dlq.ndjson")
	q := queue(t, path, filequeue.Options{})
	put(t, q, "j")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made before the first dead letter: %v", err)
	}
	put(t, q, "j",
		stream.FailedRecord{Connector: "bigquery", Destination: stream.Unresolved, Reason: "no <event>", Original: []byte(`{"a":"<é\n"`),
			At: stream.Location{Name: "f", Line: 7, Row: 100, Context: "a,b"}, Split: "f[0:9]"},
		stream.FailedRecord{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Original: []byte{0xff, 0}, At: stream.Location{Name: "f", Line: 8}},
		stream.FailedRecord{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Row: []byte{1}},
		stream.FailedRecord{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Original: []byte{}},
		stream.FailedRecord{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Original: []byte("be"), Err: fmt.Errorf("long: %w", stream.ErrCut)},
	)
	l := letters(t, path)
	if len(l) != 5 || *l[0].Record != `{"a":"<é\n"` || l[0].Line != 7 || l[0].Position != 100 || l[0].File != "f" || l[0].Split != "f[0:9]" ||
		l[0].Context != "a,b" || l[0].Reason != "no <event>" || l[0].Job != "j" || l[0].Time.IsZero() {
		t.Errorf("first: %+v", l[0])
	}
	for i, want := range []struct {
		kind    deadletter.Kind
		payload string
		fit     bool
	}{{"record", `{"a":"<é\n"`, true}, {"record", "\xff\x00", true}, {"row", "\x01", false}, {"record", "", true}, {"record", "be", false}} {
		kind, payload := l[i].Payload()
		if kind != want.kind || string(payload) != want.payload || (l[i].Replayable() == nil) != want.fit {
			t.Errorf("letter %d: %s %q, replayable: %v", i, kind, payload, l[i].Replayable())
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: others can read it", info.Mode(), err)
	}
}

func TestTornLines(t *testing.T) {
	whole := `{"time":"2026-01-02T03:04:05Z","connector":"c","destination":"d","file":"f","position":1,"reason":"whole"}` + "\n"
	for name, c := range map[string]struct{ before, after string }{
		"the only line":          {`{"time":"2026-`, ""},
		"a line behind others":   {whole + `{"ti`, whole},
		"nothing torn":           {whole, whole},
		"somebody's own text":    {"my notes", "my notes\n"},
		"a torn line of 200 KiB": {whole + `{"time":"` + strings.Repeat("x", 200<<10), whole},
		"an empty file":          {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dlq")
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			put(t, queue(t, path, filequeue.Options{}), "j", stream.FailedRecord{Connector: "c", Reason: "new"})
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rest, ok := strings.CutPrefix(string(text), c.after)
			if l, err := deadletter.ParseLine([]byte(rest)); !ok || err != nil || l.Reason != "new" || strings.Count(rest, "\n") != 1 {
				t.Errorf("got %.200q, want %.200q and one letter", text, c.after)
			}
		})
	}
}

// A line that another process may be about to complete is not cut, but ended.
func TestTornLineOfAFileThatOthersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq")
	q := queue(t, path, filequeue.Options{})
	first, _ := q.NewHandler(t.Context(), stream.HandlerContext{})
	defer first.Close()
	if err := first.Handle(t.Context(), &stream.FailedRecord{Connector: "c", Reason: "1"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"20`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	put(t, q, "", stream.FailedRecord{Connector: "c", Reason: "2"})
	var got []string
	for e := range entries(t, path) {
		got = append(got, fmt.Sprintf("%d %q %v", e.Line, e.Letter.Reason, e.Err != nil))
	}
	if want := `1 "1" false, 2 "" true, 3 "2" false`; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTornLineIsToldApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq")
	if err := os.WriteFile(path, []byte("{}\n\nnot\xff\n"+`{"time":"2026`), 0o600); err != nil {
		t.Fatal(err)
	}
	var torn, damaged int
	for e := range entries(t, path) {
		switch {
		case errors.Is(e.Err, filequeue.ErrTorn):
			torn++
		case errors.Is(e.Err, deadletter.ErrNoLetter):
			damaged++
		default:
			t.Errorf("line %d: %v", e.Line, e.Err)
		}
	}
	if torn != 1 || damaged != 2 {
		t.Errorf("torn %d, damaged %d", torn, damaged)
	}
}

func TestManyLanes(t *testing.T) {
	for name, o := range map[string]filequeue.Options{"one file": {MaxFileBytes: filequeue.NoLimit}, "many files": {MaxFileBytes: 100_000}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dlq.ndjson")
			q := queue(t, path, o)
			var wg sync.WaitGroup
			for lane := range 8 {
				wg.Go(func() {
					h, _ := q.NewHandler(t.Context(), stream.HandlerContext{Lane: lane})
					for n := range 50 {
						f := stream.FailedRecord{Connector: "c", Original: bytes.Repeat([]byte("x"), 10_000), At: stream.Location{Row: int64(n)}}
						if err := h.Handle(t.Context(), &f); err != nil {
							t.Error(err)
						}
					}
					if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			seen := map[[2]int64]int{}
			for _, l := range letters(t, path) {
				seen[[2]int64{int64(l.Lane), l.Position}]++
			}
			if len(seen) != 400 {
				t.Errorf("got %d letters, want 400", len(seen))
			}
			names, _ := filequeue.Files(path)
			if limited := o.MaxFileBytes > 0; limited != (len(names) > 1) {
				t.Errorf("files %v", names)
			}
			for _, name := range names {
				if info, err := os.Stat(name); err != nil || o.MaxFileBytes > 0 && info.Size() > 100_000+8*11_000 {
					t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
				}
			}
		})
	}
}

func TestFilesOfAQueue(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"q.ndjson", "q.000002.ndjson", "q.000010.ndjson", "q.1000000.ndjson", // these are
		"q.000001.ndjson", "q.2.ndjson", "q.0000003.ndjson", "q.-00004.ndjson", "q.000005.json", "xq.000002.ndjson", "q.ndjson.bak", "q.again.ndjson"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := filequeue.Files(filepath.Join(dir, "q.ndjson"))
	if err != nil || len(got) != 4 || got[3] != filepath.Join(dir, "q.1000000.ndjson") {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := filequeue.Files(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a queue that is not there: %v", err)
	}
	if got := filequeue.Name("dir.d/.hidden", 2); got != "dir.d/.hidden.000002" {
		t.Errorf("a hidden file goes on in %s", got)
	}
}

func TestQueuesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a file in the way of its folder": filepath.Join(file, "dlq"), "a folder": dir, "no name": "", "NUL": "a\x00b"} {
		if _, err := filequeue.New(path, filequeue.Options{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := filequeue.New(file, filequeue.Options{MaxFileBytes: -2}); err == nil {
		t.Error("a negative size was taken")
	}
	q := queue(t, filepath.Join(dir, "new", "dlq"), filequeue.Options{})
	if left, err := os.ReadDir(filepath.Join(dir, "new")); err != nil || len(left) > 0 {
		t.Errorf("the check left %v, %v", left, err)
	}
	// The folder goes away, or becomes a file, while the job runs.
	if err := errors.Join(os.Remove(filepath.Join(dir, "new")), os.WriteFile(filepath.Join(dir, "new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h, _ := q.NewHandler(t.Context(), stream.HandlerContext{})
	if err := h.Handle(t.Context(), &stream.FailedRecord{}); err == nil {
		t.Error("a dead letter was lost without an error")
	}
}

// A file that is deleted takes the letters in it along: the flush must not say that they are safe. The next attempt offers them
// again, to a new file.
func TestFileRemovedWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq")
	q := queue(t, path, filequeue.Options{})
	h, _ := q.NewHandler(t.Context(), stream.HandlerContext{})
	f := stream.FailedRecord{Connector: "c", Reason: "r"}
	if err := errors.Join(h.Handle(t.Context(), &f), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if err := h.Flush(t.Context()); !errors.Is(err, filequeue.ErrRemoved) {
		t.Errorf("the flush says %v", err)
	}
	h.Close()
	put(t, q, "", f)
	if l := letters(t, path); len(l) != 1 {
		t.Errorf("%d letters after the next attempt", len(l))
	}
	// One that was put away under another name holds what it holds.
	h, _ = q.NewHandler(t.Context(), stream.HandlerContext{})
	defer h.Close()
	if err := errors.Join(h.Handle(t.Context(), &f), os.Rename(path, path+".old"), h.Flush(t.Context())); err != nil {
		t.Error(err)
	}
	if l := letters(t, path+".old"); len(l) != 2 {
		t.Errorf("%d letters in the file that was put away", len(l))
	}
}

// Whatever text a letter holds, it is one line that no terminal obeys, and its record comes back as it was.
func TestHostileLetters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq")
	hostile := []string{"a\nb\r\n", "nul \x00", "invalid \xff\xfe", "\x1b[2J\x1b]0;owned\x07", "csi \u009b31m", "bidi \u202e\u2066", "line \u2028\u2029",
		`"}` + "\n" + `{"time":"2026-01-01T00:00:00Z"`, "`'\"\\", "../../etc/passwd", strings.Repeat("é", 1<<20), "\x7f"}
	var all []stream.FailedRecord
	for _, s := range hostile {
		all = append(all, stream.FailedRecord{Connector: s, Destination: s, Reason: s, Original: []byte(s), Split: s, At: stream.Location{Name: s, Context: s}})
	}
	put(t, queue(t, path, filequeue.Options{}), "job", all...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte{'\n'}); n != len(hostile) {
		t.Errorf("%d lines, want %d", n, len(hostile))
	}
	for _, r := range string(text) {
		if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2066 || r == 0x2028) {
			t.Errorf("the file has %U as it is", r)
		}
	}
	for i, l := range letters(t, path) {
		if _, payload := l.Payload(); string(payload) != hostile[i] {
			t.Errorf("%.40q came back as %.40q", hostile[i], payload)
		}
		if want := strings.ToValidUTF8(hostile[i], "\ufffd"); l.Reason != want && !strings.Contains(hostile[i], "\xff") {
			t.Errorf("reason %.40q came back as %.40q", want, l.Reason)
		}
	}
}
