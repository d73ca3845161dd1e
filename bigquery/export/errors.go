package export

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// UnfinishedError says that a target has an unfinished read, and that nobody asked to go on with it.
type UnfinishedError struct {
	Target  string
	Notes   string // the file that says how to go on
	Rows    int64  // that are written
	Expires time.Time
}

func (e *UnfinishedError) Error() string {
	until := ""
	if !e.Expires.IsZero() {
		until = ", until its session ends at " + e.Expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: a read with %d rows so far did not finish and can go on%s: resume it, or remove %s to begin again", e.Target, e.Rows, until, e.Notes)
}

// Change is a fact that is not what it was.
type Change struct{ Name, Was, Is string }

// ChangedError says that a read cannot go on because what is asked for is another one.
type ChangedError struct {
	Target  string
	Notes   string // the file that says how to go on
	Changes []Change
}

func (e *ChangedError) Error() string {
	var parts []string
	for _, c := range e.Changes {
		parts = append(parts, fmt.Sprintf("%s was %s and is %s", c.Name, named(c.Was), named(c.Is)))
	}
	return fmt.Sprintf("%s: the read that did not finish is another one: %s: ask for the same, or remove %s to begin again",
		e.Target, strings.Join(parts, "; "), e.Notes)
}

func named(value string) string {
	if value == "" {
		return "not given"
	}
	const most = 200
	if r := []rune(value); len(r) > most {
		value = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", value)
}

var (
	// ErrBusy: another process writes to the target.
	ErrBusy = errors.New("another process is writing it")
	// ErrOccupied: numbered files of the target are there, which would be mixed with those of this read.
	ErrOccupied = errors.New("there are files of another read")
	// ErrNotes: the notes of an unfinished read, or its file, are not what was written.
	ErrNotes = errors.New("the unfinished read cannot go on")
	// ErrPlace: files cannot be made where they are to be.
	ErrPlace = errors.New("nothing can be written there")
)
