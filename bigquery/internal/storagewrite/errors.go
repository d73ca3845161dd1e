package storagewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
)

var (
	// ErrConnClosed is the result of appends that a connection took with it, beside the one that tells why.
	ErrConnClosed = errors.New("connection closed")
	// ErrResponseTimeout is the result of an append that the service left unanswered.
	ErrResponseTimeout = errors.New("no answer to an append within 5m")
	// ErrTableMissing says that the table does not exist and may not be created.
	ErrTableMissing = errors.New("table does not exist")
	// ErrSchemaMismatch says that rows have columns which the table lacks.
	ErrSchemaMismatch = errors.New("rows have columns that the table lacks")
	// ErrNoProgress says that the service refused rows by numbers that the request does not have.
	ErrNoProgress = errors.New("row errors match no row")
)

// AppendError is the failure of an append, or of opening a stream for one, that could not be mended.
type AppendError struct {
	Op          string // "append", "re-append", "open write stream"
	Destination table.Destination
	Stream      string
	Offset      int64  // row number in the stream the append was to start at; -1 on default streams
	Attempts    int    // rounds of repair that were spent, 0 when none was tried
	Code        string // canonical name of the status code, "UNCLASSIFIED" without one
	Verdict     Kind
	Hint        string // what to do about it, "" where the cause says it all

	tableCreated bool
	err          error
}

func (e *AppendError) Error() string {
	var b strings.Builder
	preposition := "to"
	if e.Op == opOpen {
		preposition = "for"
	}
	fmt.Fprintf(&b, "%s %s %s failed", e.Op, preposition, e.Destination)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %d", e.Offset)
	}
	if e.tableCreated {
		b.WriteString(", table creation was attempted")
	}
	if e.Attempts > 0 {
		fmt.Fprintf(&b, ", attempts=%d", e.Attempts)
	}
	fmt.Fprintf(&b, ": %v", e.err)
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	return b.String()
}

func (e *AppendError) Unwrap() error { return e.err }

// Permanent reports that the same rows would be refused the same way: trying again would only write those before them once
// more. Other failures may pass with what causes them, a permission or a table that is yet to come.
func (e *AppendError) Permanent() bool {
	return e.Verdict == KindSchemaMismatch || e.Verdict == KindTerminal && (e.Code == codeInvalid || e.Code == codeUnimplemented)
}

const codeInvalid, codeUnimplemented = "INVALID_ARGUMENT", "UNIMPLEMENTED"

const (
	opAppend   = "append"
	opReAppend = "re-append"
	opOpen     = "open write stream"
)
