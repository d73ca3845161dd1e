package localbq_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

func arm(t *testing.T, bq *localbq.Instance, rules ...localbq.Fault) {
	t.Helper()
	if err := bq.Faults().Add(rules...); err != nil {
		t.Fatal(err)
	}
}

// oneTable is an instance with table d.t of a column id, and a client.
func oneTable(t *testing.T, c localbq.Config) (*localbq.Instance, *rowType, func() *call) {
	bq := start(t, c)
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	client := writeClient(t, bq)
	return bq, describe(t, "id int64"), func() *call { return connect(t, client) }
}

func TestFaultStatus(t *testing.T) {
	t.Run("in the call, before anything is done", func(t *testing.T) {
		bq, ids, open := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{
			Match: localbq.FaultMatch{Method: "AppendRows", Nth: 2},
			Action: localbq.FaultAction{Status: &localbq.FaultStatus{
				Code: "RESOURCE_EXHAUSTED", Message: "Exceeds 'AppendRows throughput' quota", StorageError: "STREAM_NOT_FOUND",
				RetryDelay: localbq.FaultDuration(3 * time.Second), RowErrors: []localbq.FaultRowError{{Index: 4, Message: "why"}},
			}},
		})
		call := open()
		call.append(ids.first(t, stream("d.t"), "id: 1"))
		answer := call.ask(ids.next(t, "id: 2"))
		s := status.FromProto(answer.GetError())
		wantStatus(t, s, codes.ResourceExhausted, "Exceeds 'AppendRows throughput' quota")
		if code := storageCode(t, s); code != storagepb.StorageError_STREAM_NOT_FOUND {
			t.Errorf("StorageError %v", code)
		}
		if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 4 || e[0].GetMessage() != "why" {
			t.Errorf("row errors %v", e)
		}
		retry := slices.ContainsFunc(s.Details(), func(d any) bool {
			r, ok := d.(*errdetails.RetryInfo)
			return ok && r.GetRetryDelay().AsDuration() == 3*time.Second
		})
		if !retry {
			t.Errorf("details %v have no RetryInfo of 3 s", s.Details())
		}
		call.append(ids.next(t, "id: 3"))
		wantContents(t, bq, "d.t", `{"id":1}`, `{"id":3}`)
		bq.Faults().MustAllFire(t)
	})
	t.Run("of the first request, whose stream and schema hold all the same", func(t *testing.T) {
		bq, ids, open := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}})
		call := open()
		q := ids.first(t, stream("d.t"), "id: 1")
		q.TraceId = "me"
		call.refused(q, codes.Unavailable, "")
		call.append(ids.next(t, "id: 2"))
		wantContents(t, bq, "d.t", `{"id":2}`)
		for r, err := range bq.Audit().Records() {
			if err != nil || r.RPC == "AppendRows" && r.TraceID != "me" {
				t.Errorf("audit: %+v, %v", r, err)
			}
		}
	})
	t.Run("as the end of the call, after the work is done", func(t *testing.T) {
		bq, ids, open := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{Phase: localbq.PhaseApplied, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INTERNAL", Message: "sorry", Ends: true}}})
		open().ends(ids.first(t, stream("d.t"), "id: 1"), codes.Internal, "sorry")
		wantContents(t, bq, "d.t", `{"id":1}`)
	})
	t.Run("to a unary call and to REST", func(t *testing.T) {
		bq, _, _ := oneTable(t, localbq.Config{})
		arm(t, bq,
			localbq.Fault{Match: localbq.FaultMatch{Service: "write", Method: "GetWriteStream", Table: "d.t"}, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAUTHENTICATED"}}},
			localbq.Fault{Match: localbq.FaultMatch{Service: "rest", Method: "tables.get", Table: localbq.DefaultProject + ".d.t"},
				Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "rateLimitExceeded", Message: "slow down"}}, Phase: localbq.PhaseApplied})
		_, err := writeClient(t, bq).GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: stream("d.t")})
		wantStatus(t, status.Convert(err), codes.Unauthenticated, "")
		client, err := bigquery.NewClient(context.Background(), localbq.DefaultProject, bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// The client retries the reason by itself, so the second answer is the ordinary one.
		if _, err := client.Dataset("d").Table("t").Metadata(context.Background()); err != nil {
			e, _ := errors.AsType[*googleapi.Error](err)
			t.Errorf("got %v %+v", err, e)
		}
		bq.Faults().MustAllFire(t)
	})
}

func TestLostAck(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	arm(t, bq, localbq.Fault{Name: "lost", Match: localbq.FaultMatch{Table: "d.t", StreamKind: "default"}, Action: localbq.FaultAction{LoseAck: true}})
	open().ends(ids.first(t, stream("d.t"), "id: 1"), codes.Unavailable, "")
	wantContents(t, bq, "d.t", `{"id":1}`)
	t.Run("LBQ-28_sent_again_it_is_there_twice", func(t *testing.T) {
		open().append(ids.first(t, stream("d.t"), "id: 1"))
		wantContents(t, bq, "d.t", `{"id":1}`, `{"id":1}`)
		twice, err := bq.Audit().AppliedTwice("d.t")
		if err != nil || len(twice) != 1 || len(twice[0]) != 2 || twice[0][0].ID != 0 || twice[0][1].ID != 1 {
			t.Errorf("applied twice: %+v, %v", twice, err)
		}
		never, err := bq.Audit().VisibleNeverAcked("d.t")
		if err != nil || len(never) != 1 || never[0].ID != 0 {
			t.Errorf("visible and never acknowledged: %+v, %v", never, err)
		}
		lost, err := bq.Audit().AckedNotVisible("d.t")
		if err != nil || len(lost) != 0 {
			t.Errorf("acknowledged and not visible: %+v, %v", lost, err)
		}
	})
}

func TestReset(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	arm(t, bq, localbq.Fault{Action: localbq.FaultAction{Reset: true}})
	open().ends(ids.first(t, stream("d.t"), "id: 1"), codes.Unavailable, "")
	if rows, _ := bq.NumRows("d.t"); rows != 0 {
		t.Errorf("%d rows, want none: the call was cut before it was carried out", rows)
	}
	open().append(ids.first(t, stream("d.t"), "id: 1"))
}

func TestDelayAndHang(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	answered := func(c *call) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.Recv()
			done <- err
		}()
		return done
	}
	t.Run("delayed by the service's clock", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Phase: localbq.PhaseApplied, Action: localbq.FaultAction{Barrier: true}},
			localbq.Fault{Name: "late", Phase: localbq.PhaseApplied, Action: localbq.FaultAction{Delay: localbq.FaultDuration(time.Minute)}})
		c := open()
		if err := c.Send(ids.first(t, stream("d.t"), "id: 1")); err != nil {
			t.Fatal(err)
		}
		done := answered(c)
		b, err := bq.Faults().NextBarrier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := clock.Now()
		b.Release() // the request is in: before, the clock could run until the connection has been idle for too long
		for held := true; held; {
			select {
			case err := <-done:
				if waited := clock.Now().Sub(began); err != nil || waited < time.Minute {
					t.Errorf("answered after %v: %v", waited, err)
				}
				held = false
			default:
				clock.Advance(time.Second)
				runtime.Gosched()
			}
		}
	})
	t.Run("hanging until released", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Action: localbq.FaultAction{Barrier: true}}, localbq.Fault{Name: "stuck", Action: localbq.FaultAction{Hang: true}})
		c := open()
		if err := c.Send(ids.first(t, stream("d.t"), "id: 2")); err != nil {
			t.Fatal(err)
		}
		done := answered(c)
		b, err := bq.Faults().NextBarrier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Release() // from here to the hang nothing can answer
		select {
		case err := <-done:
			t.Fatalf("answered while it hung: %v", err)
		default:
		}
		if err := bq.Faults().Release("stuck"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("closing the service lets go", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Action: localbq.FaultAction{Hang: true}}, localbq.Fault{Phase: localbq.PhaseApplied, Action: localbq.FaultAction{Barrier: true}})
		c := open()
		if err := c.Send(ids.first(t, stream("d.t"), "id: 3")); err != nil {
			t.Fatal(err)
		}
		// start's cleanup closes the instance, and fails the test if that does not end.
	})
}

func TestBarrier(t *testing.T) {
	for _, phase := range []struct {
		name    string
		rule    localbq.Fault
		applied int64 // rows when the connection is cut and the call goes on
	}{
		{"receive", localbq.Fault{Phase: localbq.PhaseReceive}, 0},
		{"applied", localbq.Fault{Phase: localbq.PhaseApplied}, 1},
		{"answered", localbq.Fault{Phase: localbq.PhaseAnswered}, 1},
	} {
		t.Run(phase.name, func(t *testing.T) {
			bq, ids, _ := oneTable(t, localbq.Config{})
			phase.rule.Action.Barrier = true
			arm(t, bq, phase.rule)
			client, err := writeClient(t, bq).AppendRows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Send(ids.first(t, stream("d.t"), "id: 1")); err != nil {
				t.Fatal(err)
			}
			b, err := bq.Faults().NextBarrier(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if b.Phase != phase.rule.Phase || b.Call.Method != "AppendRows" || b.Call.Table != path("d.t") || b.Call.Rows != 1 {
				t.Errorf("barrier %+v", b)
			}
			if rows, _ := bq.NumRows("d.t"); rows != phase.applied {
				t.Errorf("%d rows while it is held, want %d", rows, phase.applied)
			}
			b.Cut()
			b.Release() // does nothing any more
			for err == nil {
				_, err = client.Recv()
			}
			closeNow(t, bq)
			if rows, _ := bq.NumRows("d.t"); rows != phase.applied {
				t.Errorf("%d rows in the end, want %d", rows, phase.applied)
			}
		})
	}
}

// closeNow closes an instance, which ends once every call is over and written down. What it holds can still be looked at.
func closeNow(t *testing.T, bq *localbq.Instance) {
	t.Helper()
	if err := bq.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFaultRules(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{Seed: 42})
	fails := func(c *call, id int) bool {
		return c.ask(ids.first(t, stream("d.t"), fmt.Sprint("id: ", id))).GetError() != nil
	}
	unavailable := localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}
	pattern := func(rules ...localbq.Fault) (out string) {
		bq.Faults().Clear()
		arm(t, bq, rules...)
		c := open()
		for i := range 8 {
			out += map[bool]string{true: "x", false: "."}[fails(c, i)]
		}
		return out
	}
	for want, rule := range map[string]localbq.Fault{
		"x.......": {},
		"xxx.....": {Count: 3},
		"xxxxxxxx": {Count: localbq.FaultAlways},
		"..x.....": {Match: localbq.FaultMatch{Nth: 3}},
		"..xx....": {Match: localbq.FaultMatch{Nth: 3}, Count: 2},
		"..x..x..": {Match: localbq.FaultMatch{Every: 3}, Count: localbq.FaultAlways},
		"........": {Match: localbq.FaultMatch{Table: "d.other"}},
	} {
		rule.Action = unavailable
		if got := pattern(rule); got != want {
			t.Errorf("%+v: %s, want %s", rule.Match, got, want)
		}
	}
	t.Run("after another", func(t *testing.T) {
		got := pattern(
			localbq.Fault{Name: "second", Match: localbq.FaultMatch{After: "first"}, Action: unavailable},
			localbq.Fault{Name: "first", Match: localbq.FaultMatch{Nth: 4}, Action: unavailable})
		if got != "...xx..." {
			t.Errorf("got %s", got)
		}
	})
	t.Run("by chance, from the seed", func(t *testing.T) {
		chance := localbq.Fault{Match: localbq.FaultMatch{Probability: 0.5}, Count: localbq.FaultAlways, Action: unavailable}
		first := pattern(chance)
		again, ids2, open2 := oneTable(t, localbq.Config{Seed: 42})
		arm(t, again, chance)
		var got string
		c := open2()
		for i := range 8 {
			got += map[bool]string{true: "x", false: "."}[c.ask(ids2.first(t, stream("d.t"), fmt.Sprint("id: ", i))).GetError() != nil]
		}
		if got != first {
			t.Errorf("the same seed gives %s and %s", first, got)
		}
	})
	t.Run("a rule that never fires fails the test", func(t *testing.T) {
		bq.Faults().Clear()
		arm(t, bq, localbq.Fault{Name: "idle", Match: localbq.FaultMatch{Table: "d.other"}, Action: unavailable})
		var r recorder
		bq.Faults().MustAllFire(&r)
		if len(r.errors) != 1 {
			t.Errorf("reported %q", r.errors)
		}
	})
	t.Run("rules that make no sense", func(t *testing.T) {
		for name, rule := range map[string]localbq.Fault{
			"no action":            {},
			"unknown phase":        {Phase: "later", Action: unavailable},
			"unknown code":         {Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "BAD"}}},
			"OK is no fault":       {Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "OK"}}},
			"unknown StorageError": {Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INTERNAL", StorageError: "BAD"}}},
			"loseAck on receive":   {Phase: localbq.PhaseReceive, Action: localbq.FaultAction{LoseAck: true}},
			"answer after answer":  {Phase: localbq.PhaseAnswered, Action: unavailable},
			"nth and every":        {Match: localbq.FaultMatch{Nth: 1, Every: 1}, Action: unavailable},
			"an HTTP code of 200":  {Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 200}}},
			"a name that is taken": {Name: "idle", Action: unavailable},
		} {
			if err := bq.Faults().Add(rule); err == nil {
				t.Errorf("%s is accepted", name)
			}
		}
	})
}

// recorder takes the place of a test that is to fail.
type recorder struct{ errors []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestConcurrentWriters shows that rows of many connections to one table all land, each request whole.
func TestConcurrentWriters(t *testing.T) {
	bq, ids, _ := oneTable(t, localbq.Config{})
	client := writeClient(t, bq)
	var writers sync.WaitGroup
	const connections, requests = 8, 25
	for w := range connections {
		writers.Go(func() {
			c := connect(t, client)
			for i := range requests {
				at := 1000*w + 2*i
				c.append(ids.first(t, stream("d.t"), fmt.Sprint("id: ", at), fmt.Sprint("id: ", at+1)))
			}
		})
	}
	writers.Wait()
	var want []string
	for w := range connections {
		for i := range 2 * requests {
			want = append(want, fmt.Sprint(1000*w+i))
		}
	}
	got, err := bq.Audit().ExactlyOnce("d.t", "id", want)
	if err != nil || !got.OK() {
		t.Errorf("%+v, %v", got, err)
	}
	if left, err := bq.Audit().Unaccounted("d.t"); err != nil || len(left) != 0 {
		t.Errorf("unaccounted: %v, %v", left, err)
	}
}

// TestRESTFaults cuts REST calls off before and behind their work.
func TestRESTFaults(t *testing.T) {
	bq := start(t, localbq.Config{})
	if err := bq.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	// insert makes a table in one call, which is never sent again, and returns the answer's code; 0 is none.
	insert := func(table string) int {
		body := fmt.Sprintf(`{"tableReference":{"projectId":%q,"datasetId":"d","tableId":%q}}`, localbq.DefaultProject, table)
		q, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+bq.REST()+"/bigquery/v2/projects/"+localbq.DefaultProject+"/datasets/d/tables", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.GetBody = nil
		r, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
		if err != nil {
			return 0
		}
		defer r.Body.Close()
		return r.StatusCode
	}
	for _, c := range []struct {
		table  string
		action localbq.FaultAction
		again  int
	}{{"before", localbq.FaultAction{Reset: true}, 200}, {"behind", localbq.FaultAction{LoseAck: true}, 409}} {
		arm(t, bq, localbq.Fault{Name: c.table, Match: localbq.FaultMatch{Service: "rest", Method: "tables.insert"}, Action: c.action})
		if code := insert(c.table); code != 0 {
			t.Errorf("%s: answered %d", c.table, code)
		}
		if code := insert(c.table); code != c.again {
			t.Errorf("%s: answered %d at the second try, want %d", c.table, code, c.again)
		}
	}
	bq.Faults().MustAllFire(t)
	closeNow(t, bq)
	var fates []string
	for r, err := range bq.Audit().Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.RPC == "tables.insert" {
			fates = append(fates, fmt.Sprint(r.Fate, " ", r.Code))
		}
	}
	if got, want := fmt.Sprintf("%q", fates), `["cut " "sent 200" "withheld " "sent 409"]`; got != want {
		t.Errorf("the log says %s, want %s", got, want)
	}
}
