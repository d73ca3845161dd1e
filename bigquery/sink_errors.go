package bigquery

import (
	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

// LoadError is a destination that a commit of staged files did not get its rows into. Nothing that the commit needs has been deleted:
// it is made again by the next attempt or run. Its fields:
//
//   - Destination: the table.
//   - Checkpoint: whose rows they are; nil where the input has ended.
//   - Hint: what to do about it, "" where the cause says it all.
//
// Its causes are found with errors.Is and errors.As, a *JobError among them where a job has failed.
type LoadError = fileload.LoadError

// JobError is a load, copy or query job that has failed: ID is that of the job that ran, with the -r1 of a second try, Project and
// Location are where, Reason is BigQuery's word for it ("invalid"), Message its sentence, and Errors is all that it says about it.
type JobError = fileload.JobError

// JobFault is one of the errors of a job.
type JobFault = fileload.JobFault

var (
	// ErrStagedFileGone: a file that a checkpoint names is not there any more, and its rows are in no table.
	ErrStagedFileGone = fileload.ErrStagedFileGone
	// ErrRetryIDsExhausted: a job has failed as often as FileLoads.RetryIDLimit lets it be run.
	ErrRetryIDsExhausted = fileload.ErrRetryIDsExhausted
	// ErrJobVanished: a job that was there is not there any more.
	ErrJobVanished = fileload.ErrJobVanished
	// ErrLocations: a destination and the dataset of its temporary tables are in different places.
	ErrLocations = fileload.ErrLocations
	// ErrPendingFilesExceeded: a lane has as many files as FileLoads.MaxPendingFiles before a checkpoint.
	ErrPendingFilesExceeded = fileload.ErrPendingFilesExceeded
	// ErrCommitProfileChanged: options that find the jobs of an earlier try have changed while files wait to be loaded.
	ErrCommitProfileChanged = loadplan.ErrCommitProfileChanged
	// ErrPlanTooLarge: a commit needs more jobs than a project may run in a day.
	ErrPlanTooLarge = loadplan.ErrPlanTooLarge
	// ErrMixedCommit: an engine has handed the files of several checkpoints or runs to one commit.
	ErrMixedCommit = loadplan.ErrMixedCommit
	// ErrDuplicateStagedFile: one file is described in two ways.
	ErrDuplicateStagedFile = loadplan.ErrDuplicateStagedFile
)
