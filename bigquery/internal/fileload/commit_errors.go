package fileload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
)

var (
	// ErrRetryIDsExhausted: a job has failed as often as one planned job may. The limit is RetryIDLimit; a higher one lets a job that
	// is started again go on.
	ErrRetryIDsExhausted = errors.New("no ids are left to run the job again with")
	// ErrJobVanished: a job that was running is not there any more.
	ErrJobVanished = errors.New("the job has disappeared")
	// ErrStagedFileGone: a file that a checkpoint names is not there any more, and its rows are in no table.
	ErrStagedFileGone = errors.New("a staged file is gone")
	// ErrRowsDiffer: a load job has written more or fewer rows than were staged: somebody else has written to its files.
	ErrRowsDiffer = errors.New("staged files were changed before they were loaded")
	// ErrLocations: a destination and the dataset of its temporary tables are in different places.
	ErrLocations = errors.New("the datasets are in different locations")
)

// LoadError is a destination that a commit did not get its rows into. Nothing of what the commit needs has been deleted. Its causes are
// found with errors.Is and errors.As.
type LoadError struct {
	Destination table.Destination
	Checkpoint  *int64 // whose rows they are; nil where the input has ended
	Hint        string // what to do about it, "" where the cause says it all

	err error
}

func (e *LoadError) Error() string {
	text := fmt.Sprintf("commit %s to %s: %v", ofCheckpoint(e.Checkpoint), e.Destination, e.err)
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

func ofCheckpoint(id *int64) string {
	if id == nil {
		return "all rows"
	}
	return "the rows of checkpoint " + strconv.FormatInt(*id, 10)
}

func (e *LoadError) Unwrap() error { return e.err }

// Permanent reports that another attempt would end the same, or use up an id of a job for nothing. Other failures may pass, with the
// service's bad moment or with what causes them: a permission, a table or a dataset that is yet to come.
func (e *LoadError) Permanent() bool {
	for _, lasting := range []error{ErrRetryIDsExhausted, ErrStagedFileGone, ErrRowsDiffer, ErrLocations, table.ErrUnion, tableadmin.ErrNotChangeable,
		gcp.ErrCredentials, gcp.ErrNoCredentials, gcp.ErrEndpoint} {
		if errors.Is(e.err, lasting) {
			return true
		}
	}
	if m, ok := errors.AsType[misconfiguration](e.err); ok {
		return m.Permanent()
	}
	if j, ok := errors.AsType[*JobError](e.err); ok {
		return lastingReasons[j.Reason]
	}
	a, ok := errors.AsType[*googleapi.Error](e.err)
	return ok && a.Code == 400
}

// lastingReasons are those of failed jobs that the files, the table or the caller must change for (BigQuery documentation, "Error
// messages").
var lastingReasons = map[string]bool{
	"accessDenied": true, "billingNotEnabled": true, "blocked": true, "duplicate": true, "invalid": true, "invalidQuery": true,
	"notFound": true, "notImplemented": true, "quotaExceeded": true, "responseTooLarge": true,
}

// passingReasons are those of jobs that may be run again at once (InlineJobRetries).
var passingReasons = map[string]bool{
	"backendError": true, "internalError": true, "jobBackendError": true, "jobInternalError": true, "rateLimitExceeded": true,
}

// JobError is a job that has failed.
type JobError struct {
	ID       string // of the job that ran, with the -r1 of a second try
	Project  string
	Location string
	Reason   string // as in the BigQuery documentation, "Error messages"
	Message  string
	Errors   []JobFault // all that the service says about it; those of rows may quote them
}

// JobFault is one of the errors of a job.
type JobFault struct {
	Reason, Location, Message string
}

func (e *JobError) Error() string {
	text := fmt.Sprintf("job %s in %s failed: %s: %s", e.ID, e.where(), e.Reason, e.Message)
	for _, f := range e.more() {
		text += "; " + f.Message
	}
	return text
}

func (e *JobError) where() string {
	if e.Location == "" {
		return e.Project
	}
	return e.Project + ", " + e.Location
}

// more is what the first few errors say beside the message, which is one of them as a rule.
func (e *JobError) more() (few []JobFault) {
	const most = 3
	for _, f := range e.Errors {
		if len(few) < most && !strings.Contains(e.Message, f.Message) {
			few = append(few, f)
		}
	}
	return few
}

// hint is what to do about an error, "" where it says so itself.
func hint(err error) string {
	switch {
	case errors.Is(err, ErrStagedFileGone):
		return "its rows cannot be loaded, and the others of this commit are not, so that none are missing without a word: restore it (a bucket with soft delete " +
			"keeps what was deleted for seven days) and run the job again, or start the job from a checkpoint or a place in the input before these rows"
	case errors.Is(err, ErrRowsDiffer):
		return "nothing that is staged is deleted, and no later step of this commit runs: find out who writes to the staging path, compare the table with the " +
			"input of these rows, and start the job from a checkpoint or a place in the input before them"
	case errors.Is(err, ErrRetryIDsExhausted):
		return "once the cause is mended, raise RetryIDLimit and run the job again: it goes on with the next id"
	case errors.Is(err, tableadmin.ErrTableMissing):
		return "create it, or let the sink do so with Create.Disposition CreateIfNeeded"
	case hasReason(err, "invalid"):
		return "a load job takes all rows of its files or none: mend the table, or start the job from a checkpoint or a place in the input before these rows"
	case errors.Is(err, ErrJobVanished):
		return "jobs are known for six months where they ran: has the dataset been moved, or was the job deleted? Another attempt submits it again"
	}
	return ""
}

func hasReason(err error, reason string) bool {
	j, ok := errors.AsType[*JobError](err)
	return ok && j.Reason == reason
}
