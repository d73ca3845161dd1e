//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

const queryJob = `
job: nightly
source:
  bigquery:
    query: SELECT event, id FROM github.all
    parentProject: my-project
    queryLocation: US
    reuseQueryResultWithin: 12h
sink:
  bigquery:
    method: exactly-once
    table: my-project.github.{event}
    schema: {infer: {}}
checkpoint: {every: 1h, store: "file://checkpoints"}
`

// TestKilledQueries (SRC-71) kills a job that reads a query, in each phase of calls it makes before its first checkpoint, which is
// its last too, and starts it again by the same words: the query is run once, and every row is there once.
func TestKilledQueries(t *testing.T) {
	engine, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // once the last service is closed
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, landing := range map[string][]string{"anonymous": nil, "named": {"--set", "source.bigquery.queryResultDataset=scratch"}} {
		t.Run(name, func(t *testing.T) {
			killtest.Test{
				Config: localbq.Config{Project: "my-project", AutoCreateDataset: true, Queries: manyServices{engine}},
				Prepare: func(t testing.TB, bq *localbq.Instance) {
					writeAll(t, bq)
					if err := bq.CreateDataset("scratch"); err != nil {
						t.Fatal(err)
					}
				},
				Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
					job := filepath.Join(dir, "job.yaml")
					if err := os.WriteFile(job, []byte(queryJob), 0o600); err != nil {
						t.Fatal(err)
					}
					return exec.Command("millrace", append([]string{"run", job, "--from", "latest",
						"--set", "source.bigquery.connection.grpcEndpoint=" + bq.GRPC(), "--set", "source.bigquery.connection.restEndpoint=" + bq.REST(),
						"--set", "sink.bigquery.connection.grpcEndpoint=" + bq.GRPC(), "--set", "sink.bigquery.connection.restEndpoint=" + bq.REST()}, landing...)...)
				},
				Check: func(t testing.TB, bq *localbq.Instance) {
					everyPoint(t, bq, "exactly-once")
					if jobs := queryJobs(t, bq); len(jobs) != 1 {
						t.Errorf("%d query jobs were made, want one: %v", len(jobs), jobs)
					}
				},
				Methods: []string{"jobs.insert", "jobs.get", "CreateReadSession", "ReadRows", "CreateWriteStream"},
				Sample:  *points, SampleSeed: pointsSeed(t),
			}.Run(t)
		})
	}
}

// manyServices is an engine that no service of several closes.
type manyServices struct{ localbq.QueryEngine }

func (manyServices) Close() error { return nil }

// queryJobs are the ids of the query jobs that sources made.
func queryJobs(t testing.TB, bq *localbq.Instance) (ids []string) {
	t.Helper()
	rest, err := gcp.Connection{RESTEndpoint: bq.REST(), GRPCEndpoint: bq.GRPC()}.REST(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	err = rest.Jobs.List("my-project").Pages(t.Context(), func(list *bqrest.JobList) error {
		for _, j := range list.Jobs {
			if strings.HasPrefix(j.JobReference.JobId, "millrace_bigquery_source_") {
				ids = append(ids, fmt.Sprint(j.JobReference.JobId, " ", j.Status.State))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
