package localtests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
)

// start starts a local BigQuery for one test, and closes it behind it.
func start(t *testing.T, c localbq.Config) *localbq.Instance {
	t.Helper()
	c.AutoCreateDataset = true
	bq, err := localbq.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			t.Error(err)
		}
	})
	return bq
}

func connection(bq *localbq.Instance) bigquery.Connection {
	return bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
}

// input is a file of n orders, o0, o1, …, and what they are called.
func input(t *testing.T, n int) (file string, ids []string) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		ids = append(ids, fmt.Sprintf("o%d", i))
		fmt.Fprintf(&lines, `{"id": "o%d", "count": %d}`+"\n", i, i)
	}
	file = filepath.Join(t.TempDir(), "orders.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, ids
}

func TestEveryOrderArrives(t *testing.T) {
	bq := start(t, localbq.Config{})
	file, ids := input(t, 100)
	if _, err := Load(t.Context(), file, connection(bq), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	found, err := bq.Audit().ExactlyOnce("shop.orders", "id", ids)
	if err != nil || !found.OK() {
		t.Errorf("%+v, %v", found, err)
	}
}

// BigQuery takes the first append and its answer gets lost: the rows are sent again and are then there twice, which is what
// at least once means. None is missing.
func TestLostAnswer(t *testing.T) {
	bq := start(t, localbq.Config{})
	file, ids := input(t, 10)
	err := bq.Faults().Add(localbq.Fault{
		Match:  localbq.FaultMatch{Method: "AppendRows", Table: "shop.orders"},
		Action: localbq.FaultAction{LoseAck: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), file, connection(bq), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	found, err := bq.Audit().ExactlyOnce("shop.orders", "id", ids)
	if err != nil || len(found.Missing) > 0 || len(found.Twice) != 10 {
		t.Errorf("%+v, %v", found, err)
	}
	bq.Faults().MustAllFire(t)
}

// BigQuery refuses one row by its number: the others are written.
func TestRefusedRow(t *testing.T) {
	bq := start(t, localbq.Config{})
	file, _ := input(t, 10)
	err := bq.Faults().Add(localbq.Fault{
		Match: localbq.FaultMatch{Method: "AppendRows"},
		Action: localbq.FaultAction{Status: &localbq.FaultStatus{
			Code:      "INVALID_ARGUMENT",
			RowErrors: []localbq.FaultRowError{{Index: 4, Message: "the fifth is bad"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := Load(t.Context(), file, connection(bq), engine.Options{})
	if err != nil || result.Tally.Written != 9 || result.Tally.DeadLettered != 1 {
		t.Errorf("%+v, %v", result.Tally, err)
	}
}

// The process ends after BigQuery has the rows and before it says so. The next run writes them again.
func TestKilledBetweenAppendAndAnswer(t *testing.T) {
	bq := start(t, localbq.Config{})
	file, ids := input(t, 10)
	err := bq.Faults().Add(localbq.Fault{
		Match:  localbq.FaultMatch{Method: "AppendRows"},
		Phase:  localbq.PhaseApplied,
		Action: localbq.FaultAction{Barrier: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	options := engine.Options{Checkpoint: engine.Checkpointing{URL: "file://" + t.TempDir()}}
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with the run
		_, err := Load(ctx, file, connection(bq), options)
		ended <- err
	}()
	held, err := bq.Faults().NextBarrier(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kill()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	held.Cut()
	if _, err := Load(t.Context(), file, connection(bq), options); err != nil {
		t.Fatal(err)
	}
	found, err := bq.Audit().ExactlyOnce("shop.orders", "id", ids)
	if err != nil || len(found.Missing) > 0 || len(found.Twice) != 10 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A table in null mode counts rows and keeps none: what is left to measure is the writer.
func TestNullMode(t *testing.T) {
	bq := start(t, localbq.Config{
		Modes: map[string]localbq.Mode{"shop.orders": localbq.ModeNull},
		Audit: localbq.AuditOptions{CountsOnly: true},
	})
	file, _ := input(t, 1000)
	if _, err := Load(t.Context(), file, connection(bq), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	if rows, err := bq.NumRows("shop.orders"); err != nil || rows != 1000 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if _, err := bq.Batches("shop.orders"); err == nil {
		t.Error("a table that keeps nothing can be read")
	}
}

// With the profile of the service a fresh table denies appends for a while, which passes only when the clock moves.
func TestFreshTableDeniesAppends(t *testing.T) {
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Profile: localbq.ServiceProfile(), Clock: clock})
	file, ids := input(t, 10)
	done := make(chan error, 1)
	go func() { // ends with the run
		_, err := Load(t.Context(), file, connection(bq), engine.Options{})
		done <- err
	}()
	denied := func() bool {
		for r, err := range bq.Audit().Records() {
			if err == nil && r.RPC == "AppendRows" && r.Code == "PERMISSION_DENIED" {
				return true
			}
		}
		return false
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !denied() {
		<-poll.C
	}
	clock.Advance(10 * time.Second)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	found, err := bq.Audit().ExactlyOnce("shop.orders", "id", ids)
	if err != nil || !found.OK() {
		t.Errorf("%+v, %v", found, err)
	}
}
