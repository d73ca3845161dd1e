package bigquery

import "github.com/millrace-dev/millrace/bigquery/internal/storageread"

// ReadError says that a read stream cannot be read on, which ends the job attempt. Its fields:
//
//   - Stream and Offset: the stream, and its row that would have been next.
//   - Code: the gRPC status of the cause; OK when it has none.
//   - Attempts: calls since the last row, this one included; 0 when it was not a call that failed.
//   - Expired: when the session had expired by then; zero when it had not.
//   - Err: the cause.
type ReadError = storageread.ReadError

// PlanError says that no read session could be made. What names the table or the query, Hint says what to do where that
// is known, and Err is the cause.
type PlanError = storageread.PlanError

// QueryJobError says that a query ended badly: Project, Location and JobID name the job, Reason is BigQuery's word for
// it ("invalidQuery"), Message its sentence, and SQL the query.
type QueryJobError = storageread.QueryJobError

var (
	// ErrRetriesExhausted: a stream gave no row in SourceOptions.RetryMaxAttempts attempts.
	ErrRetriesExhausted = storageread.ErrRetriesExhausted
	// ErrSessionExpired: a read failed after the end of the session's six hours. Restarting from a checkpoint of the same
	// session cannot help: the job must be started over.
	ErrSessionExpired = storageread.ErrSessionExpired
	// ErrNoResultTable: a query ended well and left no table to read, as scripts and statements that change data do.
	ErrNoResultTable = storageread.ErrNoResultTable
)
