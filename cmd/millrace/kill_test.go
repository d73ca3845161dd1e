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
	kills = flag.Int("kills", 10, "how often the crash suite kills the command")
	seed  = flag.Uint64("seed", 0, "seed of the instants at which it does; 0 picks one")
)

// copies is how often the example's deliveries are repeated, each with ids of its own, to give kills something to hit.
const copies = 4

// TestKilledAtRandomInstants kills the command, and the local BigQuery inside it, with SIGKILL again and again, starts it
// again by the same words each time, and requires every row in the end. Rows may be there twice: the job writes at least
// once. The audit log of the local service says how many are.
func TestKilledAtRandomInstants(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("run again with -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))

	dir := t.TempDir()
	want := writeDeliveries(t, filepath.Join(dir, "deliveries.ndjson"))
	args := []string{"run", example(t, "job.yaml"), "--local=" + filepath.Join(dir, "data"),
		"--set", "source.files.paths=[" + filepath.Join(dir, "deliveries.ndjson") + "]",
		"--set", "source.files.splitBytes=1MiB", "--set", "checkpoint.every=20ms",
		"--set", "sink.bigquery.failures.deadLetter.file=" + filepath.Join(dir, "dead-letters"),
		"--checkpoint-dir", "file://" + filepath.Join(dir, "checkpoints")}

	longest := timeOneRun(t, args, filepath.Join(dir, "data"), filepath.Join(dir, "checkpoints"))
	killed := 0
	for killed < *kills {
		if killAfter(t, args, time.Duration(random.Int64N(int64(longest)))) {
			killed++
		}
	}
	out, err := exec.Command("millrace", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("the last run failed: %v\n%s", err, out)
	}
	checkRows(t, filepath.Join(dir, "data"), want)
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

// timeOneRun measures how long the command takes when nobody kills it, and takes away what it left.
func timeOneRun(t *testing.T, args []string, leavings ...string) time.Duration {
	t.Helper()
	began := time.Now()
	if out, err := exec.Command("millrace", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	for _, path := range leavings {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	return took
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
	var rows, twice, applied int
	for event, ids := range want {
		table := "my-project.github." + event
		keys := slices.Collect(maps.Keys(ids))
		got, err := local.Audit().ExactlyOnce(table, "delivery_id", keys)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Missing) > 0 || len(got.Extra) > 0 {
			t.Errorf("%s: lost rows %v, rows that are none of the input %v", table, got.Missing, got.Extra)
		}
		lost, err := local.Audit().AckedNotVisible(table)
		if err != nil {
			t.Fatal(err)
		}
		if len(lost) > 0 {
			t.Errorf("%s: %d rows were acknowledged and are not visible", table, len(lost))
		}
		groups, err := local.Audit().AppliedTwice(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			applied += len(g) - 1
		}
		rows, twice = rows+len(keys), twice+len(got.Twice)
	}
	t.Logf("all %d rows of %d tables are there; %d of them more than once, %d appended rows too many", rows, len(want), twice, applied)
}
