package localbq_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

// onAppend fires once an append has been received.
func onAppend(states ...localbq.FaultState) localbq.Fault {
	return localbq.Fault{Name: "change", Match: localbq.FaultMatch{Method: "AppendRows", Nth: 2}, Action: localbq.FaultAction{State: states}}
}

func TestFaultStates(t *testing.T) {
	two := func(t *testing.T, states ...localbq.FaultState) (*localbq.Instance, *rowType, *call) {
		t.Helper()
		bq := start(t, localbq.Config{})
		makeTable(t, bq, "d.t", column("id", "INTEGER", "REQUIRED"), column("s", "STRING"))
		rows := describe(t, "id int64", "s string")
		c := connect(t, writeClient(t, bq))
		arm(t, bq, onAppend(states...))
		c.append(rows.first(t, stream("d.t"), `id: 1 s: "a"`))
		return bq, rows, c
	}
	t.Run("a table deleted under a connection", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultDeleteTable})
		c.refused(rows.next(t, "id: 2"), codes.PermissionDenied, "(or it may not exist)")
		bq.Faults().MustAllFire(t)
	})
	t.Run("a table made anew", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultRecreateTable, Table: "d.t"})
		c.append(rows.next(t, "id: 2"))
		wantContents(t, bq, "d.t", `{"id":2,"s":null}`)
	})
	t.Run("a table emptied", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultTruncateTable})
		c.append(rows.next(t, "id: 2"))
		wantContents(t, bq, "d.t", `{"id":2,"s":null}`)
	})
	t.Run("a column added", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultAddColumn, Column: "more", Type: "integer", Mode: "REPEATED"})
		if answer := c.append(rows.next(t, "id: 2")); len(answer.GetUpdatedSchema().GetFields()) != 3 {
			t.Errorf("updated schema %v", answer.GetUpdatedSchema())
		}
		wantContents(t, bq, "d.t", `{"id":1,"more":[],"s":"a"}`, `{"id":2,"more":[],"s":null}`)
	})
	t.Run("a column dropped", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultDropColumn, Column: "S"})
		c.refused(rows.next(t, "id: 2"), codes.InvalidArgument, "extra fields: 's'")
		wantContents(t, bq, "d.t", `{"id":1}`)
	})
	t.Run("a column relaxed", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultRelaxColumn, Column: "id"})
		c.append(rows.next(t, `s: "b"`))
		wantContents(t, bq, "d.t", `{"id":1,"s":"a"}`, `{"id":null,"s":"b"}`)
	})
	t.Run("a column of another type", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultRetypeColumn, Column: "s", Type: "INT64"})
		c.refused(rows.next(t, "id: 2"), codes.InvalidArgument, "mismatched with BigQuery field at t.s")
		c.append(describe(t, "id int64", "s int64").first(t, "", "id: 2 s: 7"))
		wantContents(t, bq, "d.t", `{"id":1,"s":null}`, `{"id":2,"s":7}`)
	})
	t.Run("LBQ-148 an etag changed between get and patch", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		makeTable(t, bq, "d.t", column("id", "INTEGER"))
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "tables.get"}, Phase: localbq.PhaseAnswered,
			Action: localbq.FaultAction{State: []localbq.FaultState{{Do: localbq.FaultTouchTable}}}})
		url := "http://" + bq.REST() + "/projects/" + bq.Project() + "/datasets/d/tables/t"
		ask := func(method, body, ifMatch string) (int, string) {
			t.Helper()
			q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("If-Match", ifMatch)
			r, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var table bqapi.Table
			if err := json.NewDecoder(r.Body).Decode(&table); err != nil {
				t.Fatal(err)
			}
			return r.StatusCode, table.Etag
		}
		_, etag := ask("GET", "", "")
		if code, _ := ask("PATCH", `{"description": "new"}`, etag); code != http.StatusPreconditionFailed || etag == "" {
			t.Errorf("LBQ-148: code %d, etag %q", code, etag)
		}
	})
	t.Run("a read session expired under its reader", func(t *testing.T) {
		bq, _, _ := two(t, localbq.FaultState{Do: localbq.FaultTouchTable})
		client, err := storage.NewBigQueryReadClient(context.Background(), bq.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		session, err := client.CreateReadSession(context.Background(), &storagepb.CreateReadSessionRequest{
			Parent: "projects/p", ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO}})
		if err != nil {
			t.Fatal(err)
		}
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "ReadRows"},
			Action: localbq.FaultAction{State: []localbq.FaultState{{Do: localbq.FaultExpireSession}}}})
		rows, err := client.ReadRows(context.Background(), &storagepb.ReadRowsRequest{ReadStream: session.GetStreams()[0].GetName()})
		if err == nil {
			_, err = rows.Recv()
		}
		wantStatus(t, status.Convert(err), codes.FailedPrecondition, session.GetName())
	})
	t.Run("what cannot be done is told", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultDropColumn, Column: "nosuch"})
		c.append(rows.next(t, "id: 2"))
		r := &recorder{}
		bq.Faults().MustAllFire(r)
		if failed := bq.Faults().List()[0].Failed; len(failed) != 1 || !strings.Contains(failed[0], "nosuch") || len(r.errors) != 1 {
			t.Errorf("failed %q, errors %q", failed, r.errors)
		}
	})
	t.Run("over HTTP", func(t *testing.T) {
		bq, rows, c := two(t, localbq.FaultState{Do: localbq.FaultTouchTable})
		rule := `{"name": "drop", "match": {"method": "AppendRows"}, "action": {"state": [{"do": "dropColumn", "column": "s"}]}}`
		if code := admin(t, bq, "POST", "faults", rule, nil); code != http.StatusOK {
			t.Fatalf("code %d", code)
		}
		c.refused(rows.next(t, "id: 2"), codes.InvalidArgument, "extra fields: 's'")
		for _, bad := range []string{`{"do": "explode"}`, `{"do": "dropColumn"}`, `{"do": "addColumn", "column": "x"}`, `{"do": "deleteTable", "column": "x"}`,
			`{"do": "dropColumn", "column": "x", "type": "STRING"}`, `{"do": "expireSession", "table": "d.t"}`, `{"do": "deleteTable", "session": "s"}`} {
			if code := admin(t, bq, "POST", "faults", `{"action": {"state": [`+bad+`]}}`, nil); code != http.StatusBadRequest {
				t.Errorf("%s: code %d", bad, code)
			}
		}
	})
}

func TestSchemaDropWindow(t *testing.T) {
	clock := localbq.NewManualClock()
	profile := localbq.FriendlyProfile()
	profile.Windows.SchemaDrop = localbq.ServiceProfile().Windows.SchemaDrop
	bq := start(t, localbq.Config{Clock: clock, Profile: profile})
	makeTable(t, bq, "d.t", column("id", "INTEGER"), column("s", "STRING"))
	rows := describe(t, "id int64", "s string")
	c := connect(t, writeClient(t, bq))
	arm(t, bq, onAppend(localbq.FaultState{Do: localbq.FaultDropColumn, Column: "s"}))
	c.append(rows.first(t, stream("d.t"), `id: 1 s: "a"`))
	c.append(rows.next(t, `id: 2 s: "lost"`))
	clock.Advance(9*time.Second - time.Millisecond)
	c.append(rows.next(t, `id: 3 s: "lost"`))
	clock.Advance(2 * time.Millisecond)
	c.refused(rows.next(t, `id: 4 s: "late"`), codes.InvalidArgument, "extra fields: 's'")
	wantContents(t, bq, "d.t", `{"id":1}`, `{"id":2}`, `{"id":3}`)
}

func TestStorm(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, For: localbq.FaultDuration(10 * time.Second),
		Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "RESOURCE_EXHAUSTED", Message: "Exceeds 'AppendRows throughput' quota"}}})
	clock.Advance(time.Hour) // a storm begins with the first call that it meets
	c := open()
	for range 2 {
		c.refused(ids.first(t, stream("d.t"), "id: 1"), codes.ResourceExhausted, "Exceeds 'AppendRows throughput' quota")
		clock.Advance(5 * time.Second)
	}
	c.append(ids.first(t, stream("d.t"), "id: 1"))
	if err := bq.Faults().Add(localbq.Fault{For: 1, Count: 2, Action: localbq.FaultAction{Reset: true}}); err == nil {
		t.Error("for and count were taken together")
	}
}

func TestDelayAck(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{})
	arm(t, bq, localbq.Fault{Phase: localbq.PhaseApplied, Match: localbq.FaultMatch{Method: "AppendRows", Nth: 2}, Action: localbq.FaultAction{DelayAck: 2}})
	c := open()
	send := func(q *storagepb.AppendRowsRequest) {
		t.Helper()
		if err := c.Send(q); err != nil {
			t.Fatal(err)
		}
	}
	c.append(ids.first(t, stream("d.t"), "id: 1"))
	arrived := make(chan *storagepb.AppendRowsResponse)
	go func() { // ends with the call
		for {
			r, err := c.Recv()
			if err != nil {
				close(arrived)
				return
			}
			arrived <- r
		}
	}()
	send(ids.next(t, "id: 2"))
	send(ids.first(t, path("d.t")+"/_default", "id: 3"))
	for deadline := time.Now().Add(10 * time.Second); contents(t, bq, "d.t") != "{\"id\":1}\n{\"id\":2}\n{\"id\":3}" && time.Now().Before(deadline); {
	}
	select {
	case r := <-arrived:
		t.Fatalf("answer %v came before its time", r)
	default:
	}
	send(ids.first(t, stream("d.t"), "id: 4"))
	for _, want := range []string{stream("d.t"), path("d.t") + "/_default", stream("d.t")} {
		if r := <-arrived; r.GetWriteStream() != want {
			t.Errorf("an answer about %s, want %s: out of order", r.GetWriteStream(), want)
		}
	}
	t.Run("the end of requests lets go", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Name: "last", Phase: localbq.PhaseApplied, Match: localbq.FaultMatch{Method: "AppendRows"}, Action: localbq.FaultAction{DelayAck: 9}})
		send(ids.first(t, stream("d.t"), "id: 5"))
		if err := c.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if r := <-arrived; r == nil || r.GetError() != nil {
			t.Errorf("got %v", r)
		}
		if r, more := <-arrived; more {
			t.Errorf("one too many: %v", r)
		}
	})
}

func TestResetAfterBytes(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	get := func(t *testing.T) (string, error) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + bq.REST() + "/bigquery/v2/projects/" + bq.Project() + "/datasets/d/tables/t")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
	whole, err := get(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("of the server", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Name: "body", Match: localbq.FaultMatch{Method: "tables.get"}, Action: localbq.FaultAction{ResetAfter: &localbq.FaultCut{Bytes: 300}}})
		part, err := get(t)
		if err == nil || len(part) == 0 || !strings.HasPrefix(whole, part) || len(part) >= 300 {
			t.Errorf("%d bytes of body, %v", len(part), err)
		}
		if again, err := get(t); err != nil || again != whole {
			t.Errorf("the next connection: %v", err)
		}
	})
	t.Run("of the client", func(t *testing.T) {
		rows := describe(t, "id int64")
		c := connect(t, writeClient(t, bq))
		c.append(rows.first(t, stream("d.t"), "id: 1"))
		arm(t, bq, localbq.Fault{Name: "request", Phase: localbq.PhaseAnswered, Match: localbq.FaultMatch{Method: "AppendRows"},
			Action: localbq.FaultAction{ResetAfter: &localbq.FaultCut{Bytes: 1000, From: "client"}}})
		c.append(rows.next(t, "id: 2"))
		many := make([]string, 5000)
		for i := range many {
			many[i] = "id: 3"
		}
		c.ends(rows.next(t, many...), codes.Unavailable, "")
		wantContents(t, bq, "d.t", `{"id":1}`, `{"id":2}`)
	})
	t.Run("of nobody", func(t *testing.T) {
		if err := bq.Faults().Add(localbq.Fault{Action: localbq.FaultAction{ResetAfter: &localbq.FaultCut{From: "moon"}}}); err == nil {
			t.Error("taken")
		}
	})
}
