package e2e

import (
	"flag"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

var (
	points   = flag.Int("points", 1, "at how many steps of its calls each job of the crash suite is killed; 0 is all of them")
	instants = flag.Int("instants", 1, "at how many random instants each job of the crash suite is killed")
	seed     = flag.Uint64("seed", 0, "seed of both; 0 picks one")
)

const (
	exactlyOnce = "exactly-once"
	atLeastOnce = "default"
)

// TestKilled kills a job over five tables, which it creates and of which each gets a column on the way, in three lanes and
// through twenty checkpoints, until a process gets done. With exactly-once every row is visible once, in its own table; with
// the default stream none is lost.
func TestKilled(t *testing.T) {
	drawSeed(t)
	for _, method := range []string{exactlyOnce, atLeastOnce} {
		t.Run(method, func(t *testing.T) {
			t.Run("job", func(t *testing.T) { newSuite(t, method, "3").job(1) })
			t.Run("job and service", func(t *testing.T) { newSuite(t, method, "3").both(1) })
			t.Run("service", func(t *testing.T) { newSuite(t, method, "3").service() })
			t.Run("job, 2 to 4 to 1 lanes", func(t *testing.T) { newSuite(t, method, "2,4,1").job(2) })
			t.Run("job and service, 2 to 4 to 1 lanes", func(t *testing.T) { newSuite(t, method, "2,4,1").both(2) })
		})
	}
}

// TestKilledTwins starts a second process while the first works, at a service that breaks connections now and then, before an append
// is done and behind it. Nobody is killed, but whoever is second to store a checkpoint ends: with exactly-once no row is there
// twice, or lost, even then.
func TestKilledTwins(t *testing.T) {
	drawSeed(t)
	methods := []string{exactlyOnce, atLeastOnce}
	if *instants == 1 {
		methods = methods[:1] // breaking connections takes its time
	}
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			s := newSuite(t, method, "3")
			k := s.test(1)
			k.Prepare = breakConnections
			k.RunTwins(t, *instants)
			s.sum(t)
		})
	}
}

func breakConnections(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	for _, phase := range []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied} {
		err := bq.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows", Probability: 0.05}, Phase: phase,
			Action: localbq.FaultAction{Reset: true}, Count: localbq.FaultAlways})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// drawSeed says how to run the same again.
func drawSeed(t *testing.T) {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("run again with -seed %d", *seed)
}

// suite is a job and what its rows came to, over all its kills.
type suite struct {
	*testing.T
	method, lanes string

	rows, twice atomic.Int64
}

func newSuite(t *testing.T, method, lanes string) *suite {
	return &suite{T: t, method: method, lanes: lanes}
}

// killable is what killtest has.
type killable interface {
	Run(t *testing.T)
	RunAtInstants(t *testing.T, n int)
}

func (s *suite) job(deaths int)  { s.run(s.test(deaths)) }
func (s *suite) both(deaths int) { s.run(s.serverTest(deaths, true)) }
func (s *suite) service()        { s.run(s.serverTest(1, false)) }

func (s *suite) run(k killable) {
	calls, instantly := drawKinds()
	if calls {
		s.Run("calls", k.Run)
	}
	if instantly {
		s.Run("instants", func(t *testing.T) { k.RunAtInstants(t, *instants) })
	}
	s.sum(s.T)
}

var kinds atomic.Uint64

// drawKinds says which kinds of deaths come next: both, unless only one death of each is asked for; then the two take turns, and the
// seed says which begins.
func drawKinds() (calls, instantly bool) {
	if *points != 1 || *instants != 1 {
		return true, true
	}
	turn := (*seed+kinds.Add(1))%2 == 0
	return turn, !turn
}

func (s *suite) sum(t *testing.T) {
	t.Logf("%s, lanes %s: %d rows looked for, all are there; %d of them more than once", s.method, s.lanes, s.rows.Load(), s.twice.Load())
}

func (s *suite) test(deaths int) killtest.Test {
	return killtest.Test{
		Config: config(),
		Client: func(_ testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return s.command(dir, bq.REST(), bq.GRPC(), 0)
		},
		Check:  s.check,
		Sample: *points, SampleSeed: *seed, Deaths: deaths,
	}
}

func (s *suite) serverTest(deaths int, both bool) killtest.ServerTest {
	return killtest.ServerTest{
		Server: func(_ testing.TB, dir, rest, grpc string) *exec.Cmd {
			return as("service", dirKey+"="+dir, restKey+"="+rest, grpcKey+"="+grpc)
		},
		Client: func(_ testing.TB, dir, rest, grpc string) *exec.Cmd {
			restarts := 50
			if both {
				restarts = 0
			}
			return s.command(dir, rest, grpc, restarts)
		},
		Check: s.check, Both: both,
		Sample: *points, SampleSeed: *seed, Deaths: deaths,
	}
}

func (s *suite) command(dir, rest, grpc string, restarts int) *exec.Cmd {
	return as("job", dirKey+"="+dir, restKey+"="+rest, grpcKey+"="+grpc, methodKey+"="+s.method, lanesKey+"="+s.lanes,
		restartKey+"="+strconv.Itoa(restarts))
}

// check compares the tables with the input, and the audit log with the tables.
func (s *suite) check(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	want := map[string][]int64{}
	for _, i := range input.Items() {
		name := "p.d." + tableOf(i.Row)
		want[name] = append(want[name], i.Row)
	}
	for name, rows := range want {
		got := s.visible(t, bq, name)
		for _, row := range rows {
			switch n := got[row]; {
			case n == 0:
				t.Errorf("%s: row %d is lost", name, row)
			case n > 1 && s.method == exactlyOnce:
				t.Errorf("%s: row %d is there %d times", name, row, n)
			case n > 1:
				s.twice.Add(1)
			}
			delete(got, row)
		}
		for row := range got {
			t.Errorf("%s: row %d does not belong there", name, row)
		}
		s.rows.Add(int64(len(rows)))
		s.checkAudit(t, bq, name, len(rows))
	}
}

// visible is how often each row is in a table. A row of the second round has its note, and the others have none.
func (s *suite) visible(t testing.TB, bq *localbq.Instance, name string) map[int64]int {
	t.Helper()
	batches, err := bq.Batches(name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]int{}
	for _, b := range batches {
		id := b.Column(0).(*array.Int64)
		for i := range id.Len() {
			row := id.Value(i)
			got[row]++
			want, has := noteOf(row)
			note := ""
			if b.NumCols() > 1 && b.Column(1).IsValid(i) {
				note = b.Column(1).(*array.String).Value(i)
			}
			if note != want || has != (note != "") {
				t.Errorf("%s: row %d has note %q, want %q", name, row, note, want)
			}
		}
	}
	return got
}

// checkAudit has the log account for each visible row: by an append and, with exactly-once, a flush of its stream.
func (s *suite) checkAudit(t testing.TB, bq *localbq.Instance, name string, rows int) {
	t.Helper()
	if unaccounted, err := bq.Audit().Unaccounted(name); err != nil || len(unaccounted) > 0 {
		t.Errorf("%s: the audit log does not know of rows %v, %v", name, unaccounted, err)
	}
	if s.method == atLeastOnce {
		if lost, err := bq.Audit().AckedNotVisible(name); err != nil || len(lost) > 0 {
			t.Errorf("%s: acknowledged and lost: %v, %v", name, lost, err)
		}
		return
	}
	visible, err := bq.Audit().Visible(name)
	if err != nil || len(visible) != rows {
		t.Errorf("%s: the audit log has %d visible rows, want %d; %v", name, len(visible), rows, err)
	}
	for _, r := range visible {
		if r.Seq == 0 || r.Shown == 0 {
			t.Errorf("%s: the audit log has a visible row without an append or a flush: %+v", name, r)
		}
	}
	if twice, err := bq.Audit().AppliedTwice(name); err != nil || len(twice) > 0 {
		t.Errorf("%s: the audit log has rows visible twice: %v, %v", name, twice, err)
	}
}
