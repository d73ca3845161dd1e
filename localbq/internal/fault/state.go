package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// What a State does.
const (
	DeleteTable   = "deleteTable"
	RecreateTable = "recreateTable" // deletes it and makes another of the same definition
	TruncateTable = "truncateTable" // takes all rows away
	TouchTable    = "touchTable"    // gives it a new etag and changes nothing
	AddColumn     = "addColumn"
	DropColumn    = "dropColumn"
	RelaxColumn   = "relaxColumn"  // REQUIRED to NULLABLE
	RetypeColumn  = "retypeColumn" // drops it and adds one of its name and another type, NULLABLE unless it was REPEATED
	ExpireSession = "expireSession"
	ExpireStream  = "expireStream" // ends the life of the created write stream that the call is about

	OpenWindow    = "openWindow"    // keeps a window of propagation of a table open for a time, or stretches it
	ExhaustQuota  = "exhaustQuota"  // has a quota used up for a time
	DeleteObject  = "deleteObject"  // of Cloud Storage
	CorruptObject = "corruptObject" // makes a new generation of it, of the same size, whose middle half is garbage
	HideObject    = "hideObject"    // as if it were not there, for a time
	DropResult    = "dropResult"    // deletes the anonymous table of a query's result
	RestartServer = "restartServer" // ends all AppendRows calls as BigQuery does when it restarts a server
)

// State is a change of what the service keeps, made as if by somebody else.
type State struct {
	// Do is one of the constants.
	Do string `json:"do"`
	// Table is the table changed, spelt as in Match.Table; "" is the one the call is about.
	Table string `json:"table,omitempty"`
	// Column is a top-level column; Type, such as "STRING", is for AddColumn and RetypeColumn, Mode for AddColumn, where "" is
	// NULLABLE.
	Column string `json:"column,omitempty"`
	Type   string `json:"type,omitempty"`
	Mode   string `json:"mode,omitempty"`
	// Session is a read session or one of its streams, by its full name; "" is the one that the call reads.
	Session string `json:"session,omitempty"`
	// Window and Quota are one of storm.Windows and storm.Quotas, and For is how long they stay, or an object is hidden.
	Window string   `json:"window,omitempty"`
	Quota  string   `json:"quota,omitempty"`
	For    Duration `json:"for,omitempty"`
	// Object is "gs://bucket/object"; "" is the one that the call is about.
	Object string `json:"object,omitempty"`
	// Job is a query's id; "" is the job that the call is about.
	Job string `json:"job,omitempty"`
}

var (
	ofTables  = []string{DeleteTable, RecreateTable, TruncateTable, TouchTable}
	ofColumns = []string{AddColumn, DropColumn, RelaxColumn, RetypeColumn}
	typed     = []string{AddColumn, RetypeColumn}
	ofObjects = []string{DeleteObject, CorruptObject, HideObject}
	lasting   = []string{OpenWindow, ExhaustQuota, HideObject}
	others    = []string{ExpireSession, ExpireStream, OpenWindow, ExhaustQuota, DropResult, RestartServer}
	allStates = slices.Concat(ofTables, ofColumns, ofObjects, others)
)

func (s *State) check() error {
	if !slices.Contains(allStates, s.Do) {
		return fmt.Errorf("state action %q is unknown: expected %s", s.Do, strings.Join(allStates, ", "))
	}
	for _, f := range []struct {
		name   string
		set    bool
		of     []string
		needed bool
	}{
		{"column", s.Column != "", ofColumns, true},
		{"type", s.Type != "", typed, true},
		{"mode", s.Mode != "", []string{AddColumn}, false},
		{"table", s.Table != "", slices.Concat(ofTables, ofColumns, []string{OpenWindow}), false},
		{"session", s.Session != "", []string{ExpireSession}, false},
		{"window", s.Window != "", []string{OpenWindow}, true},
		{"quota", s.Quota != "", []string{ExhaustQuota}, true},
		{"for", s.For != 0, lasting, true},
		{"object", s.Object != "", ofObjects, false},
		{"job", s.Job != "", []string{DropResult}, false},
	} {
		takes := slices.Contains(f.of, s.Do)
		if f.set && !takes || takes && f.needed && !f.set {
			return fmt.Errorf("state action %s: %s is for %s%s", s.Do, f.name, strings.Join(f.of, ", "), map[bool]string{true: ", which need it"}[f.needed])
		}
	}
	return s.checkNames()
}

// checkNames refuses windows and quotas that there are not.
func (s *State) checkNames() error {
	switch {
	case s.Window != "" && !slices.Contains(storm.Windows, s.Window):
		return fmt.Errorf("state action %s: unknown window %q: expected %s", s.Do, s.Window, strings.Join(storm.Windows, ", "))
	case s.Quota != "" && !slices.Contains(storm.Quotas, s.Quota):
		return fmt.Errorf("state action %s: unknown quota %q: expected %s", s.Do, s.Quota, strings.Join(storm.Quotas, ", "))
	case s.For < 0:
		return fmt.Errorf("state action %s: for must not be negative", s.Do)
	}
	return nil
}

// ChangeWith says who carries state actions out. It must be called before any rule is armed.
func (r *Rules) ChangeWith(change func(State, Call) error) { r.change = change }

// changeState carries out what a rule does to the service's state. What fails is reported with the rule.
func (r *Rules) changeState(a *armed, c Call) {
	for _, s := range a.Action.State {
		if err := r.change(s, c); err != nil {
			r.mu.Lock()
			a.failures = append(a.failures, fmt.Sprintf("%s: %v", s.Do, err))
			r.mu.Unlock()
		}
	}
}
