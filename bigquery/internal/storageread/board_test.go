package storageread

import (
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// The board shows what is planned, what waits, and how the streams that are open are going.
func TestBoard(t *testing.T) {
	t.Parallel()
	f := newFakeStream(6, 2, call{rows: 4, err: unavailable}, call{rows: 2, hangs: true})
	f.sent = func(r *storagepb.ReadRowsResponse) {
		r.ThrottleState = &storagepb.ThrottleState{ThrottlePercent: 25}
		r.Stats = &storagepb.StreamStats{Progress: &storagepb.StreamStats_Progress{AtResponseEnd: 0.5}}
	}
	b := &Board{}
	r, m := readerOf(t, f, 1, func(c *Config) {
		c.Board, c.MaxRecordsPerFetch = b, 1
		c.Pacer.Rand = func() float64 { return 0.99 }
	})
	for rows := 0; rows < 5; {
		if err := r.Fetch(t.Context(), func(*row.Row, int64, int) error { rows++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	got := b.Report()
	if len(got.Reading) != 1 {
		t.Fatalf("reading %+v", got.Reading)
	}
	s := got.Reading[0]
	if s.Stream != "S" || s.Received != 6 || s.Progress != 0.5 || s.Throttled != 25 || s.Retries != 1 || s.LastErrorCode() != "UNAVAILABLE" ||
		time.Since(s.Since) > time.Minute || s.LastErrorAt.IsZero() {
		t.Errorf("stream %+v", s)
	}
	m.is(t, map[stream.Instrument]int64{ThrottledResponses: 3})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if left := b.Report().Reading; len(left) != 0 {
		t.Errorf("left %+v", left)
	}
	var none *Board
	if got := none.Report(); fmt.Sprint(got) != fmt.Sprint(Report{}) {
		t.Errorf("no board shows %+v", got)
	}
}

func TestBoardOfAPlan(t *testing.T) {
	t.Parallel()
	service := &fakeService{streams: 3}
	conf := testConfig(service.dial)
	conf.Board = &Board{}
	log, _ := newLog()
	woken := make(chan struct{}, 1)
	e, err := conf.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1, Wake: func() { woken <- struct{}{} }, Meter: stream.NoMeter, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	<-woken
	if _, err := e.Next(0); err != nil {
		t.Fatal(err)
	}
	if r := conf.Board.Report(); r.Session == "" || r.Streams != 3 || r.Waiting != 2 || r.Expires.IsZero() {
		t.Errorf("%+v", r)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e, err = conf.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1, State: sampleState().encode(), Wake: func() {}, Meter: stream.NoMeter, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if r := conf.Board.Report(); r.Session != sampleState().session || r.Streams != 0 || r.Waiting != len(sampleState().pending) {
		t.Errorf("restored: %+v", r)
	}
	for {
		if _, err := e.Next(0); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if r := conf.Board.Report(); r.Waiting != 0 {
		t.Errorf("handed out: %+v", r)
	}
	p := conf.Board.opened("x", 0)
	if !math.IsNaN(conf.Board.Report().Reading[0].Progress) {
		t.Error("progress before the first response")
	}
	conf.Board.opened("x", 5)
	p.closed() // of the attempt before
	if r := conf.Board.Report(); len(r.Reading) != 1 || r.Reading[0].Received != 5 {
		t.Errorf("%+v", r)
	}
}
