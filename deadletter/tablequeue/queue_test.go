package tablequeue_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/tablequeue"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

var dst = table.Destination{Project: "p", Dataset: "ops", Table: "dead"}

func start(t *testing.T) (*localbq.Instance, bigquery.Connection) {
	t.Helper()
	bq, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bq.Close() })
	return bq, bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
}

func letters(t *testing.T, c bigquery.Connection) (all []deadletter.Letter) {
	t.Helper()
	for l, err := range tablequeue.Letters(t.Context(), c, dst, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b deadletter.Letter) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

func handler(t *testing.T, c bigquery.Connection, lane int) stream.FailureHandler {
	t.Helper()
	q, err := tablequeue.New(dst, tablequeue.Options{Connection: c, CreateDatasets: true})
	if err != nil {
		t.Fatal(err)
	}
	h, err := q.NewHandler(t.Context(), stream.HandlerContext{Job: "j", Lane: lane})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestLettersInATable(t *testing.T) {
	_, c := start(t)
	hostile := "a\nb\x00\x1b[2J\u202e`'\"; DROP TABLE x"
	want := []stream.FailedRecord{
		{Connector: "bigquery", Destination: "p.d.t", Reason: "wrong", Original: []byte("a,\x00\xff"), Split: "f[0:9]", At: stream.Location{Name: "f", Line: 7, Row: 1, Context: "x,y"}},
		{Connector: "bigquery", Destination: stream.Unresolved, Reason: hostile, Original: []byte{}, Split: hostile, At: stream.Location{Name: hostile, Row: 2}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "bad \xff", Row: []byte{1, 2}, At: stream.Location{Row: 3}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "long", Original: []byte("beg"), Err: stream.ErrCut, At: stream.Location{Row: 4}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: strings.Repeat("long reason ", 10_000), At: stream.Location{Row: 5}},
		{Connector: "bigquery", Destination: "p.d.t", Reason: "large", Original: bytes.Repeat([]byte{0xfe}, 9<<20-2000), At: stream.Location{Row: 6}},
	}
	h := handler(t, c, 2)
	for i := range want {
		if err := h.Handle(t.Context(), &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
		t.Fatal(err)
	}
	got := letters(t, c)
	if len(got) != len(want) {
		t.Fatalf("%d letters, want %d", len(got), len(want))
	}
	for i, l := range got {
		f := &want[i]
		ref := deadletter.Of(f, stream.HandlerContext{Job: "j", Lane: 2}, l.Time)
		kind, payload := l.Payload()
		wantKind, wantPayload := ref.Payload()
		if kind != wantKind || !bytes.Equal(payload, wantPayload) || l.Cut != ref.Cut {
			t.Errorf("letter %d: %s of %d bytes, want %s of %d", i, kind, len(payload), wantKind, len(wantPayload))
		}
		if l.Reason != strings.ToValidUTF8(f.Reason, "\ufffd") || l.File != f.At.Name || l.Split != f.Split || l.Context != f.At.Context || l.Line != f.At.Line ||
			l.Job != "j" || l.Lane != 2 || l.Destination != f.Destination || l.Connector != "bigquery" || l.Time.IsZero() {
			t.Errorf("letter %d: %.300v", i, l)
		}
		if l.Identity() != ref.Identity() {
			t.Errorf("letter %d is not the one that was offered", i)
		}
	}
	// What no row can hold ends the job, and is not tried again.
	h = handler(t, c, 0)
	defer h.Close()
	err := h.Handle(t.Context(), &stream.FailedRecord{Connector: "c", Original: make([]byte, 9<<20), At: stream.Location{Name: "f", Line: 7}})
	var lasting interface{ Permanent() bool }
	if !errors.As(err, &lasting) || !lasting.Permanent() || !strings.Contains(err.Error(), "dead letter of f:7: ") {
		t.Errorf("a record that is too large: %v", err)
	}
}

// The table is made once, by whichever lane comes first, and letters are there after a flush and not before a lane closed without.
func TestManyLanes(t *testing.T) {
	bq, c := start(t)
	done := make(chan error)
	for lane := range 4 {
		h := handler(t, c, lane)
		go func() { // joined below
			var err error
			for i := range 200 {
				err = errors.Join(err, h.Handle(t.Context(), &stream.FailedRecord{Connector: "c", Reason: fmt.Sprint(lane, i), Original: make([]byte, 1000)}))
			}
			done <- errors.Join(err, h.Flush(t.Context()), h.Flush(t.Context()), h.Close())
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	seen := map[string]bool{}
	for _, l := range letters(t, c) {
		seen[l.Reason] = true
	}
	if len(seen) != 800 {
		t.Errorf("%d letters, want 800", len(seen))
	}
	if lost, err := bq.Audit().AckedNotVisible(dst.String()); err != nil || len(lost) > 0 {
		t.Errorf("acknowledged and lost: %v, %v", lost, err)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := tablequeue.New(table.Destination{Project: "p", Dataset: "d/x", Table: "t\n"}, tablequeue.Options{}); err == nil {
		t.Error("a hostile name was taken")
	}
	if _, err := tablequeue.New(dst, tablequeue.Options{Connection: bigquery.Connection{KeyFile: " "}}); err == nil {
		t.Error("a blank key file was taken")
	}
	_, c := start(t)
	pairs := 0
	for _, err := range tablequeue.Letters(t.Context(), c, dst, 0) {
		if pairs++; err == nil || !strings.Contains(err.Error(), "dead letters of p.ops.dead") {
			t.Errorf("a table that is not there: %v", err)
		}
	}
	if pairs != 1 {
		t.Errorf("%d pairs, want the error alone", pairs)
	}
}

// A letter that the service does not take fails the flush, and with it the checkpoint: its record is offered again.
func TestLettersThatAreRefused(t *testing.T) {
	bq, c := start(t)
	h := handler(t, c, 0)
	defer h.Close()
	f := stream.FailedRecord{Connector: "c", Reason: "r", At: stream.Location{Row: 1}}
	if err := errors.Join(h.Handle(t.Context(), &f), h.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	err := bq.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Service: "write", Method: "AppendRows"}, Count: localbq.FaultAlways,
		Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INVALID_ARGUMENT"}}})
	if err != nil {
		t.Fatal(err)
	}
	f.At.Row = 2
	if err := errors.Join(h.Handle(t.Context(), &f), h.Flush(t.Context())); err == nil || !strings.Contains(err.Error(), "p.ops.dead") {
		t.Errorf("got %v", err)
	}
	if got := letters(t, c); len(got) != 1 {
		t.Errorf("%d letters, want the one that was taken", len(got))
	}
}
