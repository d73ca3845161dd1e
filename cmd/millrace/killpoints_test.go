package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

var points = flag.Int("points", 20, "at how many steps of its calls the crash suite kills the command; 0 is all of them")

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

// TestKilledAtCalls kills the command in each phase of calls it makes while it writes a few tables, starts it again by the same
// words, and requires every row in the end.
func TestKilledAtCalls(t *testing.T) {
	if *seed == 0 {
		*seed = 1
	}
	const rows = 60
	want := map[string][]string{}
	var in strings.Builder
	for i := range rows {
		event, id := fmt.Sprint("event", i%3), fmt.Sprint("id", i)
		want[event] = append(want[event], id)
		fmt.Fprintf(&in, `{"event":%q,"id":%q,"n":%d}`+"\n", event, id, i)
	}
	killtest.Test{
		Config: localbq.Config{Project: "my-project", AutoCreateDataset: true, Seed: *seed},
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			for name, text := range map[string]string{"job.yaml": pointsJob, "in.ndjson": in.String()} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return exec.Command("millrace", "run", filepath.Join(dir, "job.yaml"),
				"--set", "sink.bigquery.connection.grpcEndpoint="+bq.GRPC(), "--set", "sink.bigquery.connection.restEndpoint="+bq.REST())
		},
		Check: func(t testing.TB, bq *localbq.Instance) {
			for event, ids := range want {
				got, err := bq.Audit().ExactlyOnce("github."+event, "id", ids)
				if err != nil || len(got.Missing) > 0 || len(got.Extra) > 0 { // twice is what at least once allows
					t.Errorf("%s: lost %v, none of the input %v, %v", event, got.Missing, got.Extra, err)
				}
			}
		},
		Sample: *points, SampleSeed: *seed,
	}.Run(t)
}
