package fault

import (
	"fmt"
	"slices"
	"strings"
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
}

var (
	ofTables  = []string{DeleteTable, RecreateTable, TruncateTable, TouchTable}
	ofColumns = []string{AddColumn, DropColumn, RelaxColumn, RetypeColumn}
	typed     = []string{AddColumn, RetypeColumn}
)

func (s *State) check() error {
	column, session, stream := slices.Contains(ofColumns, s.Do), s.Do == ExpireSession, s.Do == ExpireStream
	switch {
	case !column && !session && !stream && !slices.Contains(ofTables, s.Do):
		return fmt.Errorf("state action %q is unknown: expected %s", s.Do, strings.Join(append(slices.Concat(ofTables, ofColumns), ExpireSession, ExpireStream), ", "))
	case column != (s.Column != ""):
		return fmt.Errorf("state action %s: column is for %s, which need it", s.Do, strings.Join(ofColumns, ", "))
	case slices.Contains(typed, s.Do) != (s.Type != ""):
		return fmt.Errorf("state action %s: type is for %s, which need it", s.Do, strings.Join(typed, ", "))
	case s.Mode != "" && s.Do != AddColumn:
		return fmt.Errorf("state action %s: mode is for %s", s.Do, AddColumn)
	case s.Session != "" && !session, s.Table != "" && (session || stream):
		return fmt.Errorf("state action %s: session is for %s only, and table for changes of tables and columns", s.Do, ExpireSession)
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
