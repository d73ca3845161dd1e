package loadplan

import "errors"

var (
	// ErrMixedCommit: one commit has committables of several runs or checkpoints. The caller is to make a commit of each, in
	// ascending order of checkpoints.
	ErrMixedCommit = errors.New("a commit is of one run and one checkpoint")
	// ErrDuplicateStagedFile: two committables name one file and differ otherwise.
	ErrDuplicateStagedFile = errors.New("one staged file is described in two ways")
	// ErrCommitProfileChanged: options that job ids depend on are others than when the files were staged.
	ErrCommitProfileChanged = errors.New("the options that find earlier jobs have changed")
	// ErrPlanTooLarge: a commit needs more jobs than one commit may have.
	ErrPlanTooLarge = errors.New("too many jobs for one commit")
	// ErrReserved: a table has a name that temporary tables may have.
	ErrReserved = errors.New("no table that rows can be staged for")
	// ErrCommittable: these bytes or values are no committable of a staged file that this program can use.
	ErrCommittable = errors.New("invalid committable of a staged file")
)
