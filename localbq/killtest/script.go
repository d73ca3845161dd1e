package killtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// stage is a service and a client of it, of which one or both get killed.
type stage interface {
	launch() *process
	arm(d death)
	await(c *process) held // a call that a rule holds; nil when the client has ended without one
	kill(c *process, at held)
	forgives() bool          // a client that failed after a kill may be started again
	over() *localbq.Instance // what the service holds once the client has ended
	check(bq *localbq.Instance)
}

// held is a call that is held.
type held interface {
	Release()
	Cut()
}

// script is what happens on stages: a play for each point, or as many as it takes for so many instants.
type script struct {
	methods []string
	answers map[string]int
	sample  int
	seed    uint64
	deaths  int // in each play
	set     func(t testing.TB) stage

	calls int           // of an undisturbed client
	pause time.Duration // between two of them, on average
	sum   tally
}

// tally counts what happened in all plays.
type tally struct{ plays, missed, kills, starts atomic.Int64 }

// play is how the lives of a client end, all but the last of them.
type play struct {
	name   string
	deaths []death
}

func (s *script) run(t *testing.T) {
	t.Helper()
	s.playAll(t, s.pointPlays(t), s.play)
}

func (s *script) pointPlays(t *testing.T) (plays []play) {
	t.Helper()
	for i, p := range sample(s.rehearse(t), s.sample, s.seed) {
		plays = append(plays, play{p.String(), append([]death{{Point: p}}, s.drawPoints(i, p.before)...)})
	}
	return plays
}

func (s *script) runAtInstants(t *testing.T, n int) {
	t.Helper()
	s.playAll(t, s.instantPlays(t, n), s.play)
}

func (s *script) instantPlays(t *testing.T, n int) (plays []play) {
	t.Helper()
	s.rehearse(t)
	for i := 0; n > 0; i++ {
		deaths := s.drawInstants(i, min(n, s.deaths))
		n -= len(deaths)
		plays = append(plays, play{fmt.Sprint(i), deaths})
	}
	return plays
}

// rehearse runs a client undisturbed and makes points of its calls.
func (s *script) rehearse(t *testing.T) []Point {
	t.Helper()
	w := s.set(t)
	began := time.Now()
	c := w.launch()
	<-c.running.Done()
	took := time.Since(began)
	c.mustSucceed(t)
	bq := w.over()
	w.check(bq)
	if t.Failed() {
		t.FailNow()
	}
	s.calls = len(pointsIn(t, bq, s.methods, nil)) / len(phases)
	s.pause = took / time.Duration(s.calls)
	return pointsIn(t, bq, s.methods, s.answers)
}

func (s *script) playAll(t *testing.T, plays []play, perform func(*testing.T, play)) {
	t.Helper()
	t.Run("at", func(t *testing.T) { // ends when its parallel subtests have
		for _, p := range plays {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				s.sum.plays.Add(1)
				perform(t, p)
			})
		}
	})
	n := &s.sum
	t.Logf("%d clients of %d calls, seed %d: %d started, %d kills; %d clients ended before it came to a kill",
		n.plays.Load(), s.calls, s.seed, n.starts.Load(), n.kills.Load(), n.missed.Load())
}

// play goes through the lives of one client and has its work judged.
func (s *script) play(t *testing.T, p play) {
	w := s.set(t)
	var c *process
	var story []string
	for _, d := range p.deaths {
		if c == nil {
			c = s.launch(w, d)
		} else {
			w.arm(d)
		}
		at, ok := s.reach(w, c, d)
		if !ok {
			s.sum.missed.Add(1)
			break
		}
		w.kill(c, at)
		s.sum.kills.Add(1)
		story = append(story, d.String())
		if c.killed() {
			c = nil
		}
	}
	if len(p.deaths) > 1 {
		t.Logf("killed at %s", strings.Join(story, ", then "))
	}
	if len(story) == 0 && p.deaths[0].Nth == 1 && !p.deaths[0].instant {
		t.Errorf("the client ended without a first call of %s", p.deaths[0].Method)
	}
	s.end(t, w, c, len(story) > 0)
}

// launch starts a client that will come to a death.
func (s *script) launch(w stage, d death) *process {
	w.arm(d)
	return s.start(w)
}

func (s *script) start(w stage) *process {
	s.sum.starts.Add(1)
	return w.launch()
}

// end lets the last client get done, nil when it has to be started first, and has its work judged.
func (s *script) end(t *testing.T, w stage, c *process, disturbed bool) {
	t.Helper()
	if c == nil {
		c = s.start(w)
	}
	<-c.running.Done()
	if c.err != nil && disturbed && w.forgives() {
		c = s.start(w)
		<-c.running.Done()
	}
	c.mustSucceed(t)
	w.check(w.over())
}

// reach waits until it comes to the death, and reports whether it did before the client had ended. Of an instant, no call is held.
func (s *script) reach(w stage, c *process, d death) (at held, ok bool) {
	if d.Nth > 0 {
		if at = w.await(c); at == nil {
			return nil, false
		}
	}
	if !d.instant {
		return at, true
	}
	if at != nil {
		at.Release()
	}
	return nil, c.livesFor(d.after)
}

// drawPoints draws all deaths of a client but the first, which it comes to behind so many calls.
func (s *script) drawPoints(n, before int) []death {
	random := s.random(n)
	deaths := make([]death, s.deaths-1)
	for i := range deaths {
		nth := s.drawCall(random, before)
		before += nth
		deaths[i].Point = Point{Nth: nth, Phase: string(phases[random.IntN(len(phases))])}
	}
	return deaths
}

// drawCall draws one of the calls of a client that goes on with the work of one that made so many, an early one more often.
func (s *script) drawCall(random *rand.Rand, before int) int {
	left := max(1, s.calls-before)
	return 1 + random.IntN(1+random.IntN(left))
}

// drawInstants draws the deaths of a client: the first throughout what it has to do, later ones as drawPoints does.
func (s *script) drawInstants(n, count int) []death {
	random := s.random(n)
	deaths := make([]death, count)
	before := 0
	for i := range deaths {
		nth := random.IntN(1 + s.calls)
		if i > 0 {
			nth = s.drawCall(random, before) - 1
		}
		before += nth
		deaths[i] = death{
			Point:   Point{Nth: nth, Phase: string(localbq.PhaseReceive)},
			instant: true, after: time.Duration(random.Int64N(int64(4*s.pause) + 1)),
		}
	}
	return deaths
}

func (s *script) random(n int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(n)+1)) }
