package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// What goes on with a run is what was typed, but for where it started, as a shell reads it.
func TestTypedAgain(t *testing.T) {
	for want, args := range map[string][]string{
		"millrace run job.yaml":                                {"job.yaml"},
		"millrace run 'a b; rm -rf ~.yaml'":                    {"a b; rm -rf ~.yaml"},
		`millrace run 'it'\''s.yaml'`:                          {"it's.yaml"},
		"millrace run --local job.yaml":                        {"job.yaml", "--local", "--from", "none"},
		"millrace run '--local=a b' job.yaml":                  {"job.yaml", "--local=a b", "--from=3"},
		"millrace run '--set=a=[x]' '--set=b=$(id)' job.yaml":  {"job.yaml", "--set", "a=[x]", "--set", "b=$(id)"},
		"millrace run --checkpoint-dir=file://cp -- -job.yaml": {"--checkpoint-dir", "file://cp", "--", "-job.yaml"},
		"millrace run --parallelism=3 --quiet '`id`'":          {"`id`", "-q", "--parallelism", "3"},
	} {
		a := &app{}
		root := a.root()
		got := ""
		for _, c := range root.Commands() {
			if c.Name() == "run" {
				c.RunE = func(cmd *cobra.Command, args []string) error {
					got = typedAgain(cmd, args)
					return nil
				}
			}
		}
		root.SetArgs(append([]string{"run"}, args...))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}

// Whatever comes from data, nothing of it reaches a terminal as anything but characters.
func TestConsoleIsHarmless(t *testing.T) {
	var b bytes.Buffer
	c := newConsole(&b)
	hostile := "a\x1b[31m\x9b2Jb\u009b31m\r\b\x00\x7f\u202ec\u2066d\u2028e\xff"
	c.printf("%s\n", hostile)
	c.logger("text", false, true).Warn(hostile, "key", hostile)
	c.tty, c.width = true, func() int { return 80 }
	c.status = hostile
	c.draw()
	for _, r := range b.String() {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Fatalf("%U in %q", r, b.String())
		}
	}
	if !strings.HasPrefix(b.String(), "a·[31m") {
		t.Errorf("got %q", b.String())
	}
}

func TestOutput(t *testing.T) {
	a := &app{}
	content := func(w *os.File) string {
		text, err := os.ReadFile(w.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(text string) func(w io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write([]byte(text)); return err }
	}
	dir := t.TempDir()
	if err := a.output(dir, write("x")); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("to a folder: %v", err)
	}
	if err := a.output(filepath.Join(dir, "none", "x"), write("x")); err == nil || newConsole(&bytes.Buffer{}).exit(err) != exitUsage {
		t.Errorf("to a folder that is not there: %v", err)
	}
	if runtime.GOOS == "windows" {
		return // no permissions, links without privileges, or devices in folders
	}
	private := filepath.Join(dir, "private")
	if err := os.WriteFile(private, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(private, link); err != nil {
		t.Fatal(err)
	}
	if err := a.output(link, write("new")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(private)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 || content(f) != "new" {
		t.Errorf("%v, %v, %q: want the file behind the link replaced, as private as it was", info.Mode(), err, content(f))
	}
	// Not a device, which root would lose if this went wrong.
	special := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", special)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_ = a.output(special, write("x"))
	if info, err := os.Stat(special); err != nil || info.Mode().IsRegular() {
		t.Errorf("a special file was replaced: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}
