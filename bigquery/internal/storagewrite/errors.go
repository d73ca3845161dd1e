package storagewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
)

var (
	// ErrConnClosed is the result of appends that a connection took with it, beside the one that tells why.
	ErrConnClosed = errors.New("connection closed")
	// ErrResponseTimeout is the result of an append that the service left unanswered.
	ErrResponseTimeout = errors.New("no answer to an append within 5m")
	// ErrTableMissing says that the table does not exist and may not be created.
	ErrTableMissing = tableadmin.ErrTableMissing
	// ErrSchemaMismatch says that rows have columns which the table lacks.
	ErrSchemaMismatch = errors.New("rows have columns that the table lacks")
	// ErrInconsistentStream says that a stream is not as its only writer left it: somebody else wrote to it, or the service
	// lost count.
	ErrInconsistentStream = errors.New("stream is not as its writer left it")
	// ErrNoProgress says that the service refused rows by numbers that the request does not have.
	ErrNoProgress = errors.New("row errors match no row")
)

// AppendError is the failure of an append, or of opening a stream for one, that could not be mended.
type AppendError struct {
	Op          string // "append", "re-append", "open write stream", "create write stream", "flush rows"
	Destination table.Destination
	Stream      string
	Offset      int64  // row number in the stream the append was to start at; -1 on default streams
	Attempts    int    // rounds of repair that were spent, 0 when none was tried
	Code        string // canonical name of the status code, "UNCLASSIFIED" without one
	Verdict     Kind
	Hint        string // what to do about it, "" where the cause says it all

	tableCreated bool
	reconciled   bool // the table was changed for the rows, or needed no change
	passing      bool // with KindSchemaMismatch: the table may take the rows later
	err          error
}

func (e *AppendError) Error() string {
	var b strings.Builder
	preposition := "to"
	switch e.Op {
	case opOpen, opCreateStream:
		preposition = "for"
	case opFlushRows:
		preposition = "of"
	}
	fmt.Fprintf(&b, "%s %s %s failed", e.Op, preposition, e.Destination)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %d", e.Offset)
	}
	if e.tableCreated {
		b.WriteString(", table creation was attempted")
	}
	if e.reconciled {
		b.WriteString(", table schema was reconciled")
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
// more. Other failures may pass with what causes them, a permission, a table or a column that is yet to come.
func (e *AppendError) Permanent() bool {
	if e.Verdict == KindSchemaMismatch {
		return !e.passing
	}
	return e.Verdict == KindTerminal && (e.Code == codeInvalid || e.Code == codeUnimplemented)
}

// lasting says whether changing a table would fail the same way again.
func lasting(err error) bool {
	return errors.Is(err, table.ErrUnion) || errors.Is(err, tableadmin.ErrNotChangeable)
}

// mismatchHint says what to do about rows with more columns than the table; err is what became of changing it where that
// is allowed.
func mismatchHint(err error, updates bool) string {
	const allow = "SchemaUpdate.AllowNewFields (schemaUpdate.allowNewFields in a job file, --allow-new-fields of millrace write)"
	switch {
	case !updates:
		return "add the columns to the table (ALTER TABLE … ADD COLUMN), write rows without them, or let the sink add them with " + allow
	case errors.Is(err, table.ErrUnion):
		return "columns are added with " + allow + "; everything else about the table is yours to change"
	case errors.Is(err, retry.ErrBudgetSpent):
		return "the table has the columns, and the write service has not heard of them yet: run the job again later"
	}
	return ""
}

const (
	missingHint = "create it, or let the sink do so with Create.Disposition CreateIfNeeded"
	deniedHint  = "the table may not exist, or the credentials may not write to it (bigquery.tables.updateData)"
)

const codeInvalid, codeUnimplemented = "INVALID_ARGUMENT", "UNIMPLEMENTED"

const (
	opAppend   = "append"
	opReAppend = "re-append"
	opOpen     = "open write stream"

	opCreateStream = "create write stream"
	opFlushRows    = "flush rows"
)
