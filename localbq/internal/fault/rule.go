package fault

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Phase is a step of a call.
type Phase string

const (
	Receive  Phase = "receive"  // the request has arrived, nothing is done
	Applied  Phase = "applied"  // the work is done, the answer not sent
	Answered Phase = "answered" // the answer is on its way
)

// Always is the Count of a rule that never disarms.
const Always = -1

// Rule says what goes wrong, where, and how often. The same JSON arms it over the admin API.
type Rule struct {
	// Name tells rules apart in counts, in the audit log and in Match.After; "" is given one.
	Name  string `json:"name,omitempty"`
	Match Match  `json:"match,omitzero"`
	// Phase is Receive if empty, Applied if empty and the action loses the acknowledgement.
	Phase  Phase  `json:"phase,omitempty"`
	Action Action `json:"action"`
	// Count is how often the rule fires before it disarms; 0 is once, Always never disarms it.
	Count int `json:"count,omitempty"`
	// For keeps the rule firing for a time of the service's clock from the first time on, as a storm does; Count must then be 0.
	For Duration `json:"for,omitempty"`
}

// Match picks calls. Empty fields match everything; all others must agree.
type Match struct {
	// Service is "write", "read", "rest" or "gcs"; "job" is the states that jobs get into.
	Service string `json:"service,omitempty"`
	// Method is as in AppendRows, CreateReadSession, tables.insert, objects.insert, gcs.upload.chunk; of jobs job.pending,
	// job.running and job.done.
	Method string `json:"method,omitempty"`
	// Table is "project.dataset.table", "dataset.table" or "projects/p/datasets/d/tables/t".
	Table string `json:"table,omitempty"`
	// StreamKind is default, committed, pending or buffered: the kind of the write stream that a call is about. It is pending
	// for BatchCommitWriteStreams.
	StreamKind string `json:"streamKind,omitempty"`
	// Stream is a stream's full name.
	Stream string `json:"stream,omitempty"`
	// Object is "gs://bucket/object".
	Object string `json:"object,omitempty"`
	// Job is a job's id, and JobType load, copy, extract or query: of the states of jobs, and Job of calls that name one.
	Job       string `json:"job,omitempty"`
	JobType   string `json:"jobType,omitempty"`
	Principal string `json:"principal,omitempty"`
	TraceID   string `json:"traceId,omitempty"`
	// MinRows and MaxRows bound the rows of an append; 0 is no bound.
	MinRows int64 `json:"minRows,omitempty"`
	MaxRows int64 `json:"maxRows,omitempty"`
	// After names a rule that must have fired before.
	After string `json:"after,omitempty"`

	// Of the calls that agree with all of the above: Nth picks the nth from when the rule was armed, counted from 1, and those
	// after it up to the rule's Count; Every picks every nth; Probability picks each with that chance.
	Nth         int     `json:"nth,omitempty"`
	Every       int     `json:"every,omitempty"`
	Probability float64 `json:"probability,omitempty"`
}

// Action is what happens. Delays and holds come first, then the connection is reset or the answer replaced.
type Action struct {
	// Status answers with a gRPC status in place of the ordinary answer; HTTP does so for REST and Cloud Storage calls.
	Status *Status `json:"status,omitempty"`
	HTTP   *HTTP   `json:"http,omitempty"`
	// Delay holds the call for a time of the service's clock.
	Delay Duration `json:"delay,omitempty"`
	// Hang holds the call until the rule is released or removed, or the caller gives up.
	Hang bool `json:"hang,omitempty"`
	// Barrier holds the call, even when the caller is gone, until the harness that is told of it releases it.
	Barrier bool `json:"barrier,omitempty"`
	// Reset cuts the connection off with everything on it, without an answer.
	Reset bool `json:"reset,omitempty"`
	// LoseAck is Reset once the work is done: the client does not hear of a success.
	LoseAck bool `json:"loseAck,omitempty"`
	// ResetAfter cuts the connection off once some more bytes have passed.
	ResetAfter *Cut `json:"resetAfter,omitempty"`
	// DelayAck keeps the answer to an append back until that many further ones are due; all leave in order then. At the end of
	// the client's requests what is kept back leaves.
	DelayAck int `json:"delayAck,omitempty"`
	// State changes what the service keeps, in order, before anything else but delays and holds. A change that cannot be made
	// fails MustAllFire.
	State []State `json:"state,omitempty"`
}

// Cut is where a connection is cut off.
type Cut struct {
	// Bytes is how many more pass, counted on the wire from when the rule fires, for all calls on the connection.
	Bytes int64 `json:"bytes"`
	// From is who sends them: "server", which "" means, or "client".
	From string `json:"from,omitempty"`
}

// Status is a gRPC answer.
type Status struct {
	// Code is as in "UNAVAILABLE".
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// StorageError is the code of the StorageError in the details, as in "STREAM_NOT_FOUND"; "" attaches none.
	StorageError string `json:"storageError,omitempty"`
	// RowErrors are listed in the answer to an append.
	RowErrors []RowError `json:"rowErrors,omitempty"`
	// RetryDelay attaches a RetryInfo; 0 attaches none.
	RetryDelay Duration `json:"retryDelay,omitempty"`
	// Ends makes the status the end of an AppendRows call, where it is otherwise one of its responses.
	Ends bool `json:"ends,omitempty"`
}

// RowError is one bad row of an answer.
type RowError struct {
	Index   int64  `json:"index"`
	Message string `json:"message"`
}

// HTTP is a REST or a Cloud Storage answer.
type HTTP struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Duration is a time.Duration that JSON spells as Go does: "1.5s".
type Duration time.Duration

// MarshalText writes "1.5s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads "1.5s".
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// ParseRules reads a JSON array of rules or a single one, and refuses keys that no rule has.
func ParseRules(b []byte) ([]Rule, error) {
	var rules []Rule
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	target := any(&rules)
	if !strings.HasPrefix(strings.TrimSpace(string(b)), "[") {
		rules = make([]Rule, 1)
		target = &rules[0]
	}
	if err := d.Decode(target); err != nil {
		return nil, fmt.Errorf("fault rules: %w", err)
	}
	return rules, nil
}

// check refuses a rule that could not do what it says.
func (r *Rule) check() error {
	a, m := r.Action, r.Match
	switch {
	case r.Phase != Receive && r.Phase != Applied && r.Phase != Answered:
		return fmt.Errorf("fault rule %q: unknown phase %q: expected receive, applied or answered", r.Name, r.Phase)
	case a.nothing():
		return fmt.Errorf("fault rule %q has no action", r.Name)
	case a.LoseAck && r.Phase != Applied:
		return fmt.Errorf("fault rule %q: loseAck happens in phase applied, not %s", r.Name, r.Phase)
	case r.Phase == Answered && (a.Status != nil || a.HTTP != nil):
		return fmt.Errorf("fault rule %q: the answer cannot be replaced in phase answered", r.Name)
	case a.Status != nil && !a.Status.known():
		return fmt.Errorf("fault rule %q: unknown gRPC code %q or StorageError %q", r.Name, a.Status.Code, a.Status.StorageError)
	case a.ResetAfter != nil && (a.ResetAfter.Bytes < 0 || a.ResetAfter.From != "" && a.ResetAfter.From != "server" && a.ResetAfter.From != "client"):
		return fmt.Errorf("fault rule %q: resetAfter takes bytes of at least 0, from server or client", r.Name)
	case a.DelayAck != 0 && (a.DelayAck < 0 || r.Phase != Applied || m.Method != "AppendRows"):
		return fmt.Errorf("fault rule %q: delayAck is for phase applied of method AppendRows, and counts from 1", r.Name)
	case r.For < 0:
		return fmt.Errorf("fault rule %q: for must not be negative", r.Name)
	case a.HTTP != nil && (a.HTTP.Code < 400 || a.HTTP.Code > 599):
		return fmt.Errorf("fault rule %q: HTTP code %d is no error", r.Name, a.HTTP.Code)
	case m.Nth < 0 || m.Every < 0 || m.Probability < 0 || m.Probability > 1 || r.Count < Always:
		return fmt.Errorf("fault rule %q: nth and every must not be negative, probability must be in 0 to 1, count at least -1", r.Name)
	case exclusive(m.Nth > 0, m.Every > 0, m.Probability > 0) > 1:
		return fmt.Errorf("fault rule %q: only one of nth, every and probability can be set", r.Name)
	}
	if err := r.checkJob(); err != nil {
		return err
	}
	for _, s := range a.State {
		if err := s.check(); err != nil {
			return fmt.Errorf("fault rule %q: %w", r.Name, err)
		}
	}
	return nil
}

// checkJob refuses what a job, which has no connection and answers nobody, cannot do.
func (r *Rule) checkJob() error {
	a := r.Action
	switch {
	case !r.Match.ofJobs():
		return nil
	case r.Phase != Receive:
		return fmt.Errorf("fault rule %q: states of jobs have the phase receive only, not %s", r.Name, r.Phase)
	case a.Status != nil || a.Reset || a.LoseAck || a.ResetAfter != nil || a.DelayAck != 0:
		return fmt.Errorf("fault rule %q: a job can be failed (http), delayed, held and changed around (state), nothing else", r.Name)
	case a.HTTP != nil && r.Match.Method != JobPending && r.Match.Method != JobRunning:
		return fmt.Errorf("fault rule %q: a job can be failed in %s and %s: name one as the method", r.Name, JobPending, JobRunning)
	}
	return nil
}

func (a *Action) nothing() bool {
	return a.Status == nil && a.HTTP == nil && a.Delay == 0 && !a.Hang && !a.Barrier && !a.Reset && !a.LoseAck &&
		a.ResetAfter == nil && a.DelayAck == 0 && len(a.State) == 0
}

func exclusive(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
