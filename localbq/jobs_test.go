package localbq_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"

	"github.com/millrace-dev/millrace/localbq"
)

// TestJobsOutliveTheProcess: what a job did, and that its id is used up, is known to the next process on the folder.
func TestJobsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	run := func(f func(bq *localbq.Instance, c *bigquery.Client)) {
		bq, err := localbq.Start(t.Context(), localbq.Config{Dir: dir, AutoCreateDataset: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		f(bq, c)
		if err := errors.Join(c.Close(), bq.Close()); err != nil {
			t.Fatal(err)
		}
	}
	load := func(c *bigquery.Client, id, text string) (*bigquery.Job, error) {
		source := bigquery.NewReaderSource(strings.NewReader(text))
		source.SourceFormat, source.Schema = bigquery.JSON, bigquery.Schema{{Name: "n", Type: bigquery.IntegerFieldType}}
		loader := c.Dataset("d").Table("t").LoaderFrom(source)
		loader.JobID = id
		return loader.Run(context.Background())
	}
	outcome := func(c *bigquery.Client, id string) error {
		job, err := c.JobFromID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Err()
	}
	run(func(bq *localbq.Instance, c *bigquery.Client) {
		makeTable(t, bq, "d.t", column("n", "INTEGER"))
		for id, text := range map[string]string{"good": `{"n":1}`, "bad": `{"n":"x"}`} {
			if _, err := load(c, id, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := outcome(c, "good"); err != nil {
			t.Error(err)
		}
		if err := outcome(c, "bad"); err == nil {
			t.Error("the bad job succeeded")
		}
	})
	for range 2 { // from the log, then from a checkpoint
		run(func(bq *localbq.Instance, c *bigquery.Client) {
			t.Run("LBQ-173 the same id sent again: 409, rows once", func(t *testing.T) {
				for _, id := range []string{"good", "bad"} {
					_, err := load(c, id, `{"n":2}`)
					if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 409 {
						t.Errorf("job %s again: %v, want 409", id, err)
					}
				}
				if err := outcome(c, "good"); err != nil {
					t.Error(err)
				}
				if err := outcome(c, "bad"); err == nil || !strings.Contains(err.Error(), "Could not parse 'x' as INT64") {
					t.Errorf("the bad job failed with %v", err)
				}
				wantContents(t, bq, "d.t", `{"n":1}`)
				effects, err := bq.Audit().JobsByID()
				if err != nil {
					t.Fatal(err)
				}
				if made := effects[bq.Project()+":US.good"]; len(effects) != 1 || len(made) != 1 || made[0].Count != 1 {
					t.Errorf("the audit log has effects %v", effects)
				}
			})
		})
	}
}
