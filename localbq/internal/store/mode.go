package store

import "fmt"

// Mode is how much a table keeps of what is written to it. Tables start in ModeStore.
type Mode uint8

const (
	ModeStore    Mode = iota // rows are kept
	ModeValidate             // rows are decoded and checked, counted, and dropped
	ModeNull                 // row boundaries are counted, nothing else
)

var modeNames = [...]string{ModeStore: "store", ModeValidate: "validate", ModeNull: "null"}

func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if name == s {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("unknown table mode %q: expected store, validate or null", s)
}
