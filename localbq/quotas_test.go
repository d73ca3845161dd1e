package localbq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

// quotas is an instance of one table with quotas, its clock standing still.
func quotas(t *testing.T, q localbq.Quotas) (*localbq.Instance, *localbq.ManualClock, *rowType, func() *call) {
	t.Helper()
	clock := localbq.NewManualClock()
	p := localbq.FriendlyProfile()
	p.Quotas = q
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock, Profile: p})
	return bq, clock, ids, open
}

func TestQuotas(t *testing.T) {
	t.Run("AppendRows calls at once", func(t *testing.T) {
		_, _, ids, open := quotas(t, localbq.Quotas{AppendCalls: localbq.Quota{Region: 1, MultiRegion: 2}})
		first, second := open(), open()
		for _, c := range []*call{first, second} {
			c.append(ids.first(t, stream("d.t"), "id: 1"))
		}
		open().ends(ids.first(t, stream("d.t"), "id: 2"), codes.ResourceExhausted, "Exceeds 'AppendRows concurrent connections' quota")
		first.append(ids.next(t, "id: 3"))
		if err := second.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Recv(); err == nil {
			t.Error("the call goes on")
		}
		open().append(ids.first(t, stream("d.t"), "id: 4"))
	})
	t.Run("throughput of appends", func(t *testing.T) {
		_, clock, ids, open := quotas(t, localbq.Quotas{AppendThroughput: localbq.Quota{MultiRegion: 50}})
		c := open()
		c.append(ids.first(t, stream("d.t"), "id: 1"))
		s := c.refused(ids.next(t, "id: 2"), codes.ResourceExhausted, "Exceeds 'AppendRows throughput' quota")
		if !strings.HasPrefix(s.Message(), "Exceeds 'AppendRows throughput' quota") {
			t.Errorf("message %q", s.Message())
		}
		clock.Advance(10 * time.Second)
		c.append(ids.next(t, "id: 2"))
	})
	t.Run("LBQ-102 the Go client outlasts a storm", func(t *testing.T) {
		bq, ids, _ := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, Count: 2,
			Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "RESOURCE_EXHAUSTED", Message: "Exceeds 'AppendRows throughput' quota"}}})
		s := managedStream(t, managed(t, bq), "d.t", ids, managedwriter.EnableWriteRetries(true))
		r, err := s.AppendRows(context.Background(), ids.rows(t, "id: 1"))
		if err == nil {
			_, err = r.GetResult(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		bq.Faults().MustAllFire(t)
		wantContents(t, bq, "d.t", `{"id":1}`)
	})
	t.Run("CreateWriteStream in an hour", func(t *testing.T) {
		bq, clock, _, _ := quotas(t, localbq.Quotas{CreateStreams: localbq.Quota{MultiRegion: 2}})
		c := writeClient(t, bq)
		create := func() error {
			_, err := c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
				Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_BUFFERED},
			}, gax.WithRetry(func() gax.Retryer { return nil })) // the client takes it for a passing fault
			return err
		}
		for range 2 {
			if err := create(); err != nil {
				t.Fatal(err)
			}
		}
		wantStatus(t, status.Convert(create()), codes.ResourceExhausted, "Exceeds 'CreateWriteStream requests' quota")
		clock.Advance(time.Hour)
		if err := create(); err != nil {
			t.Error(err)
		}
	})
	t.Run("bytes of PENDING streams", func(t *testing.T) {
		bq, _, ids, open := quotas(t, localbq.Quotas{PendingBytes: localbq.Quota{MultiRegion: 16}})
		c := writeClient(t, bq)
		w, err := c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_PENDING}})
		if err != nil {
			t.Fatal(err)
		}
		pending := open()
		pending.append(ids.first(t, w.GetName(), "id: 1", "id: 2"))
		pending.refused(ids.next(t, "id: 3"), codes.ResourceExhausted, "Exceeds 'Pending stream bytes' quota")
		open().append(ids.first(t, stream("d.t"), "id: 4")) // other streams hold nothing back
		if _, err := c.FinalizeWriteStream(context.Background(), &storagepb.FinalizeWriteStreamRequest{Name: w.GetName()}); err != nil {
			t.Fatal(err)
		}
		commit, err := c.BatchCommitWriteStreams(context.Background(), &storagepb.BatchCommitWriteStreamsRequest{Parent: path("d.t"), WriteStreams: []string{w.GetName()}})
		if err != nil || commit.GetCommitTime() == nil {
			t.Fatal(commit, err)
		}
		again, err := c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_PENDING}})
		if err != nil {
			t.Fatal(err)
		}
		open().append(ids.first(t, again.GetName(), "id: 5"))
	})
	t.Run("the service's are those of its documentation", func(t *testing.T) {
		q := localbq.ServiceProfile().Quotas
		if q.AppendCalls.In("us") != 10_000 || q.AppendCalls.In("us-east1") != 1_000 || q.AppendThroughput.In("EU") != 3_000_000_000 ||
			q.CreateStreams.In("US") != 10_000 || q.PendingBytes.In("asia-south1") != 1_000_000_000_000 {
			t.Errorf("%+v", q)
		}
		if q := localbq.FriendlyProfile().Quotas; q != (localbq.Quotas{}) {
			t.Errorf("friendly: %+v", q)
		}
	})
}

func TestRelaxWindows(t *testing.T) {
	clock := localbq.NewManualClock()
	p := localbq.FriendlyProfile()
	service := localbq.ServiceProfile().Windows
	p.Windows.RelaxNewConnection, p.Windows.RelaxOpenConnection = service.RelaxNewConnection, service.RelaxOpenConnection
	p.Windows.RelaxNewConnection.TailChance, p.Windows.RelaxOpenConnection.TailChance = 0, 0
	run := func(t *testing.T, p localbq.Profile, fresh, open time.Duration) {
		t.Helper()
		bq := start(t, localbq.Config{Clock: clock, Profile: p})
		makeTable(t, bq, "d.t", column("id", "INTEGER", "REQUIRED"), column("s", "STRING"))
		narrow := describe(t, "s string")
		client := writeClient(t, bq)
		old := connect(t, client)
		old.append(describe(t, "id int64").first(t, stream("d.t"), "id: 1"))
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "GetWriteStream"}, Action: localbq.FaultAction{
			State: []localbq.FaultState{{Do: localbq.FaultRelaxColumn, Table: "d.t", Column: "id"}}}})
		if _, err := client.GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: stream("d.t")}); err != nil {
			t.Fatal(err)
		}
		late := connect(t, client)
		late.refused(narrow.first(t, stream("d.t"), `s: "x"`), codes.InvalidArgument, "required field id is missing")
		clock.Advance(fresh - time.Millisecond)
		late.refused(narrow.next(t, `s: "x"`), codes.InvalidArgument, "required field id is missing")
		clock.Advance(2 * time.Millisecond)
		late.append(narrow.next(t, `s: "x"`))
		old.refused(narrow.first(t, stream("d.t"), `s: "x"`), codes.InvalidArgument, "required field id is missing")
		clock.Advance(open - fresh)
		if r := old.append(narrow.next(t, `s: "y"`)); r.GetUpdatedSchema() == nil {
			t.Error("the open connection does not hear of it")
		}
	}
	t.Run("as a rule", func(t *testing.T) { run(t, p, 400*time.Millisecond, 2*time.Second) })
	t.Run("in the tail", func(t *testing.T) {
		p.Windows.RelaxNewConnection.TailChance, p.Windows.RelaxOpenConnection.TailChance = 1, 1
		run(t, p, 11500*time.Millisecond, 5*time.Minute)
	})
}

func TestRecreateGhost(t *testing.T) {
	clock := localbq.NewManualClock()
	p := localbq.FriendlyProfile()
	p.Windows.RecreateGhost = localbq.ServiceProfile().Windows.RecreateGhost
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock, Profile: p})
	arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows", Nth: 2}, Action: localbq.FaultAction{
		State: []localbq.FaultState{{Do: localbq.FaultRecreateTable}}}})
	old := open()
	old.append(ids.first(t, stream("d.t"), "id: 1"))
	old.append(ids.next(t, "id: 2"))
	clock.Advance(4*time.Second - time.Millisecond)
	old.append(ids.next(t, "id: 3"))
	open().append(ids.first(t, stream("d.t"), "id: 4"))
	wantContents(t, bq, "d.t", `{"id":4}`)
	clock.Advance(3*time.Second + 2*time.Millisecond)
	arm(t, bq, localbq.Fault{Name: "held", Match: localbq.FaultMatch{Method: "AppendRows"}, Action: localbq.FaultAction{Barrier: true}})
	ended := make(chan error)
	go func() {
		err := old.Send(ids.next(t, "id: 5"))
		if err == nil {
			_, err = old.Recv()
		}
		ended <- err
	}()
	held, err := bq.Faults().NextBarrier(t.Context()) // from here on the call is not idle
	if err != nil {
		t.Fatal(err)
	}
	began := clock.Now()
	held.Release()
	for {
		select {
		case err := <-ended:
			wantStatus(t, status.Convert(err), codes.DeadlineExceeded, "Deadline exceeded.")
			if hung := clock.Now().Sub(began); hung < 120*time.Second {
				t.Errorf("it hung for %v", hung)
			}
			wantContents(t, bq, "d.t", `{"id":4}`)
			return
		default:
			clock.Advance(time.Second)
		}
	}
}
