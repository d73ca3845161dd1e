package bigquery

import (
	"errors"

	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// AppendError is the failure of an append that could not be mended: it ends the job attempt. Its causes are found with
// errors.Is and errors.As.
type AppendError = storagewrite.AppendError

// Kind is the class of a failed append.
type Kind = storagewrite.Kind

// The kinds of failures.
const (
	KindTransient      = storagewrite.KindTransient
	KindRows           = storagewrite.KindRows
	KindMissingTable   = storagewrite.KindMissingTable
	KindSchemaMismatch = storagewrite.KindSchemaMismatch
	KindStaleStream    = storagewrite.KindStaleStream
	KindDeadHandle     = storagewrite.KindDeadHandle
	KindOffset         = storagewrite.KindOffset
	KindInconsistent   = storagewrite.KindInconsistent
	KindTerminal       = storagewrite.KindTerminal
)

var (
	// ErrRetryBudgetExhausted: something failed in passing, again and again, until its attempts were used up.
	ErrRetryBudgetExhausted = retry.ErrBudgetSpent
	// ErrUnsupportedPipeline: the way to write cannot keep its promises in a job that is run like that.
	ErrUnsupportedPipeline = errors.New("the job does not fit the sink")
	// ErrConnClosed: an append went under with its connection.
	ErrConnClosed = storagewrite.ErrConnClosed
	// ErrResponseTimeout: the service left an append unanswered.
	ErrResponseTimeout = storagewrite.ErrResponseTimeout
	// ErrTableMissing: the table does not exist and Create.Disposition is CreateNever.
	ErrTableMissing = storagewrite.ErrTableMissing
	// ErrAbsent: the REST service says that a table, or the dataset to create one in, does not exist.
	ErrAbsent = tableadmin.ErrAbsent
	// ErrSchemaMismatch: rows have columns that the table lacks.
	ErrSchemaMismatch = storagewrite.ErrSchemaMismatch
	// ErrUpdateRaceLost: others changed a table at the same moment, each of the five times that its schema was to be changed.
	// What no table can be changed into is table.ErrUnion.
	ErrUpdateRaceLost = tableadmin.ErrUpdateRaceLost
	// ErrNotChangeable: the schema of a view, an external table or a snapshot cannot be changed.
	ErrNotChangeable = tableadmin.ErrNotChangeable
	// ErrInconsistentStream: a stream is not as its only writer left it.
	ErrInconsistentStream = storagewrite.ErrInconsistentStream
	// ErrNoProgress: the service refused rows that the request does not have.
	ErrNoProgress = storagewrite.ErrNoProgress
	// ErrCredentials: the key file of a sink or a source could not be used. It says no more on purpose.
	ErrCredentials = gcp.ErrCredentials
	// ErrSourceCredentials: it is a source's. It is an ErrCredentials, too.
	ErrSourceCredentials = gcp.ErrSourceCredentials
	// ErrNoCredentials: no key file is named, and there are no application default credentials.
	ErrNoCredentials = gcp.ErrNoCredentials
	// ErrEndpoint: one service of the connection is an emulator, the one that is needed is not.
	ErrEndpoint = gcp.ErrEndpoint
)

// NoDelay and NoLimit are the zeros of options whose zero value means the default.
const (
	NoDelay = retry.NoDelay
	NoLimit = retry.NoLimit
)
