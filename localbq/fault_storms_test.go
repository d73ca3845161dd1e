package localbq_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	gcs "cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
)

// now has a rule change the service's state at the next GetWriteStream, which it makes.
func now(t *testing.T, bq *localbq.Instance, changes ...localbq.FaultState) {
	t.Helper()
	arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "GetWriteStream"}, Action: localbq.FaultAction{State: changes}})
	if _, err := writeClient(t, bq).GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: stream("d.t")}); err != nil {
		t.Fatal(err)
	}
	bq.Faults().MustAllFire(t)
}

func createStream(c *storage.BigQueryWriteClient, kind storagepb.WriteStream_Type) (*storagepb.WriteStream, error) {
	return c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
		Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: kind},
	}, gax.WithRetry(func() gax.Retryer { return nil }))
}

func TestOpenWindow(t *testing.T) {
	const hour = localbq.FaultDuration(time.Hour)
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	client := writeClient(t, bq)
	t.Run("appends, streams and flushes are denied as on a fresh table", func(t *testing.T) {
		buffered, err := createStream(client, storagepb.WriteStream_BUFFERED)
		if err != nil {
			t.Fatal(err)
		}
		open().append(ids.first(t, buffered.GetName(), "id: 1"))
		now(t, bq, localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "createDefaultAppend", For: hour},
			localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "createOpenStream", For: hour},
			localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "createFlush", For: hour})
		calls := func() []error {
			c := open()
			if err := c.Send(ids.first(t, stream("d.t"), "id: 2")); err != nil {
				t.Fatal(err)
			}
			_, appended := c.Recv()
			_, created := createStream(client, storagepb.WriteStream_COMMITTED)
			_, flushed := client.FlushRows(context.Background(), flushOf(buffered.GetName(), 0))
			return []error{appended, created, flushed}
		}
		for i, err := range calls() {
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("call %d: %v", i, err)
			}
		}
		clock.Advance(time.Hour)
		for i, err := range calls() {
			if err != nil {
				t.Errorf("call %d an hour later: %v", i, err)
			}
		}
	})
	t.Run("LBQ-94 a new column stays unknown, and an older one known", func(t *testing.T) {
		c := open()
		c.append(ids.first(t, stream("d.t"), "id: 3"))
		now(t, bq, localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "newConnection", For: hour},
			localbq.FaultState{Do: localbq.FaultAddColumn, Table: "d.t", Column: "s", Type: "STRING"})
		wide := describe(t, "id int64", "s string")
		open().refused(wide.first(t, stream("d.t"), `s: "x"`), codes.InvalidArgument, "extra fields")
		if r := c.append(ids.next(t, "id: 4")); r.GetUpdatedSchema() == nil { // openConnection is a window of its own
			t.Error("the open connection has not heard of it")
		}
		clock.Advance(time.Hour)
		open().append(wide.first(t, stream("d.t"), `s: "x"`))
		now(t, bq, localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "newConnection", For: hour})
		open().append(wide.first(t, stream("d.t"), `s: "y"`)) // it was there before the window opened
	})
}

func flushOf(name string, offset int64) *storagepb.FlushRowsRequest {
	return &storagepb.FlushRowsRequest{WriteStream: name, Offset: wrapperspb.Int64(offset)}
}

func TestExhaustQuota(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	minute := localbq.FaultDuration(time.Minute)
	t.Run("LBQ-102 throughput for a minute, in the call", func(t *testing.T) {
		c := open()
		c.append(ids.first(t, stream("d.t"), "id: 1"))
		now(t, bq, localbq.FaultState{Do: localbq.FaultExhaustQuota, Quota: "appendThroughput", For: minute})
		s := c.refused(ids.next(t, "id: 2"), codes.ResourceExhausted, "Exceeds 'AppendRows throughput' quota")
		if !strings.HasPrefix(s.Message(), "Exceeds 'AppendRows throughput' quota") {
			t.Errorf("message %q", s.Message())
		}
		clock.Advance(time.Minute)
		c.append(ids.next(t, "id: 2"))
	})
	t.Run("streams, calls, metadata and jobs", func(t *testing.T) {
		for _, quota := range []string{"createStreams", "appendCalls", "metadataBurst", "loadJobs"} {
			now(t, bq, localbq.FaultState{Do: localbq.FaultExhaustQuota, Quota: quota, For: minute})
		}
		_, err := createStream(writeClient(t, bq), storagepb.WriteStream_PENDING)
		wantStatus(t, status.Convert(err), codes.ResourceExhausted, "Exceeds 'CreateWriteStream requests' quota")
		open().ends(ids.first(t, stream("d.t"), "id: 3"), codes.ResourceExhausted, "Exceeds 'AppendRows concurrent connections' quota")
		status, err := loadJob(t, bq, "a").Wait(t.Context())
		if err != nil || status.Err() == nil || !strings.Contains(status.Err().Error(), "exceeded quota for imports per project") {
			t.Errorf("%v, %v", status, err)
		}
		code, body := knock(t, "PATCH", "http://"+bq.REST()+"/projects/"+bq.Project()+"/datasets/d/tables/t", nil, `{"description":"x"}`)
		if code != 403 || !strings.Contains(body, "rateLimitExceeded") {
			t.Errorf("%d %s", code, body)
		}
		clock.Advance(time.Minute)
		open().append(ids.first(t, stream("d.t"), "id: 3"))
	})
}

func TestObjectsInTrouble(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, _, _ := oneTable(t, localbq.Config{Clock: clock})
	c, err := gcs.NewClient(t.Context(), bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Bucket("bucket").Create(t.Context(), "p", nil); err != nil {
		t.Fatal(err)
	}
	object := c.Bucket("bucket").Object("rows.json")
	w := object.NewWriter(t.Context())
	_, err = io.WriteString(w, `{"id":1}`+"\n")
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	load := func(id string) error {
		b, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		source := bigquery.NewGCSReference("gs://bucket/rows.json")
		source.SourceFormat = bigquery.JSON
		loader := b.Dataset("d").Table("t").LoaderFrom(source)
		loader.JobID = id
		job, err := loader.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Err()
	}
	change := func(do string, length time.Duration) {
		now(t, bq, localbq.FaultState{Do: do, Object: "gs://bucket/rows.json", For: localbq.FaultDuration(length)})
	}
	change(localbq.FaultHideObject, time.Minute)
	if _, err := object.Attrs(t.Context()); !errors.Is(err, gcs.ErrObjectNotExist) {
		t.Errorf("a hidden object: %v", err)
	}
	if _, err := c.Bucket("bucket").Objects(t.Context(), nil).Next(); err == nil {
		t.Error("a hidden object is listed")
	}
	if err := load("hidden"); err == nil || !strings.Contains(err.Error(), "Not found: URI gs://bucket/rows.json") {
		t.Errorf("load of a hidden object: %v", err)
	}
	clock.Advance(time.Minute)
	before, err := object.Attrs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := load("shown"); err != nil {
		t.Error(err)
	}
	change(localbq.FaultCorruptObject, 0)
	if after, err := object.Attrs(t.Context()); err != nil || after.Size != before.Size || after.Generation == before.Generation {
		t.Errorf("a corrupt object: %+v, %v", after, err)
	}
	t.Run("LBQ-170 a corrupt file fails the job and changes nothing", func(t *testing.T) {
		if err := load("corrupt"); err == nil {
			t.Error("it loads")
		}
		wantContents(t, bq, "d.t", `{"id":1}`)
	})
	change(localbq.FaultDeleteObject, 0)
	if _, err := object.Attrs(t.Context()); !errors.Is(err, gcs.ErrObjectNotExist) {
		t.Errorf("a deleted object: %v", err)
	}
}

func TestRestartServer(t *testing.T) {
	for name, c := range map[string]localbq.Config{"three ports": {}, "single port": {SinglePort: true}} {
		t.Run(name, func(t *testing.T) {
			bq, ids, open := oneTable(t, c)
			const message = "Closing the stream because server is restarted. This is expected and client is advised to reconnect. Entity: "
			idle, busy := open(), open()
			idle.append(ids.first(t, stream("d.t"), "id: 1"))
			arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, Action: localbq.FaultAction{
				State: []localbq.FaultState{{Do: localbq.FaultRestartServer}}}})
			busy.append(ids.first(t, stream("d.t"), "id: 2")) // the request at hand is carried out and answered
			for _, c := range []*call{idle, busy} {
				_, err := c.Recv()
				wantStatus(t, status.Convert(err), codes.Aborted, message+stream("d.t"))
			}
			open().append(ids.first(t, stream("d.t"), "id: 3"))
			wantContents(t, bq, "d.t", `{"id":1}`, `{"id":2}`, `{"id":3}`)
		})
	}
}

func TestStatesThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		`{"do": "explode"}`:                                         `state action "explode" is unknown`,
		`{"do": "openWindow", "for": "1s"}`:                         "window is for openWindow, which need it",
		`{"do": "openWindow", "window": "createFlush"}`:             "for is for openWindow, exhaustQuota, hideObject, which need it",
		`{"do": "openWindow", "window": "ajar", "for": "1s"}`:       `unknown window "ajar"`,
		`{"do": "exhaustQuota", "quota": "patience", "for": "1s"}`:  `unknown quota "patience"`,
		`{"do": "exhaustQuota", "quota": "loadJobs", "for": "-1s"}`: "for must not be negative",
		`{"do": "deleteObject", "table": "d.t"}`:                    "table is for",
		`{"do": "deleteTable", "object": "gs://b/o"}`:               "object is for",
		`{"do": "truncateTable", "job": "j"}`:                       "job is for dropResult",
		`{"do": "restartServer", "for": "1s"}`:                      "for is for",
	} {
		bq := start(t, localbq.Config{})
		rules, err := localbq.ParseFaults([]byte(`{"action": {"state": [` + text + `]}}`))
		if err == nil {
			err = bq.Faults().Add(rules...)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCreateStreamRate(t *testing.T) {
	bq, clock, _, _ := quotas(t, localbq.Quotas{CreateStreamRate: localbq.Quota{Region: 40, MultiRegion: 40}})
	c := writeClient(t, bq)
	for range 40 { // at once, with the clock standing still
		if _, err := createStream(c, storagepb.WriteStream_BUFFERED); err != nil {
			t.Fatal(err)
		}
	}
	began, made := clock.Now(), make(chan error, 1)
	go func() {
		_, err := createStream(c, storagepb.WriteStream_BUFFERED)
		made <- err
	}()
	for {
		select {
		case err := <-made:
			if waited := clock.Now().Sub(began); err != nil || waited < 25*time.Millisecond {
				t.Errorf("the forty-first after %v: %v", waited, err)
			}
			return
		default:
			clock.Advance(time.Millisecond)
		}
	}
}

func TestCopyBuffer(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	c := open()
	c.append(ids.first(t, stream("d.t"), "id: 1"))
	clock.Advance(time.Second)
	now(t, bq, localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "copyBuffer", For: localbq.FaultDuration(time.Minute)},
		localbq.FaultState{Do: localbq.FaultOpenWindow, Window: "numRows", For: localbq.FaultDuration(time.Minute)})
	clock.Advance(time.Second)
	c.append(ids.next(t, "id: 2"))
	client, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, id := range []string{"young", "settled"} {
		want := []string{`{"id":1}`}
		if id == "settled" {
			clock.Advance(time.Minute)
			want = append(want, `{"id":2}`)
		} else if m, err := client.Dataset("d").Table("t").Metadata(t.Context()); err != nil || m.NumRows != 1 || m.StreamingBuffer == nil {
			t.Errorf("metadata %+v, %v", m, err)
		}
		job, err := client.Dataset("d").Table(id).CopierFrom(client.Dataset("d").Table("t")).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if status, err := job.Wait(t.Context()); err != nil || status.Err() != nil {
			t.Fatal(status, err)
		}
		wantContents(t, bq, "d."+id, want...)
	}
}
