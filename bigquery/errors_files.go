package bigquery

import (
	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

type (
	// LoadError is the failure of a commit of staged files for one table: it ends the job attempt. Its causes are found with errors.Is
	// and errors.As.
	LoadError = fileload.LoadError
	// JobError is a load, copy or query job that has failed.
	JobError = fileload.JobError
	// JobFault is one of the errors that the service has about a job.
	JobFault = fileload.JobFault
)

// What ends commits of staged files.
var (
	// ErrCommitProfileChanged: files that wait to be loaded were staged with other options, among those that earlier jobs are found
	// by. See FileLoadOptions.AllowProfileChange.
	ErrCommitProfileChanged = loadplan.ErrCommitProfileChanged
	// ErrPlanTooLarge: a commit needs more jobs than one commit may have.
	ErrPlanTooLarge = loadplan.ErrPlanTooLarge
	// ErrMixedCommit: an engine has put files of several runs or checkpoints into one commit.
	ErrMixedCommit = loadplan.ErrMixedCommit
	// ErrDuplicateStagedFile: two committables name one file and differ otherwise.
	ErrDuplicateStagedFile = loadplan.ErrDuplicateStagedFile
	// ErrCommittable: bytes or values that are no committable of a staged file.
	ErrCommittable = loadplan.ErrCommittable
	// ErrPendingFilesExceeded: a lane has more files that wait for a commit than MaxPendingFiles.
	ErrPendingFilesExceeded = fileload.ErrPendingFilesExceeded
	// ErrRetryIDsExhausted: a job has failed as often as RetryIDLimit lets it be run again.
	ErrRetryIDsExhausted = fileload.ErrRetryIDsExhausted
	// ErrStagedFileGone: a file was deleted before it was loaded.
	ErrStagedFileGone = fileload.ErrStagedFileGone
	// ErrRowsDiffer: a load job has written more or fewer rows than its files were staged with.
	ErrRowsDiffer = fileload.ErrRowsDiffer
	// ErrJobVanished: a job that was there is not there any more.
	ErrJobVanished = fileload.ErrJobVanished
	// ErrLocations: datasets that jobs have to join are in different locations.
	ErrLocations = fileload.ErrLocations
)
