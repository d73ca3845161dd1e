package main

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/localbq"
)

// TestFileLoadsMakeEqualTables runs the example with files that are loaded, at the end and at checkpoints, in every format that has a
// place for its columns: all tables are those that the exactly-once method makes. With -short it goes two of these ways, which have
// temporary tables and checkpoints between them.
func TestFileLoadsMakeEqualTables(t *testing.T) {
	dir := t.TempDir()
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if err := local.CreateBucket("staging"); err != nil {
		t.Fatal(err)
	}
	run := func(dataset string, set ...string) {
		t.Helper()
		args := []string{"run", example(t, "job.yaml"), "--checkpoint-dir", "file://" + filepath.Join(dir, dataset)}
		for _, s := range append(set, "sink.bigquery.table=my-project."+dataset+".{event}", "sink.bigquery.create.datasets=true",
			"sink.bigquery.failures.deadLetter.file="+filepath.Join(dir, dataset+".dead"), "sink.bigquery.connection.restEndpoint="+local.REST(),
			"sink.bigquery.connection.grpcEndpoint="+local.GRPC(), "sink.bigquery.connection.storageEndpoint="+local.GCS()) {
			args = append(args, "--set", s)
		}
		millrace(t, args...)
	}
	run("github")
	const path, poll = "sink.bigquery.fileLoads.stagingPath=gs://staging/github", "sink.bigquery.fileLoads.loadJobPollInitialBackoff=1ms"
	ways := map[string][]string{
		"batch":   {"checkpoint.every=0s"},
		"stream":  {"checkpoint.every=10s", "sink.bigquery.fileLoads.minCheckpointInterval=10s"},
		"often":   {"checkpoint.every=20ms", "sink.bigquery.fileLoads.minCheckpointInterval=20ms"},
		"parquet": {"checkpoint.every=0s", "sink.bigquery.fileLoads.stagingFormat=parquet"},
		"replace": {"checkpoint.every=0s", "sink.bigquery.fileLoads.writeDisposition=write-truncate", "sink.bigquery.fileLoads.maxLoadFiles=1"},
	}
	if testing.Short() {
		maps.DeleteFunc(ways, func(dataset string, _ []string) bool { return dataset != "often" && dataset != "replace" })
	}
	for dataset, set := range ways {
		run(dataset, append(set, "sink.bigquery.method=file-loads", path, poll)...)
	}
	client, err := storage.NewBigQueryReadClient(t.Context(), local.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	events := 0
	for event := range deliveries(t) {
		events++
		original := readArrow(t, client, "github", event)
		want := slices.Sorted(slices.Values(rowsOf(t, original)))
		for dataset := range ways {
			copied := readArrow(t, client, dataset, event)
			if got := slices.Sorted(slices.Values(rowsOf(t, copied))); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d rows, want %d, or other ones", event, dataset, len(got), len(want))
			}
			if diff := cmp.Diff(schemaOf(t, original), schemaOf(t, copied)); diff != "" {
				t.Errorf("%s, %s: %s", event, dataset, diff)
			}
		}
	}
	if events != 58 {
		t.Errorf("%d tables, want 58", events)
	}
}
