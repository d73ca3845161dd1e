package localbq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigquery"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

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

// TestKillServerOfJobs kills a serving process while jobs load rows: of each job all rows are there or none, as its status says,
// and sending it again changes nothing.
func TestKillServerOfJobs(t *testing.T) {
	dir := t.TempDir()
	const size = 50
	var mu sync.Mutex // guards next and countdown
	next, countdown := 0, 0
	storage := "" // the address of Cloud Storage
	load := func(ctx context.Context, c *bigquery.Client, n int) error {
		var text strings.Builder
		for i := range size {
			fmt.Fprintf(&text, "{\"id\":%d}\n", n*size+i)
		}
		source := bigquery.NewReaderSource(strings.NewReader(text.String()))
		source.SourceFormat = bigquery.JSON
		loader := c.Dataset("d").Table("t").LoaderFrom(source)
		if n%2 == 1 {
			name := fmt.Sprint("rows/", n)
			if code, said := upload(storage, "POST", "/upload/storage/v1/b/lake/o?uploadType=media&ifGenerationMatch=0&name="+name, strings.NewReader(text.String())); code != 200 && code != 412 {
				return fmt.Errorf("object %s: %d %s", name, code, said)
			}
			staged := bigquery.NewGCSReference("gs://lake/" + name)
			staged.SourceFormat = bigquery.JSON
			loader = c.Dataset("d").Table("t").LoaderFrom(staged)
		}
		loader.JobID = fmt.Sprint("job-", n)
		job, err := loader.Run(ctx)
		if e, ok := errors.AsType[*googleapi.Error](err); ok && e.Code == 409 {
			job, err = c.JobFromID(ctx, loader.JobID)
		}
		if err != nil {
			return err
		}
		status, err := job.Wait(ctx)
		if err != nil {
			return err
		}
		return status.Err()
	}
	serve := func(use func(ctx context.Context, c *bigquery.Client, kill func())) {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childFolder+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		addr := ""
		for lines := bufio.NewScanner(out); storage == "" && lines.Scan(); {
			if at, ok := strings.CutPrefix(lines.Text(), "rest "); ok {
				addr = at
			}
			storage, _ = strings.CutPrefix(lines.Text(), "storage ")
			if storage == lines.Text() {
				storage = ""
			}
		}
		if code, said := upload(storage, "POST", "/storage/v1/b?project=p", strings.NewReader(`{"name":"lake"}`)); code != 200 && code != 409 {
			t.Fatalf("making a bucket: %d %s", code, said)
		}
		// The client goes on trying for as long as its context lets it, which ends with the server.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c, err := bigquery.NewClient(context.Background(), localbq.DefaultProject, option.WithEndpoint("http://"+addr), option.WithoutAuthentication())
		if err != nil {
			t.Fatal(err)
		}
		use(ctx, c, func() {
			_ = child.Process.Kill()
			_ = child.Wait()
			cancel()
		})
		_ = child.Process.Kill()
		_ = child.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		storage = ""
	}
	for range 4 {
		serve(func(ctx context.Context, c *bigquery.Client, kill func()) {
			countdown = 2 + rand.IntN(20)
			var clients sync.WaitGroup
			for range 2 {
				clients.Go(func() {
					for {
						mu.Lock()
						n := next
						next++
						if countdown--; countdown == 0 {
							clients.Go(kill)
						}
						stop := countdown < 0
						mu.Unlock()
						if stop {
							return
						}
						if err := load(ctx, c, n); err != nil {
							return
						}
					}
				})
			}
			clients.Wait()
		})
	}
	succeeded := map[int]bool{}
	serve(func(ctx context.Context, c *bigquery.Client, _ func()) {
		for n := range next {
			succeeded[n] = load(ctx, c, n) == nil
		}
	})
	bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	var want []string
	for n, ok := range succeeded {
		for i := range size {
			if ok {
				want = append(want, fmt.Sprint(n*size+i))
			}
		}
	}
	exactly, err := bq.Audit().ExactlyOnce("d.t", "id", want)
	if err != nil || !exactly.OK() {
		t.Errorf("missing %d, twice %d, extra %d, %v", len(exactly.Missing), len(exactly.Twice), len(exactly.Extra), err)
	}
	effects, err := bq.Audit().JobsByID()
	if err != nil {
		t.Fatal(err)
	}
	for job, made := range effects {
		if len(made) != 1 || made[0].Count != size {
			t.Errorf("job %s had effects %v", job, made)
		}
	}
	if left, err := bq.Audit().Unaccounted("d.t"); err != nil || len(left) != 0 {
		t.Errorf("unaccounted: %v, %v", left, err)
	}
	t.Logf("%d jobs, %d with an effect", next, len(effects))
}

// TestJobThatExistsIsThere: whoever is told that an id is taken finds the job, however close behind the first one it came.
func TestJobThatExistsIsThere(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("n", "INTEGER"))
	rest, err := bqapi.NewService(t.Context(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	target := &bqapi.TableReference{ProjectId: bq.Project(), DatasetId: "d", TableId: "t"}
	for i := range 200 {
		id := fmt.Sprint("job", i)
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				_, err := rest.Jobs.Insert(bq.Project(), &bqapi.Job{JobReference: &bqapi.JobReference{JobId: id, Location: "US"},
					Configuration: &bqapi.JobConfiguration{Copy: &bqapi.JobConfigurationTableCopy{SourceTables: []*bqapi.TableReference{target},
						DestinationTable: target, WriteDisposition: "WRITE_TRUNCATE"}}}).Do()
				var taken *googleapi.Error
				if err != nil && (!errors.As(err, &taken) || taken.Code != 409) {
					t.Error(err)
				}
				if _, err := rest.Jobs.Get(bq.Project(), id).Location("US").Do(); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		clients.Wait()
	}
}
