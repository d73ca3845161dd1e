package filequeue_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// failed is a record that failed at a place of its source.
func failed(split string, row int64, record string) stream.FailedRecord {
	return stream.FailedRecord{Connector: "c", Destination: "p.d.t", Reason: "r", Original: []byte(record), Split: split, At: stream.Location{Name: split, Row: row, Line: row + 1}}
}

func replay(t testing.TB, o filequeue.ReplayOptions, paths ...string) *filequeue.Replay {
	t.Helper()
	r, err := filequeue.NewReplay(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// records is what is left to replay.
func records(t testing.TB, r *filequeue.Replay) string {
	t.Helper()
	var all []string
	for rec, err := range r.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(rec.Value.Bytes))
	}
	return strings.Join(all, " ")
}

// finish is the state of an enumerator all of whose splits were read.
func finish(t testing.TB, r *filequeue.Replay, state []byte) []byte {
	t.Helper()
	e, err := r.NewEnumerator(t.Context(), stream.EnumeratorContext{State: state})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for {
		if _, err := e.Next(0); err != nil {
			break
		}
	}
	state, err = e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestReplaySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq.ndjson")
	q := queue(t, path, filequeue.Options{MaxFileBytes: 1500})
	var want []string
	for i := range 40 {
		put(t, q, "j", failed("f", int64(i), fmt.Sprint("record ", i)), failed("f", int64(i), fmt.Sprint("record ", i)))
		want = append(want, fmt.Sprint("record ", i))
	}
	streamtest.TestSource(t, streamtest.SourceHarness[files.Record]{
		New:      func(t streamtest.TB) stream.Source[files.Record] { return replaySource(t, path) },
		Want:     want,
		Text:     func(r stream.Record[files.Record]) string { return string(r.Value.Bytes) },
		RealTime: true,
	})
}

func replaySource(t streamtest.TB, path string) stream.Source[files.Record] {
	r, err := filequeue.NewReplay(t.Context(), []string{path}, filequeue.ReplayOptions{Job: "j"})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

func TestWhatIsReplayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq.ndjson")
	q := queue(t, path, filequeue.Options{})
	put(t, q, "j", failed("f", 0, "a"), failed("f", 1, "b"))
	put(t, q, "other", failed("f", 0, "x"))
	put(t, q, "j", failed("f", 1, "b"), // offered again by a job that was started again
		failed("f", 1, "b2"), failed("g", 1, "b"), // other contents, another split: other records
		stream.FailedRecord{Connector: "c", Row: []byte("row"), At: stream.Location{Name: "f", Row: 7}}) // no record
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(append(text, "no letter\n\n"...), `{"time":"20`...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := replay(t, filequeue.ReplayOptions{Job: "j"}, path)
	if got := records(t, r); got != "a b b2 b" {
		t.Errorf("replayed %q", got)
	}
	s := r.Survey()
	if s.Letters != 4 || s.Replayed != 0 || s.Duplicates != 1 || s.OtherJobs != 1 || s.NotHere != 1 || s.Damaged != 1 || s.Torn != 1 {
		t.Errorf("survey %+v", s)
	}
	if s.Why == nil || !strings.Contains(s.Why.Error(), path+":7: the record is not here") {
		t.Errorf("why: %v", s.Why)
	}
}

func TestReplayedLettersAreNotReplayedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq.ndjson")
	q := queue(t, path, filequeue.Options{MaxFileBytes: 700})
	put(t, q, "j", failed("f", 0, "a"), failed("f", 1, "b"))
	state := finish(t, replay(t, filequeue.ReplayOptions{Job: "j"}, path), nil)

	// Nothing new; then the same offered again, and new ones, in a file of their own after a while.
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j", State: state}, path)); got != "" {
		t.Errorf("replayed again: %q", got)
	}
	put(t, q, "j", failed("f", 1, "b"), failed("f", 2, "c"), failed("f", 3, "d"), failed("f", 4, "e"))
	r := replay(t, filequeue.ReplayOptions{Job: "j", State: state}, path)
	if got := records(t, r); got != "c d e" {
		t.Errorf("replayed %q, want the new ones", got)
	}
	if s := r.Survey(); s.Letters != 5 || s.Replayed != 2 || s.Duplicates != 1 {
		t.Errorf("survey %+v", s)
	}
	state = finish(t, r, nil)

	// A file is known by what it holds.
	moved := filepath.Join(filepath.Dir(path), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	put(t, q, "j", failed("f", 9, "z"))
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j", State: state}, moved, path)); got != "z" {
		t.Errorf("after a rename and a new file of the old name: replayed %q", got)
	}
	// One that was replayed and has been changed since is refused: where the new ones begin cannot be told.
	text, err := os.ReadFile(moved)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string][]byte{
		"changed": bytes.Replace(text, []byte(`"b"`), []byte(`"B"`), 1),
		"cut":     text[:bytes.IndexByte(text, '\n')+1],
		"grown":   bytes.Replace(text, []byte(`"b"`), []byte(`"bb"`), 1),
	} {
		if err := os.WriteFile(moved, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := filequeue.NewReplay(t.Context(), []string{moved}, filequeue.ReplayOptions{Job: "j", State: state})
		if err == nil || !strings.Contains(err.Error(), "has been changed since") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A restart hands out what was in the queue, and what has come since.
func TestReplayGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq.ndjson")
	q := queue(t, path, filequeue.Options{})
	put(t, q, "j", failed("f", 0, "a"), failed("f", 1, "b"))
	r := replay(t, filequeue.ReplayOptions{Job: "j"}, path)
	e, err := r.NewEnumerator(t.Context(), stream.EnumeratorContext{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := e.Snapshot() // nothing handed out
	if err != nil {
		t.Fatal(err)
	}
	put(t, q, "j", failed("f", 2, "c"))
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j", State: state}, path)); got != "a b c" {
		t.Errorf("replayed %q", got)
	}
	other := filepath.Join(t.TempDir(), "other")
	put(t, queue(t, other, filequeue.Options{}), "j", failed("f", 0, "a"))
	o := replay(t, filequeue.ReplayOptions{Job: "j", State: state}, other)
	if _, err := o.NewEnumerator(t.Context(), stream.EnumeratorContext{}); err == nil || !strings.Contains(err.Error(), "not among the files that were named") {
		t.Errorf("went on without the file it was reading: %v", err)
	}
}

func TestCopiesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq.ndjson")
	put(t, queue(t, path, filequeue.Options{}), "j", failed("f", 0, "a"))
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".copy", text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filequeue.NewReplay(t.Context(), []string{path, path + ".copy"}, filequeue.ReplayOptions{Job: "j"}); err == nil || !strings.Contains(err.Error(), "copy") {
		t.Errorf("a copy was taken: %v", err)
	}
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j"}, path, path)); got != "a" {
		t.Errorf("one file named twice: %q", got)
	}
}

func TestStatesOfOthers(t *testing.T) {
	for _, state := range []string{"", "{", `{"kind":"files.enumerator","version":1}`, `{"kind":"deadletter.filequeue.replay","version":2}`} {
		if _, err := filequeue.NewReplay(t.Context(), nil, filequeue.ReplayOptions{State: []byte(state)}); err == nil {
			t.Errorf("%q was taken for a state", state)
		}
	}
}

// Letters that fail again keep where their records came from, and are others than those that failed before.
func TestLettersThatFailAgain(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "dlq"), filepath.Join(dir, "again")
	put(t, queue(t, path, filequeue.Options{}), "j", failed("f", 4, "\x00\xff"), failed("f", 5, "b"))
	r := replay(t, filequeue.ReplayOptions{Job: "j"}, path)
	var all []stream.FailedRecord
	for rec, err := range r.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s:%d", path, len(all)+1); rec.At.String() != want {
			t.Errorf("the record is at %s, want %s", rec.At, want)
		}
		all = append(all, stream.FailedRecord{Connector: "d", Destination: "p.d.u", Reason: "worse", Original: bytes.Clone(rec.Value.Bytes),
			Split: rec.At.Split, At: rec.At.Location()})
	}
	put(t, r.Failures(queue(t, to, filequeue.Options{})), "replay of j", all...)
	l := letters(t, to)
	if len(l) != 2 || l[0].Job != "j" || l[0].File != "f" || l[0].Position != 4 || l[0].Line != 5 || l[0].Split != "f" || l[0].Replays != 1 ||
		l[0].Reason != "worse" || l[0].Destination != "p.d.u" || l[0].Connector != "d" || string(l[0].RecordBytes) != "\x00\xff" {
		t.Fatalf("got %+v", l)
	}
	if first := letters(t, path)[0]; first.Identity() == l[0].Identity() {
		t.Error("a letter that failed again passes for the one that failed before")
	}
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j"}, to)); got != "\x00\xff b" {
		t.Errorf("replayed %q", got)
	}
}

// What was looked through and has been damaged since ends the replay, and is not passed over.
func TestFileDamagedWhileItIsReplayed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":      func(b []byte) []byte { return b[:len(b)-10] },
		"no JSON":  func(b []byte) []byte { return append(append(b[:len(b)-10:len(b)-10], "xxxxxxxxx"...), '\n') },
		"a folder": nil,
	} {
		path := filepath.Join(t.TempDir(), "dlq")
		put(t, queue(t, path, filequeue.Options{}), "j", failed("f", 0, "a"), failed("f", 1, "b"))
		r := replay(t, filequeue.ReplayOptions{Job: "j"}, path)
		text, err := os.ReadFile(path)
		if err == nil && damage != nil {
			err = os.WriteFile(path, damage(text), 0o600)
		} else if err == nil {
			err = errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range r.Records(t.Context()) {
			last = err
		}
		if last == nil {
			t.Errorf("%s: the replay ended well", name)
		}
	}
}

// States of this release are read by later ones.
func TestStateIsReadForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlq")
	line := `{"time":"2026-11-30T11:48:49Z","job":"j","connector":"c","destination":"d","file":"f","position":%d,"reason":"r","record":"%s"}` + "\n"
	text := fmt.Sprintf(line+line+line, 1, "a", 2, "b", 3, "c")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The first two were handed out; of them the second is with no lane.
	state := `{"kind":"deadletter.filequeue.replay","version":1,"files":{"PRINT":{"end":END,"sum":"SUM"}},` +
		`"queue":[{"ID":"dlq[0:END]","Data":"DATA","Position":MIDDLE}]}`
	state = golden(state, text[:len(text)/3], text[:len(text)/3*2])
	if got := records(t, replay(t, filequeue.ReplayOptions{Job: "j", State: []byte(state)}, path)); got != "b c" && got != "c b" {
		t.Errorf("replayed %q", got)
	}
}

// golden fills the hashes in, which are those of the bytes before a place.
func golden(state, first, done string) string {
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:16])
	}
	part := `{"kind":"deadletter.filequeue.split","version":1,"print":"` + sum(first) + `","start":0,"end":` + fmt.Sprint(len(done)) + `,"line":0}`
	return strings.NewReplacer("END", fmt.Sprint(len(done)), "MIDDLE", fmt.Sprint(len(first)), "PRINT", sum(first), "SUM", sum(done), "DATA", base64.StdEncoding.EncodeToString([]byte(part))).Replace(state)
}
