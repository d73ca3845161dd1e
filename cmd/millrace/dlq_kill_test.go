package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
	"github.com/millrace-dev/millrace/stream"
)

// deadInput is records of which one in three fits no INT64 column, and the ids of those.
func deadInput(rows int) (in string, bad []string) {
	var b strings.Builder
	for i := range rows {
		n := `7`
		if i%3 == 0 {
			n = `"seven"`
			bad = append(bad, fmt.Sprint("id", i))
		}
		fmt.Fprintf(&b, `{"id":"id%d","n":%s,"pad":"%s"}`+"\n", i, n, strings.Repeat("x", 100))
	}
	return b.String(), bad
}

// TestKilledWithDeadLetters kills a job while it writes dead letters, and then the replay of them, with SIGKILL again and again,
// and starts each by the same words until it is done. Every record that could not be written is in the queue whole, and every
// letter is replayed: once with exactly-once, at least once with the default method.
func TestKilledWithDeadLetters(t *testing.T) {
	for _, method := range []string{"default", "exactly-once"} {
		t.Run(method, func(t *testing.T) {
			random := rand.New(rand.NewPCG(pointsSeed(t), 0))
			dir := t.TempDir()
			in, bad := deadInput(3000)
			for name, text := range map[string]string{
				"in.ndjson":   in,
				"schema.json": `[{"name":"id","type":"STRING"},{"name":"n","type":"INT64"},{"name":"pad","type":"STRING"}]`,
				"fixed.json":  `[{"name":"id","type":"STRING"},{"name":"n","type":"STRING"},{"name":"pad","type":"STRING"}]`,
				"job.yaml": `
job: dead
source:
  files: {paths: [in.ndjson], splitBytes: 20KB}
sink:
  bigquery:
    method: ` + method + `
    table: p.d.rows
    schema: {file: schema.json}
    failures: {policy: dead-letter, deadLetter: {file: dlq.ndjson, maxFileBytes: 100KB}}
checkpoint: {every: 5ms, store: "file://ck"}
parallelism: 3
`,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			local := "--local=" + filepath.Join(dir, "data")
			killUntilDone(t, random, []string{"run", filepath.Join(dir, "job.yaml"), local})
			offered := checkLetters(t, filepath.Join(dir, "dlq.ndjson"), bad)

			// The schema is corrected. The good rows are in a table of their own, so that what is in this one is replayed.
			killUntilDone(t, random, []string{"dlq", "replay", filepath.Join(dir, "job.yaml"), filepath.Join(dir, "dlq.ndjson"), local,
				"--set", "sink.bigquery.schema.file=fixed.json", "--set", "sink.bigquery.table=p.d.replayed"})
			bq, err := localbq.Start(t.Context(), localbq.Config{Dir: filepath.Join(dir, "data")})
			if err != nil {
				t.Fatal(err)
			}
			defer bq.Close()
			got, err := bq.Audit().ExactlyOnce("p.d.replayed", "id", bad)
			if err != nil || len(got.Missing) > 0 || len(got.Extra) > 0 {
				t.Errorf("lost %v, none of the letters %v, %v", got.Missing, got.Extra, err)
			}
			if method == "exactly-once" && len(got.Twice) > 0 {
				t.Errorf("replayed more than once: %v", got.Twice)
			}
			t.Logf("%d records in %d letters; all replayed, %d of them more than once", len(bad), offered, len(got.Twice))
		})
	}
}

// killUntilDone kills a command at random instants of the time that it takes, and lets it end in the end.
func killUntilDone(t *testing.T, random *rand.Rand, args []string) {
	t.Helper()
	after := 150 * time.Millisecond
	for killed := 0; killed < *kills; {
		if killAfter(t, args, time.Duration(random.Int64N(int64(after)))) {
			killed++
			after = min(after+after/8, time.Second) // so that it comes further the next time
			continue
		}
		return // it was faster
	}
	if out, err := exec.Command("millrace", args...).CombinedOutput(); err != nil {
		t.Fatalf("the last run failed: %v\n%s", err, out)
	}
}

// checkLetters requires a whole letter of every bad record and of no other, and counts letters.
func checkLetters(t *testing.T, path string, bad []string) (offered int) {
	t.Helper()
	left := map[string]bool{}
	for _, id := range bad {
		left[id] = true
	}
	names, err := filequeue.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 2 {
		t.Errorf("one file only: nothing was rotated")
	}
	var fold deadletter.Fold
	distinct := 0
	for _, name := range names {
		for e, err := range filequeue.Read(name) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Err != nil {
				t.Errorf("%s:%d: %v", name, e.Line, e.Err)
				continue
			}
			offered++
			id, _, _ := strings.Cut(strings.TrimPrefix(*e.Letter.Record, `{"id":"`), `"`)
			delete(left, id)
			if fold.First(&e.Letter) {
				distinct++
			}
		}
	}
	if len(left) > 0 || distinct != len(bad) {
		t.Errorf("no letters of %v; %d distinct letters of %d records", left, distinct, len(bad))
	}
	return offered
}

// TestKilledReplayAtCalls kills a replay with exactly-once in each phase of calls it makes, starts it again by the same words, and
// requires every letter's row once.
func TestKilledReplayAtCalls(t *testing.T) {
	_, bad := deadInput(60)
	killtest.Test{
		Config: localbq.Config{Project: "p", AutoCreateDataset: true},
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			for name, text := range map[string]string{
				"schema.json": `[{"name":"id","type":"STRING"},{"name":"n","type":"STRING"}]`,
				"job.yaml": `
job: dead
source: {files: {paths: [none.ndjson], format: ndjson}}
sink: {bigquery: {method: exactly-once, table: p.d.replayed, schema: {file: schema.json}}}
checkpoint: {every: 5ms, store: "file://ck"}
parallelism: 2
`,
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dlq := filepath.Join(dir, "dlq.ndjson")
			if _, err := os.Stat(dlq); err != nil {
				offer(t, dlq, bad)
			}
			return exec.Command("millrace", "dlq", "replay", filepath.Join(dir, "job.yaml"), dlq,
				"--set", "sink.bigquery.connection.grpcEndpoint="+bq.GRPC(), "--set", "sink.bigquery.connection.restEndpoint="+bq.REST())
		},
		Check: func(t testing.TB, bq *localbq.Instance) {
			got, err := bq.Audit().ExactlyOnce("p.d.replayed", "id", bad)
			if err != nil || len(got.Missing)+len(got.Extra)+len(got.Twice) > 0 {
				t.Errorf("lost %v, none of the letters %v, twice %v, %v", got.Missing, got.Extra, got.Twice, err)
			}
		},
		Sample: *points, SampleSeed: pointsSeed(t),
	}.Run(t)
}

// offer writes a queue in which every other record was offered twice.
func offer(t testing.TB, path string, ids []string) {
	t.Helper()
	q, err := filequeue.New(path, filequeue.Options{MaxFileBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	h, err := q.NewHandler(t.Context(), stream.HandlerContext{Job: "dead"})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		for range 1 + i%2 {
			f := stream.FailedRecord{Connector: "bigquery", Destination: "p.d.rows", Reason: "wrong", Split: "in",
				Original: fmt.Appendf(nil, `{"id":%q,"n":"x"}`, id), At: stream.Location{Name: "in", Row: int64(i)}}
			if err := h.Handle(t.Context(), &f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
		t.Fatal(err)
	}
}
