package main

import (
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/millrace-dev/millrace/localbq"
)

// TestCheckpointsInCloudStorage keeps the checkpoints of a job in a bucket of the local service: a gs:// store is told where by
// the variable that the official clients have for it.
func TestCheckpointsInCloudStorage(t *testing.T) {
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	client, err := storage.NewClient(t.Context(), local.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lake := client.Bucket("lake")
	if err := lake.Create(t.Context(), local.Project(), nil); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", local.GCS())
	run := func(store string) {
		millrace(t, "run", example(t, "job.yaml"), "--checkpoint-dir", store,
			"--set", "sink.bigquery.connection.restEndpoint="+local.REST(), "--set", "sink.bigquery.connection.grpcEndpoint="+local.GRPC(),
			"--set", "sink.bigquery.failures.deadLetter.file="+filepath.Join(t.TempDir(), "dead"))
	}
	run("gs://lake?prefix=checkpoints/")
	first, err := lake.Objects(t.Context(), &storage.Query{Prefix: "checkpoints/"}).Next()
	if err != nil || !strings.HasPrefix(first.Name, "checkpoints/") || first.Size == 0 {
		t.Errorf("the store holds %+v, %v", first, err)
	}
	run("gs://lake/checkpoints") // finds the finished run's and starts anew
	all, err := lake.Objects(t.Context(), nil).Next()
	if err != nil || !strings.HasPrefix(all.Name, "checkpoints/") {
		t.Errorf("beside the prefix there is %+v, %v", all, err)
	}
}
