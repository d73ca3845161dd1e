package fileload

import (
	"context"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// deletesAtOnce is how many tables, or files, are deleted at a time.
const deletesAtOnce = 32

// cleanUp deletes what nobody needs any more, once all rows are visible: temporary tables first, since they can be told from files. What
// is left behind is logged, and no error.
func (r *run) cleanUp(ctx context.Context) {
	r.deleteTables(ctx)
	if r.cfg.Options.KeepFiles {
		return
	}
	if ctx.Err() != nil {
		r.log.WarnContext(ctx, "staged files are left behind: the commit was ended", "cause", context.Cause(ctx))
		return
	}
	r.deleteFiles(ctx)
}

func (r *run) deleteFiles(ctx context.Context) {
	left := r.files.Delete(ctx, func(yield func(string) bool) {
		for i := range r.plan.Parts {
			for uri := range r.plan.Parts[i].StagedFiles() {
				if !yield(uri) {
					return
				}
			}
		}
	})
	if len(left) > 0 {
		r.log.WarnContext(ctx, "staged files are left behind", "files", len(left), "one", left[0].URI, "cause", left[0].Err)
	}
}

func (r *run) deleteTables(ctx context.Context) {
	var tables []table.Destination
	for i := range r.plan.Parts {
		tables = slices.AppendSeq(tables, r.plan.Parts[i].TempTables())
	}
	var left leftBehind
	inParallel(ctx, len(tables), deletesAtOnce, func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			left.add(tables[i].String(), context.Cause(ctx))
		} else if err := r.janitor.Delete(ctx, tables[i]); err != nil {
			left.add(tables[i].String(), err)
		}
	})
	if left.count > 0 {
		r.log.WarnContext(ctx, "temporary tables are left behind", "tables", left.count, "one", left.one, "cause", left.cause)
	}
}

// leftBehind is what could not be deleted.
type leftBehind struct {
	mu    sync.Mutex // guards what follows
	count int
	one   string
	cause error
}

func (l *leftBehind) add(name string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		l.one, l.cause = name, cause
	}
	l.count++
}
