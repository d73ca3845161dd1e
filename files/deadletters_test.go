package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/stream"
)

func TestDeadLetters(t *testing.T) {
	p := filepath.Join(t.TempDir(), "new", "dlq.ndjson")
	policy, err := DeadLetters(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := policy.NewHandler(t.Context(), stream.HandlerContext{Job: "j"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made before the first dead letter: %v", err)
	}
	for _, f := range []stream.FailedRecord{
		{Connector: "bigquery", Destination: stream.Unresolved, Reason: "no <event>", Original: []byte(`{"a":"<é\n"`), At: stream.Location{Name: "f", Line: 7, Row: 100}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Original: []byte{0xff, 0}, At: stream.Location{Name: "f", Line: 8}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Row: []byte{1}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "r", Original: []byte{}},
	} {
		if err := h.Handle(t.Context(), &f); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
		t.Fatal(err)
	}
	l := letters(t, p)
	if len(l) != 4 || *l[0].Record != `{"a":"<é\n"` || l[0].Line != 7 || l[0].File != "f" || l[0].Reason != "no <event>" || l[0].Job != "j" || l[0].Time.IsZero() {
		t.Errorf("first: %+v", l[0])
	}
	if l[1].Record != nil || !bytes.Equal(l[1].RecordBytes, []byte{0xff, 0}) || !bytes.Equal(l[2].RowBytes, []byte{1}) || l[3].Record == nil {
		t.Errorf("records: %+v", l[1:])
	}
}

func letters(t *testing.T, p string) (all []DeadLetter) {
	t.Helper()
	f, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var l DeadLetter
		if err := json.Unmarshal(s.Bytes(), &l); err == nil {
			all = append(all, l)
		}
	}
	return all
}

func TestDeadLettersAfterATornLine(t *testing.T) {
	p := filepath.Join(t.TempDir(), "dlq.ndjson")
	if err := os.WriteFile(p, []byte(`{"reason":"cu`), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, _ := DeadLetters(p)
	h, _ := policy.NewHandler(t.Context(), stream.HandlerContext{})
	if err := h.Handle(t.Context(), &stream.FailedRecord{Reason: "whole"}); err != nil {
		t.Fatal(err)
	}
	h.Close()
	if l := letters(t, p); len(l) != 1 || l[0].Reason != "whole" {
		t.Errorf("got %+v", l)
	}
}

func TestDeadLettersFromManyLanes(t *testing.T) {
	p := filepath.Join(t.TempDir(), "dlq.ndjson")
	policy, _ := DeadLetters(p)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			h, _ := policy.NewHandler(t.Context(), stream.HandlerContext{})
			for range 50 {
				if err := h.Handle(t.Context(), &stream.FailedRecord{Original: bytes.Repeat([]byte("x"), 10_000)}); err != nil {
					t.Error(err)
				}
			}
			if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if l := letters(t, p); len(l) != 400 {
		t.Errorf("got %d whole lines, want 400", len(l))
	}
}

func TestDeadLettersThatCannotBeWritten(t *testing.T) {
	for name, path := range map[string]string{
		"a file in the way of its folder": filepath.Join(write(t, "file", nil), "dlq"), "a folder": t.TempDir(), "no name": "",
	} {
		if _, err := DeadLetters(path); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	dir := t.TempDir()
	policy, err := DeadLetters(filepath.Join(dir, "new", "dlq"))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "new")); err != nil || len(left) > 0 {
		t.Errorf("the check left %v, %v", left, err)
	}
	// The folder goes away, or becomes a file, while the job runs.
	if err := errors.Join(os.Remove(filepath.Join(dir, "new")), os.WriteFile(filepath.Join(dir, "new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h, _ := policy.NewHandler(t.Context(), stream.HandlerContext{})
	if err := h.Handle(t.Context(), &stream.FailedRecord{}); err == nil {
		t.Error("a dead letter was lost without an error")
	}
}
