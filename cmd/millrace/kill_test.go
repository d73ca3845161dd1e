package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

var (
	kills = flag.Int("kills", 2, "how often the crash suite kills the command")
	seed  = flag.Uint64("seed", 0, "seed of the instants at which it does; 0 picks one")
)

// copies is how often the example's deliveries are repeated, each with ids of its own, to give kills something to hit.
const copies = 4

// TestKilledAtRandomInstants kills the command with the README's job, and the local BigQuery inside it, with SIGKILL again and
// again, starts it again by the same words each time until it gets done, and requires every row once. A job that gets done is
// followed by another one, as often as it takes.
func TestKilledAtRandomInstants(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("run again with -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))

	dir := t.TempDir()
	want := writeDeliveries(t, filepath.Join(dir, "deliveries.ndjson"))
	data, checkpoints := filepath.Join(dir, "data"), filepath.Join(dir, "checkpoints")
	args := []string{"run", example(t, "job.yaml"), "--from", "latest", "--local=" + data,
		"--set", "source.files.paths=[" + filepath.Join(dir, "deliveries.ndjson") + "]",
		"--set", "source.files.splitBytes=1MiB", "--set", "checkpoint.every=20ms",
		"--set", "sink.bigquery.failures.deadLetter.file=" + filepath.Join(dir, "dead-letters"),
		"--checkpoint-dir", "file://" + checkpoints}

	longest := timeOneRun(t, args)
	jobs, killed := 0, 0
	for ; jobs == 0 || killed < *kills; jobs++ {
		if err := errors.Join(os.RemoveAll(data), os.RemoveAll(checkpoints)); err != nil {
			t.Fatal(err)
		}
		for killed < *kills && killAfter(t, args, time.Duration(random.Int64N(int64(longest)))) {
			killed++
		}
		if out, err := exec.Command("millrace", args...).CombinedOutput(); err != nil {
			t.Fatalf("the last run failed: %v\n%s", err, out)
		}
		checkRows(t, data, want)
	}
	t.Logf("%d jobs got done, killed %d times in all", jobs, killed)
}

func example(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "examples", "github", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeDeliveries writes the input and returns the ids of each event's deliveries.
func writeDeliveries(t *testing.T, path string) map[string]map[string]bool {
	t.Helper()
	packed, err := os.Open(example(t, "events/deliveries.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	want := map[string]map[string]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var d struct {
			ID    string `json:"delivery_id"`
			Event string `json:"event"`
		}
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if want[d.Event] == nil {
			want[d.Event] = map[string]bool{}
		}
		for c := range copies {
			id := fmt.Sprintf("%s/%d", d.ID, c)
			want[d.Event][id] = true
			fmt.Fprintln(&out, strings.Replace(lines.Text(), d.ID, id, 1))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return want
}

// timeOneRun measures how long the command takes when nobody kills it.
func timeOneRun(t *testing.T, args []string) time.Duration {
	t.Helper()
	began := time.Now()
	if out, err := exec.Command("millrace", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return time.Since(began)
}

// killAfter runs the command and kills it, and reports whether it was still running.
func killAfter(t *testing.T, args []string, after time.Duration) bool {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("millrace", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return true
	}
	if err != nil {
		t.Fatalf("the command failed by itself: %v\n%s", err, out.String())
	}
	return false
}

// checkRows looks into what the killed processes left.
func checkRows(t *testing.T, dir string, want map[string]map[string]bool) {
	t.Helper()
	local, err := localbq.Start(t.Context(), localbq.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for event, ids := range want {
		table := "my-project.github." + event
		got, err := local.Audit().ExactlyOnce(table, "delivery_id", slices.Collect(maps.Keys(ids)))
		if err != nil || !got.OK() {
			t.Errorf("%s: lost rows %v, rows that are there twice %v, rows that are none of the input %v; %v", table, got.Missing, got.Twice, got.Extra, err)
		}
		if groups, err := local.Audit().AppliedTwice(table); err != nil || len(groups) > 0 {
			t.Errorf("%s: the audit log has rows visible twice: %v, %v", table, groups, err)
		}
	}
}
