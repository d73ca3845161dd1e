package storagewrite

import (
	"context"

	"github.com/millrace-dev/millrace/stream"
)

// delivery is how a writer's batches get to their tables: one for each write method.
type delivery interface {
	// ready comes before the first row of a target.
	ready(ctx context.Context, t *Target) error
	// prepareToSend comes before all pending batches are sent. It does side by side what each of them waits for.
	prepareToSend(ctx context.Context) error
	// send hands over a batch. The writer forgets it.
	send(ctx context.Context, t *Target, b *batch) error
	// refresh comes after the last batch under an older schema was sent, and before the first one under the newer.
	refresh(ctx context.Context, t *Target) error
	// heed does what answers told beside taking rows. It comes before the last batches of a flush.
	heed(ctx context.Context) error
	// mend handles the failures among the appends that are answered.
	mend(ctx context.Context) error
	// await waits for the answer to the oldest append and handles it; false when nothing is out.
	await(ctx context.Context) (bool, error)
	// drain waits for all answers and handles them.
	drain(ctx context.Context) error
	// evictable reports whether nothing would be lost with what is known of a target that is idle.
	evictable(t *Target) bool
	// forget lets go of a target and tells whether anything was open.
	forget(t *Target) bool
	// close lets go of everything at once, unanswered appends included.
	close()

	prepare() []stream.Committable
	snapshot(checkpoint int64) []stream.State
}
