package killtest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// Point is a place to kill at: the nth call of a method, counted from 1, in one of its phases. "" is any method.
type Point struct {
	Method string
	Nth    int
	Phase  string

	before int // how many calls of any method an undisturbed client had made before
}

func (p Point) String() string {
	method := p.Method
	if method == "" {
		method = "call"
	}
	return fmt.Sprintf("%s:%d:%s", method, p.Nth, p.Phase)
}

var phases = []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied, localbq.PhaseAnswered}

// death is a point to be killed at, or an instant.
type death struct {
	Point
	instant bool
	after   time.Duration // with instant: so long after the point, or after the start where Nth is 0
}

func (d death) String() string {
	switch {
	case !d.instant:
		return d.Point.String()
	case d.Nth == 0:
		return d.after.String()
	}
	return fmt.Sprintf("%s+%v", d.Point, d.after)
}

// rules hold the call at the point, if there is one.
func (d death) rules() []localbq.Fault {
	if d.Nth == 0 {
		return nil
	}
	return []localbq.Fault{{
		Match:  localbq.FaultMatch{Method: d.Method, Nth: d.Nth},
		Phase:  localbq.FaultPhase(d.Phase),
		Action: localbq.FaultAction{Barrier: true},
	}}
}

// pointsIn makes points of the calls that the audit log knows, or of their answers, of methods that have several.
func pointsIn(t testing.TB, bq *localbq.Instance, methods []string, answers map[string]int) (out []Point) {
	t.Helper()
	calls := map[string]int{}
	for r, err := range bq.Audit().Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Conn == "" || methods != nil && !slices.Contains(methods, r.RPC) {
			continue
		}
		calls[r.RPC]++
		for _, phase := range phases {
			if several := answers[r.RPC] > 0; !several || phase == localbq.PhaseReceive {
				out = append(out, Point{r.RPC, calls[r.RPC], string(phase), len(out) / len(phases)})
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(answers)) {
		for n := range answers[m] {
			for _, phase := range []localbq.FaultPhase{localbq.PhaseApplied, localbq.PhaseAnswered} {
				out = append(out, Point{m, n + 1, string(phase), len(out) / len(phases)})
			}
		}
	}
	for _, m := range methods {
		if calls[m] == 0 {
			t.Fatalf("the client made no call of %s", m)
		}
	}
	if len(out) == 0 {
		t.Fatal("the client made no calls")
	}
	return out
}

// sample draws n points, of each method in turn, since most calls are of one or two methods; 0 is all.
func sample(points []Point, n int, seed uint64) []Point {
	if n <= 0 || n >= len(points) {
		return points
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	turn, turns := map[Point]int{}, map[string]int{}
	for _, p := range points {
		turn[p] = turns[p.Method]
		turns[p.Method]++
	}
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(turn[a], turn[b]) })
	return points[:n]
}
