package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// FuzzFile opens any file as a log, and any note as one of the store's: records are read and made, or an error names the file.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"seq":1,"effect":"visible","after":7}`+"\n"+`{"seq":2`), []byte(`{"rpc":"AppendRows","digests":["AAAA"]}`))
	f.Add([]byte("{}\nnull\n[]\n"), []byte("{"))
	f.Add([]byte("\x00\x00\n{}\n"), []byte{})
	f.Fuzz(func(t *testing.T, file, note []byte) {
		path := filepath.Join(t.TempDir(), "audit")
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		hostile.Proportional(t, len(file)+len(note), 512, 8<<20, func() { // a reader of 1 MiB, now and again
			l, err := Open(Options{Path: path})
			if err != nil {
				if !strings.Contains(err.Error(), path) {
					t.Errorf("the error names no file: %v", err)
				}
				return
			}
			_ = l.Recovered(note, Record{Effect: Visible, After: 9})
			for _, err := range l.Records() {
				if err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestDamagedFile tells a line that a killed process has left from one that has changed.
func TestDamagedFile(t *testing.T) {
	const good = `{"seq":1}` + "\n"
	for content, want := range map[string]string{
		good + `{"seq":2`:               "",
		good + "\x00\x00\x00\n":         "",
		good + `{"seq"2}` + "\n" + good: "is damaged at byte 10",
	} {
		path := filepath.Join(t.TempDir(), "audit")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Options{Path: path})
		switch {
		case want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), path+" "+want)):
			t.Errorf("%q: got %v, want %q", content, err, want)
		case err == nil:
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
