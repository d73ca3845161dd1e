package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Call is what a rule can match of a call.
type Call struct {
	Service, Method string
	Table           string // "projects/p/datasets/d/tables/t"; "" where the call has none
	Stream          string
	Object          string // "gs://bucket/object"; "" where the call has none
	Job, JobType    string // a job's id, and its type where it is a state of a job
	StreamKind      string
	Principal       string
	TraceID         string
	Rows            int64
	Remote          string // the client's end of the connection
}

// Verdict is what becomes of a call in a phase. The zero value lets it pass.
type Verdict struct {
	Fired  []string // names of the rules that fired
	Status *Status
	HTTP   *HTTP
	Reset  bool // the connection has been cut
	// DelayAck is how many further answers the one to an append waits for.
	DelayAck int
}

// Rules are the rules in force. Safe for concurrent use.
type Rules struct {
	clock  clock.Clock
	conns  *Connections
	change func(State, Call) error // carries out state actions

	armed atomic.Int32 // rules that may still fire: none make At cheap

	mu       sync.Mutex // guards the fields below
	random   *rand.Rand
	rules    []*armed
	names    int
	barriers map[int64]*Barrier
	nextID   int64
	waiting  []*Barrier    // not yet handed to a harness
	arrived  chan struct{} // closed and replaced when a barrier is added
	closed   bool
}

// armed is a rule and what has happened to it.
type armed struct {
	Rule
	matched, fired int
	released       chan struct{} // closed when its hanging calls may go on
	until          time.Time     // when a rule with For disarms, once it has fired
	failures       []string      // state actions that could not be carried out
}

func (a *armed) spent(now time.Time) bool {
	if a.For > 0 {
		return a.fired > 0 && !now.Before(a.until)
	}
	return a.Count != Always && a.fired >= a.Count
}

// NewRules is no rules, whose choices come from seed and whose resets are made through conns.
func NewRules(c clock.Clock, seed uint64, conns *Connections) *Rules {
	return &Rules{
		clock: c, conns: conns, random: rand.New(rand.NewPCG(seed, 0x6661756c74)),
		barriers: map[int64]*Barrier{}, arrived: make(chan struct{}),
	}
}

// Add arms rules: all of them, or none if one is wrong.
func (r *Rules) Add(rules ...Rule) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("fault rules: the service is closed")
	}
	var added []*armed
	for _, rule := range rules {
		r.names++
		rule.Name = cmp.Or(rule.Name, fmt.Sprintf("rule-%d", r.names))
		if rule.Phase == "" {
			rule.Phase = Receive
			if rule.Action.LoseAck {
				rule.Phase = Applied
			}
		}
		if rule.For != 0 && rule.Count != 0 {
			return fmt.Errorf("fault rule %q: only one of for and count can be set", rule.Name)
		}
		if rule.For == 0 {
			rule.Count = cmp.Or(rule.Count, 1)
		}
		if err := rule.check(); err != nil {
			return err
		}
		same := func(a *armed) bool { return a.Name == rule.Name }
		if slices.ContainsFunc(r.rules, same) || slices.ContainsFunc(added, same) {
			return fmt.Errorf("fault rule %q is armed already", rule.Name)
		}
		added = append(added, &armed{Rule: rule, released: make(chan struct{})})
	}
	r.rules = append(r.rules, added...)
	r.armed.Add(int32(len(added)))
	return nil
}

// Report is a rule and how often it has fired.
type Report struct {
	Rule
	Fired int `json:"fired"`
	// Failed lists the state actions that could not be carried out, and why.
	Failed []string `json:"failed,omitempty"`
}

// List reports all rules, in the order they were armed.
func (r *Rules) List() []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Report, len(r.rules))
	for i, a := range r.rules {
		out[i] = Report{a.Rule, a.fired, slices.Clone(a.failures)}
	}
	return out
}

// Clear removes all rules and lets everything they hold go on.
func (r *Rules) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.rules {
		a.release()
	}
	r.rules = nil
	r.armed.Store(0)
	for _, b := range r.barriers {
		b.release()
	}
}

func (a *armed) release() {
	select {
	case <-a.released:
	default:
		close(a.released)
	}
}

// Release lets the calls that a hanging rule holds go on, and those it would hold later.
func (r *Rules) Release(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.rules {
		if a.Name == name {
			a.release()
			return nil
		}
	}
	return fmt.Errorf("no fault rule is named %q", name)
}

// Close is Clear, for good.
func (r *Rules) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Clear()
}

// MustAllFire fails a test for every rule that has not fired once, and for every state action that failed.
func (r *Rules) MustAllFire(t interface {
	Helper()
	Errorf(format string, args ...any)
}) {
	t.Helper()
	for _, report := range r.List() {
		if report.Fired == 0 {
			t.Errorf("fault rule %q never fired", report.Name)
		}
		for _, failure := range report.Failed {
			t.Errorf("fault rule %q: %s", report.Name, failure)
		}
	}
}

// At asks what becomes of a call in a phase, and holds it as long as the rules say. Once ctx is done only barriers hold.
func (r *Rules) At(ctx context.Context, phase Phase, c Call) Verdict {
	if r.armed.Load() == 0 {
		return Verdict{}
	}
	var v Verdict
	for _, a := range r.fire(phase, c) {
		v.Fired = append(v.Fired, a.Name)
		cut := r.hold(ctx, a, phase, c)
		r.changeState(a, c)
		if after := a.Action.ResetAfter; after != nil {
			r.conns.ResetAfter(c.Remote, *after)
		}
		v.DelayAck = max(v.DelayAck, a.Action.DelayAck)
		v.Status, v.HTTP = cmp.Or(a.Action.Status, v.Status), cmp.Or(a.Action.HTTP, v.HTTP)
		v.Reset = v.Reset || cut || a.Action.Reset || a.Action.LoseAck
	}
	if v.Reset {
		r.conns.Reset(c.Remote)
	}
	return v
}

// fire counts a call with the rules it agrees with and returns those that fire.
func (r *Rules) fire(phase Phase, c Call) []*armed {
	r.mu.Lock()
	defer r.mu.Unlock()
	var firing []*armed
	now := r.clock.Now()
	for _, a := range r.rules {
		if a.Phase != phase || a.spent(now) || !a.Match.agrees(c) || !r.hasFired(a.Match.After) {
			continue
		}
		a.matched++
		if !r.picks(a) {
			continue
		}
		if a.fired++; a.fired == 1 {
			a.until = now.Add(time.Duration(a.For))
		}
		if a.For == 0 && a.spent(now) {
			r.armed.Add(-1)
		}
		firing = append(firing, a)
	}
	return firing
}

func (r *Rules) hasFired(name string) bool {
	return name == "" || slices.ContainsFunc(r.rules, func(a *armed) bool { return a.Name == name && a.fired > 0 })
}

func (r *Rules) picks(a *armed) bool {
	switch m := a.Match; {
	case m.Nth > 0:
		return a.matched >= m.Nth
	case m.Every > 0:
		return a.matched%m.Every == 0
	case m.Probability > 0:
		return r.random.Float64() < m.Probability
	}
	return true
}

// hold waits as a rule's action says, and reports whether the call is to be cut.
func (r *Rules) hold(ctx context.Context, a *armed, phase Phase, c Call) bool {
	if a.Action.Delay > 0 {
		_ = clock.Sleep(ctx, r.clock, time.Duration(a.Action.Delay))
	}
	if a.Action.Hang {
		select {
		case <-a.released:
		case <-ctx.Done():
		}
	}
	return a.Action.Barrier && r.barrier(a, phase, c)
}
