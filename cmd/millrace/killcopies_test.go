package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

const copiesJob = `
job: copies
source: {bigquery: {table: my-project.github.all, maxRecordsPerFetch: 3, maxStreamCount: 4}}
sink:
  bigquery:
    method: exactly-once
    table: my-project.github.{event}
    schema: {infer: {}}
checkpoint: {every: 2ms, store: "file://checkpoints"}
parallelism: 2
`

// TestKilledCopies kills a job that copies a table to several, exactly once, in each phase of calls it makes, to read and to write,
// starts it again by the same words, and requires every row once.
func TestKilledCopies(t *testing.T) {
	c := localbq.Config{Project: "my-project", AutoCreateDataset: true}
	c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 100, 4
	killtest.Test{
		Config:  c,
		Prepare: writeAll,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			job := filepath.Join(dir, "job.yaml")
			if err := os.WriteFile(job, []byte(copiesJob), 0o600); err != nil {
				t.Fatal(err)
			}
			return exec.Command("millrace", "run", job, "--from", "latest",
				"--set", "sink.bigquery.connection.grpcEndpoint="+bq.GRPC(), "--set", "sink.bigquery.connection.restEndpoint="+bq.REST())
		},
		Check:   func(t testing.TB, bq *localbq.Instance) { everyPoint(t, bq, "exactly-once") },
		Methods: []string{"CreateReadSession", "ReadRows", "CreateWriteStream", "AppendRows", "FlushRows", "tables.get"},
		Sample:  *points, SampleSeed: pointsSeed(t),
	}.Run(t)
}

// writeAll puts every record of the crash suite into one table.
func writeAll(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	in, _ := pointsInput()
	name := filepath.Join(t.TempDir(), "in.ndjson")
	if err := os.WriteFile(name, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("millrace", "write", "my-project.github.all", name, "--rest-endpoint", bq.REST(), "--grpc-endpoint", bq.GRPC(),
		"--checkpoint-dir", "mem://", "-q").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
