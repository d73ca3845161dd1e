package fileload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Prepare finishes all files and promises them: each committable is one. They are stamped with the checkpoint, but for those of a
// batch that has ended, of which there is one commit only.
//
// Of a batch that is to load nothing too, and whose lane 0 has no file, that lane promises a file without rows, which has no URI:
// the committer makes it where nobody else has promised one with rows.
func (w *Writer) Prepare(ctx context.Context, checkpoint int64) ([]stream.Committable, error) {
	if w.ended != nil {
		return nil, w.ended
	}
	if err := w.finishAll(ctx); err != nil {
		return nil, w.end(err)
	}
	files := w.shelf.finished
	w.shelf.finished = nil
	w.said = nil
	w.targets, w.spare = map[table.Destination]*Target{}, nil
	w.m.show(&w.shelf)
	whole := w.final && !w.cfg.Streaming
	if o := &w.cfg.Options; whole && len(files) == 0 && w.cfg.Lane == 0 && o.LoadEmpty && w.cfg.Fixed != (table.Destination{}) {
		files = []loadplan.Committable{{Run: w.cfg.Run, Destination: w.cfg.Fixed, Format: loadplan.Avro, Profile: o.Plan.Profile()}}
	}
	var promises []stream.Committable
	for _, f := range files {
		if !whole {
			f = f.WithCheckpoint(checkpoint)
		}
		data, err := f.MarshalBinary()
		if err != nil {
			return nil, w.end(misconfiguration{fmt.Errorf("promise %s: %w", f.URI, err)})
		}
		promises = append(promises, stream.Committable{Key: cmp.Or(f.URI, f.Destination.Path()), Data: data})
	}
	return promises, nil
}

// finishAll finishes the open files in the order of their tables' paths, several at once. After a failure no other one is begun; those
// that are under way are waited for.
func (w *Writer) finishAll(ctx context.Context) error {
	var open []*Target
	for t := w.shelf.oldest; t != nil; t = t.behind {
		open = append(open, t)
	}
	slices.SortFunc(open, func(a, b *Target) int { return cmp.Compare(a.Dst.Path(), b.Dst.Path()) })
	errs := finishEach(ctx, open, w.cfg.Options.Finalizations)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, t := range open {
		f := t.file
		w.detach(t)
		w.stage(t, f)
	}
	return nil
}

// finishEach finishes files, so many at once, and returns an error for each that failed.
func finishEach(ctx context.Context, open []*Target, atOnce int) []error {
	var (
		mu     sync.Mutex // guards next and failed
		next   int
		failed bool
		errs   = make([]error, len(open))
		all    sync.WaitGroup
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed || next == len(open) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	work := func() {
		for i, ok := take(); ok; i, ok = take() {
			if err := open[i].file.finish(ctx); err != nil {
				errs[i] = fmt.Errorf("stage rows of %s: %w", open[i].Name, err)
				mu.Lock()
				failed = true
				mu.Unlock()
			}
		}
	}
	for range min(atOnce, len(open)) - 1 {
		all.Go(work) // owned by this call: ends when there is nothing left to take
	}
	work()
	all.Wait()
	return errs
}
