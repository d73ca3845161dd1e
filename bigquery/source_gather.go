package bigquery

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/millrace-dev/millrace/stream"
)

// errEnough cancels lanes whose receiver has ended its loop.
var errEnough = errors.New("the loop has ended")

// gather reads splits with several lanes and yields what they give, in the order it comes. A lane takes splits until
// there are none, and gives as fast as the loop takes. The first error of a lane ends the others and is yielded last.
//
// All lanes are owned by the loop: they have ended when it has.
func gather[X any](ctx context.Context, splits []stream.Split,
	lane func(ctx context.Context, splits <-chan stream.Split, give func(X) error) error) iter.Seq2[X, error] {
	return func(yield func(X, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		todo := make(chan stream.Split, len(splits))
		for _, s := range splits {
			todo <- s
		}
		close(todo)

		given := make(chan X)
		give := func(x X) error {
			select {
			case given <- x:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		var lanes sync.WaitGroup
		for range lanesFor(len(splits)) {
			lanes.Go(func() {
				if err := lane(ctx, todo, give); err != nil {
					cancel(err) // only the first counts
				}
			})
		}
		go func() { // ends when all lanes have
			lanes.Wait()
			close(given)
		}()
		defer func() {
			cancel(errEnough)
			for range given {
			}
		}()

		for x := range given {
			if !yield(x, nil) {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(*new(X), err)
		}
	}
}
