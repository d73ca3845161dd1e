package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// unfinishedRead is a read of the crash suite's table that a full disk, a limit on how large files may be, ended.
type unfinishedRead struct {
	bq   *localbq.Instance
	path string
	args []string
}

func startUnfinished(t *testing.T, name string, more ...string) *unfinishedRead {
	t.Helper()
	k := killedReads{}
	test := k.test(t)
	bq, err := localbq.Start(t.Context(), test.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bq.Close() })
	fillKilledTable(t, bq)
	u := &unfinishedRead{bq: bq, path: filepath.Join(t.TempDir(), name)}
	u.args = append([]string{"read", killedTable, "--rest-endpoint", bq.REST(), "--grpc-endpoint", bq.GRPC(), "--safe-every", "1ns", "--resume", "-o", u.path}, more...)
	out, err := exec.Command("sh", append([]string{"-c", `ulimit -f 512; exec millrace "$@"`, "sh"}, u.args...)...).CombinedOutput() // of 512 bytes
	full := func(of string) bool { return strings.Contains(string(out), "write "+u.path+of+": file too large") }
	// A slow machine may have its rows safe so often that the notes of it are the first to be too long.
	if exit := new(exec.ExitError); !asExit(err, &exit) || exit.ExitCode() != 1 || !full(".partial") && !full(".resume") ||
		!strings.Contains(string(out), "the same command with --resume goes on from there") {
		t.Fatalf("%v: %s", err, out)
	}
	return u
}

func asExit(err error, to **exec.ExitError) (ok bool) {
	*to, ok = err.(*exec.ExitError)
	return ok
}

// TestReadsThatFillTheDisk: the error names the file, and the same command goes on once there is room, to the same bytes.
func TestReadsThatFillTheDisk(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.ndjson", "a.csv", "a.arrow", "a.avro", "a.parquet"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := startUnfinished(t, name)
			if out, err := exec.Command("millrace", u.args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "of them before") {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(u.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(u.path); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("millrace", u.args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			// Markers in Avro files are the session's.
			if want, err := os.ReadFile(u.path); err != nil || name != "a.avro" && string(got) != string(want) || len(got) != len(want) {
				t.Errorf("%v, or other bytes: %d, %d", err, len(got), len(want))
			}
		})
	}
}

// TestResumeIsOfTheSameRead: whatever decides about rows, their order, the service and who pays, is compared, and named.
func TestResumeIsOfTheSameRead(t *testing.T) {
	t.Parallel()
	u := startUnfinished(t, "a.ndjson", "--project", "my-project")
	for flag, value := range map[string]string{"--project": "other", "--location": "EU", "--fields": "id", "--where": "id > 1", "--as-of": "1h",
		"--format": "csv", "--limit": "7", "--streams": "3", "--views": "true", "--rest-endpoint": "localhost:1", "--grpc-endpoint": "localhost:1"} {
		out, err := exec.Command("millrace", append(u.args, flag+"="+value)...).CombinedOutput()
		if exit := new(exec.ExitError); !asExit(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), flag+" was ") ||
			!strings.Contains(string(out), "is \""+value+"\"") || strings.Contains(string(out), "; --") {
			t.Errorf("%s: %v: %s", flag, err, out)
		}
	}
	other := append([]string{}, u.args...)
	other[1] = "my-project.github.others"
	if out, err := exec.Command("millrace", other...).CombinedOutput(); err == nil || !strings.Contains(string(out), `the table was "my-project.github.events" and is "my-project.github.others"`) {
		t.Errorf("another table: %v: %s", err, out)
	}
	query := append([]string{"read", "--query", "SELECT 1"}, u.args[2:]...)
	if out, err := exec.Command("millrace", query...).CombinedOutput(); err == nil || !strings.Contains(string(out), "--query was not given") {
		t.Errorf("a query: %v: %s", err, out)
	}
	if out, err := exec.Command("millrace", u.args...).CombinedOutput(); err != nil {
		t.Fatalf("the same: %v: %s", err, out)
	}
}
