package loadplan

import (
	"errors"
	"iter"
)

// Build plans the commit of cs, in whatever order they come. Copies of one committable count as one. Without committables the plan
// is empty.
//
// Errors are ErrMixedCommit, ErrCommitProfileChanged, ErrDuplicateStagedFile, ErrPlanTooLarge, and ErrCommittable for values that no
// writer makes.
func Build(cfg Config, lim Limits, cs iter.Seq[Committable]) (*Plan, error) {
	return nil, errors.New("not planned")
}
