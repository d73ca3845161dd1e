package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

var points = flag.Int("points", 2, "at how many steps of its calls the crash suite kills the command; 0 is all of them")

const pointsJob = `
job: points
source:
  files: {paths: [in.ndjson], splitBytes: 200}
sink:
  bigquery:
    table: my-project.github.{event}
    schema: {infer: {sample: 100}}
checkpoint: {every: 10ms, store: "file://checkpoints"}
parallelism: 2
`

// pointsInput is the job's records, and their ids by event.
func pointsInput() (string, map[string][]string) {
	const rows = 60
	want := map[string][]string{}
	var in strings.Builder
	for i := range rows {
		event, id := fmt.Sprint("event", i%3), fmt.Sprint("id", i)
		want[event] = append(want[event], id)
		fmt.Fprintf(&in, `{"event":%q,"id":%q,"n":%d}`+"\n", event, id, i)
	}
	return in.String(), want
}

// methods are what the job of the crash suite writes by.
var methods = []string{"default", "exactly-once"}

// pointsCommand writes the job into dir, where its checkpoints are too, and is the command that runs it. One that was killed once
// everything was committed, before it said so, has nothing left to do.
func pointsCommand(t testing.TB, method, dir, rest, grpc string) *exec.Cmd {
	t.Helper()
	in, _ := pointsInput()
	for name, text := range map[string]string{"job.yaml": pointsJob, "in.ndjson": in} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return exec.Command("millrace", "run", filepath.Join(dir, "job.yaml"), "--from", "latest", "--set", "sink.bigquery.method="+method,
		"--set", "sink.bigquery.connection.grpcEndpoint="+grpc, "--set", "sink.bigquery.connection.restEndpoint="+rest)
}

// everyPoint requires every row; with exactly-once no row is there twice.
func everyPoint(t testing.TB, bq *localbq.Instance, method string) {
	t.Helper()
	_, want := pointsInput()
	for event, ids := range want {
		table := "my-project.github." + event
		got, err := bq.Audit().ExactlyOnce(table, "id", ids)
		if err != nil || len(got.Missing) > 0 || len(got.Extra) > 0 || method == "exactly-once" && len(got.Twice) > 0 {
			t.Errorf("%s: lost %v, there twice %v, none of the input %v, %v", table, got.Missing, got.Twice, got.Extra, err)
		}
		// What is appended to a stream and not promised is never seen.
		if lost, err := bq.Audit().AckedNotVisible(table); err != nil || len(lost) > 0 && method != "exactly-once" {
			t.Errorf("%s: acknowledged and lost: %v, %v", table, lost, err)
		}
	}
}

// TestKilledAtCalls kills the command in each phase of calls it makes while it writes a few tables, starts it again by the same
// words, and requires every row in the end.
func TestKilledAtCalls(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			killtest.Test{
				Config: localbq.Config{Project: "my-project", AutoCreateDataset: true},
				Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
					return pointsCommand(t, method, dir, bq.REST(), bq.GRPC())
				},
				Check:  func(t testing.TB, bq *localbq.Instance) { everyPoint(t, bq, method) },
				Sample: *points, SampleSeed: pointsSeed(t),
			}.Run(t)
		})
	}
}

// TestKilledWhileTablesGrow is TestKilledAtCalls where every table exists and lacks a column: the command is killed between
// reading a table and changing it, and between changing it and hearing so, too.
func TestKilledWhileTablesGrow(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			killtest.Test{
				Config:  localbq.Config{Project: "my-project", AutoCreateDataset: true},
				Prepare: narrowTables,
				Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
					cmd := pointsCommand(t, method, dir, bq.REST(), bq.GRPC())
					cmd.Args = append(cmd.Args, "--set", "sink.bigquery.schemaUpdate.allowNewFields=true")
					return cmd
				},
				Check: func(t testing.TB, bq *localbq.Instance) {
					everyPoint(t, bq, method)
					wideTables(t, bq)
				},
				Sample: *points, SampleSeed: pointsSeed(t),
			}.Run(t)
		})
	}
}

// narrowTables makes the tables of the job without the last of its columns.
func narrowTables(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	_, want := pointsInput()
	narrow := &bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "event", Type: "STRING"}, {Name: "id", Type: "STRING", Mode: "REQUIRED"}}}
	for event := range want {
		if err := bq.CreateTable("github."+event, narrow); err != nil {
			t.Fatal(err)
		}
	}
}

// wideTables requires that column, with a value in every row.
func wideTables(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	_, want := pointsInput()
	for event := range want {
		batches, err := bq.Batches("github." + event)
		if err != nil || len(batches) == 0 {
			t.Fatalf("%s: %v", event, err)
		}
		for _, b := range batches {
			if at := b.Schema().FieldIndices("n"); len(at) != 1 || b.Column(at[0]).NullN() > 0 {
				t.Errorf("%s has no value in the new column of some row: %v", event, b)
			}
		}
	}
}

// TestKilledServiceAtCalls kills the local service at the same points. The command goes on by itself when it is back.
func TestKilledServiceAtCalls(t *testing.T) {
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			killtest.ServerTest{
				Server: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
					return exec.Command("millrace", "local", "--dir", dir, "--project", "my-project", "--rest", at.REST, "--grpc", at.GRPC, "--storage", at.Storage)
				},
				Client: func(t testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
					return pointsCommand(t, method, dir, at.REST, at.GRPC)
				},
				Check:  func(t testing.TB, bq *localbq.Instance) { everyPoint(t, bq, method) },
				Sample: *points, SampleSeed: pointsSeed(t),
			}.Run(t)
		})
	}
}

// pointsSeed draws the sample of a run; -seed runs it again.
func pointsSeed(t *testing.T) uint64 {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("run again with -seed %d", *seed)
	return *seed
}
