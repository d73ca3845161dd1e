package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// An interrupt ends a command that waits for standard input, at the first try: there is nothing that a checkpoint could save,
// and no record may ever come.
func TestInterruptWhileWaitingForInput(t *testing.T) {
	cmd := exec.Command("millrace", "write", "p.d.t", "-", "--local="+t.TempDir(), "--http", ":0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer hung.Stop()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "/metrics") { // it handles signals from here on
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	_, _ = io.Copy(io.Discard, stderr)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed || said != "millrace: interrupted\n" {
		t.Errorf("%v, said %q, want exit code %d and one word", err, said, exitFailed)
	}
}
