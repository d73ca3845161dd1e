package fileload

import (
	"context"
	"fmt"
	"sync/atomic"
)

// reasonNotFound is that of a load job whose files, or whose table, are not there (BigQuery documentation, "Error messages").
const reasonNotFound = "notFound"

// explain says more about a job that has failed, where more can be found out: which file is gone.
func (r *run) explain(ctx context.Context, j *jobRun, failed *JobError) error {
	if failed.Reason != reasonNotFound || len(j.URIs) == 0 {
		return failed
	}
	gone := make([]bool, len(j.URIs))
	var missing atomic.Int64
	inParallel(ctx, len(j.URIs), deletesAtOnce, func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			return
		}
		if there, err := r.files.Exists(ctx, j.URIs[i]); err == nil && !there {
			gone[i] = true
			missing.Add(1)
		}
	})
	for i, uri := range j.URIs {
		if !gone[i] {
			continue
		}
		if more := missing.Load() - 1; more > 0 {
			return fmt.Errorf("%w: %s, and %d more: %w", ErrStagedFileGone, uri, more, failed)
		}
		return fmt.Errorf("%w: %s: %w", ErrStagedFileGone, uri, failed)
	}
	return failed
}
