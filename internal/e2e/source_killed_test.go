package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

// TestKilledSource kills a job that reads a table of 8 streams, in three lanes and through many checkpoints, at every answer of
// every call and at random instants, until a process gets done; with another number of lanes each time; and while the service
// fails in every way that it can. Every row is in the output once, and all rows come from one read session.
func TestKilledSource(t *testing.T) {
	drawSeed(t)
	t.Run("lanes stay", func(t *testing.T) { newReading(t, "3", 0).run() })
	t.Run("2 to 4 to 1 lanes", func(t *testing.T) { newReading(t, "2,4,1", 0).run() })
	t.Run("storm", func(t *testing.T) {
		r := newReading(t, "3,2,4", 1000)
		t.Run("instants", func(t *testing.T) { r.test().RunAtInstants(t, *instants) })
		r.sum()
	})
}

// reading is a job that reads, and what came of its rows over all its kills.
type reading struct {
	*testing.T
	lanes    string
	restarts int // attempts that may fail without the process; above 0 the service fails now and then
	rows     int
	folders  sync.Map // of clients, by service

	found, sessions atomic.Int64
	mu              sync.Mutex     // guards ends
	ends            map[string]int // of ReadRows calls, by code and fate
}

// newReading has the full table of 2 million rows, unless only one death of each kind is asked for.
func newReading(t *testing.T, lanes string, restarts int) *reading {
	r := &reading{T: t, lanes: lanes, restarts: restarts, rows: 2_000_000, ends: map[string]int{}}
	if *points == 1 && *instants == 1 {
		r.rows = 400_000
	}
	return r
}

func (r *reading) run() {
	calls, instantly := drawKinds()
	if calls {
		r.Run("calls", r.test().Run)
	}
	if instantly {
		r.Run("instants", func(t *testing.T) { r.test().RunAtInstants(t, *instants) })
	}
	r.sum()
}

func (r *reading) sum() {
	r.Logf("lanes %s: %d rows looked for, each is there once; %d sessions were created, each output is of one; ReadRows ended so: %v",
		r.lanes, r.found.Load(), r.sessions.Load(), r.ends)
}

// blockRows is how many rows an answer has.
const blockRows = 16_384

func (r *reading) test() killtest.Test {
	c := config()
	c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 64<<10, blockRows
	deaths := 1
	if bytes.ContainsRune([]byte(r.lanes), ',') {
		deaths = 2
	}
	perStream := (r.rows/bigStreams + blockRows - 1) / blockRows
	return killtest.Test{
		Config: c, Prepare: r.prepare,
		Client: func(_ testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			r.folders.Store(bq, dir)
			return as("source", dirKey+"="+dir, restKey+"="+bq.REST(), grpcKey+"="+bq.GRPC(), lanesKey+"="+r.lanes, restartKey+"="+strconv.Itoa(r.restarts))
		},
		Check:   r.check,
		Methods: []string{"CreateReadSession", "ReadRows"}, Answers: map[string]int{"ReadRows": perStream * bigStreams},
		Sample: *points, SampleSeed: *seed, Deaths: deaths,
	}
}

func (r *reading) prepare(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	fillSource(t, bq, r.rows)
	if r.restarts == 0 {
		return
	}
	failing := func(method string, phase localbq.FaultPhase, probability float64, a localbq.FaultAction) {
		err := bq.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Service: "read", Method: method, Probability: probability}, Phase: phase, Action: a, Count: localbq.FaultAlways})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []localbq.FaultStatus{
		{Code: "UNAVAILABLE"}, {Code: "INTERNAL", Message: "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
		{Code: "RESOURCE_EXHAUSTED", RetryDelay: localbq.FaultDuration(time.Millisecond)},
		// These end an attempt.
		{Code: "RESOURCE_EXHAUSTED"}, {Code: "INTERNAL", Message: "boom"}, {Code: "ABORTED"}, {Code: "DEADLINE_EXCEEDED"}, {Code: "UNKNOWN"}, {Code: "CANCELLED"},
	} {
		for _, phase := range []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied} {
			failing("ReadRows", phase, 0.003, localbq.FaultAction{Status: &s})
		}
	}
	failing("ReadRows", localbq.PhaseReceive, 0.01, localbq.FaultAction{Reset: true})
	failing("ReadRows", localbq.PhaseApplied, 0.01, localbq.FaultAction{LoseAck: true})
	for range 20 { // connections are cut off at any byte
		failing("ReadRows", localbq.PhaseReceive, 0.02, localbq.FaultAction{ResetAfter: &localbq.FaultCut{Bytes: rand.Int64N(4 << 20)}})
	}
	failing("CreateReadSession", localbq.PhaseApplied, 0.3, localbq.FaultAction{LoseAck: true})
}

// check counts each row in the files that were committed.
func (r *reading) check(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	dir, _ := r.folders.LoadAndDelete(bq)
	names, err := filepath.Glob(filepath.Join(fmt.Sprint(dir), "*.rows"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no output: %v", err)
	}
	seen, session := make([]uint8, r.rows), ""
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		head, rows, _ := bytes.Cut(data, []byte("\n"))
		if session == "" {
			session = string(head)
		}
		if session != string(head) || len(rows)%8 != 0 {
			t.Errorf("rows of %q and %q, %d bytes", session, head, len(rows))
		}
		for ; len(rows) >= 8; rows = rows[8:] {
			if id := binary.LittleEndian.Uint64(rows); id < uint64(r.rows) {
				seen[id]++
			} else {
				t.Errorf("row %d does not belong there", id)
			}
		}
	}
	wrong := 0
	for id, n := range seen {
		if n != 1 && wrong < 10 {
			wrong++
			t.Errorf("row %d is there %d times", id, n)
		}
	}
	r.found.Add(int64(r.rows))
	for rec, err := range bq.Audit().Records() {
		switch {
		case err != nil:
			t.Fatal(err)
		case rec.RPC == "CreateReadSession":
			r.sessions.Add(1)
		case rec.RPC == "ReadRows":
			r.mu.Lock()
			r.ends[rec.Code+" "+string(rec.Fate)]++
			r.mu.Unlock()
		}
	}
}
