package localbq

import "github.com/millrace-dev/millrace/localbq/internal/fault"

type (
	// Faults are the rules by which the service fails on purpose.
	Faults = fault.Rules
	// Fault is one rule: a match, a phase, an action, a count.
	Fault = fault.Rule
	// FaultMatch picks the calls of a rule.
	FaultMatch = fault.Match
	// FaultPhase is when in a call it happens.
	FaultPhase = fault.Phase
	// FaultAction is what a rule does.
	FaultAction = fault.Action
	// FaultStatus is a gRPC answer that a rule gives; FaultRowError one bad row of it; FaultHTTP a REST answer.
	FaultStatus   = fault.Status
	FaultRowError = fault.RowError
	FaultHTTP     = fault.HTTP
	// FaultState is a change that a rule makes to what the service keeps; FaultCut is where it cuts a connection off.
	FaultState = fault.State
	FaultCut   = fault.Cut
	// FaultDuration is a time.Duration spelt as text in JSON.
	FaultDuration = fault.Duration
	// Barrier is a call that a rule holds.
	Barrier = fault.Barrier
)

// The phases of a call, and the count of a rule that never disarms.
const (
	PhaseReceive  = fault.Receive
	PhaseApplied  = fault.Applied
	PhaseAnswered = fault.Answered

	FaultAlways = fault.Always
)

// What a FaultState does.
const (
	FaultDeleteTable   = fault.DeleteTable
	FaultRecreateTable = fault.RecreateTable
	FaultTruncateTable = fault.TruncateTable
	FaultTouchTable    = fault.TouchTable
	FaultAddColumn     = fault.AddColumn
	FaultDropColumn    = fault.DropColumn
	FaultRelaxColumn   = fault.RelaxColumn
	FaultRetypeColumn  = fault.RetypeColumn
	FaultExpireSession = fault.ExpireSession
	FaultExpireStream  = fault.ExpireStream
	FaultOpenWindow    = fault.OpenWindow
	FaultExhaustQuota  = fault.ExhaustQuota
	FaultDeleteObject  = fault.DeleteObject
	FaultCorruptObject = fault.CorruptObject
	FaultHideObject    = fault.HideObject
	FaultDropResult    = fault.DropResult
	FaultRestartServer = fault.RestartServer
)

// Faults are the rules in force.
func (i *Instance) Faults() *Faults { return i.faults }

// ParseFaults reads rules as the admin API takes them: a JSON array, or one rule.
func ParseFaults(text []byte) ([]Fault, error) { return fault.ParseRules(text) }
