package stream

import (
	"context"
	"errors"
	"log/slog"
)

// Source makes the parts that read. One Source value may serve several job attempts one after another and must keep no
// state of any of them: what belongs to an attempt belongs to the enumerator and the readers it made.
type Source[T any] interface {
	// Bounded reports whether the source ends. A job over a source that ends is done when its last split is; a job over
	// one that does not runs until it is stopped.
	Bounded() bool

	// NewEnumerator makes the one enumerator of a job attempt. With ec.State set it goes on where the snapshot left off
	// and repeats no work that the snapshot says is done. It returns quickly: planning that takes calls to a service
	// runs in a goroutine of the enumerator's own, which ends at Close.
	NewEnumerator(ctx context.Context, ec EnumeratorContext) (Enumerator, error)

	// NewReader makes the reader of one lane. It opens nothing until a split is opened.
	NewReader(ctx context.Context, rc ReaderContext) (Reader[T], error)
}

// EnumeratorContext is what an engine gives a new enumerator.
type EnumeratorContext struct {
	Job   string // the job's name: stable across restarts and versions of the job
	Lanes int    // how many lanes will ask for splits

	// State is nil at a fresh start, else what Snapshot returned.
	State []byte

	// Wake asks the engine to try the lanes again that got ErrNoSplitYet. It may be called from any goroutine, at any
	// time until Close has returned, and never blocks.
	Wake func()

	Meter Meter
	Log   *slog.Logger
}

// ErrNoSplitYet is what [Enumerator].Next answers when there is no split now but may be one later.
var ErrNoSplitYet = errors.New("no split yet")

// Enumerator finds the splits of a source and hands them out one at a time, to whoever asks. It keeps no ledger of who
// holds what: a split it handed out is the lane's, and comes back through Return when the lane fails.
//
// All calls come from one goroutine and none may block.
type Enumerator interface {
	// Next gives the asking lane one split. It answers ErrNoSplitYet when the lane should wait for Wake, and io.EOF
	// when this lane will never get another one. Any other error, such as a plan that failed, ends the job attempt.
	Next(lane int) (Split, error)

	// Return takes back splits of a lane that failed, at the positions of the last checkpoint. They are handed out
	// again, also to lanes that are asking for the first time, but not to lanes that were told io.EOF.
	Return(lane int, splits []Split)

	// Snapshot is what a new enumerator needs to go on: the splits not handed out yet, and whatever stops it from
	// planning twice. It carries its own kind and version.
	Snapshot() ([]byte, error)

	// Close ends the enumerator and its goroutines. It may be called while planning is under way and is idempotent.
	Close() error
}

// MaxPosition is the largest position a split may have. It leaves room for an exclusive end, which some engines need
// (an offset range [start, MaxPosition]).
const MaxPosition = 1<<63 - 2

// Split is a part of a source that one reader reads alone.
type Split struct {
	// ID names the split within its source: unique, the same after every restart, at most a few hundred bytes, fit for
	// logs and errors.
	ID string

	// Data is what a reader needs to open the split. It never changes, and carries its own kind and version.
	Data []byte

	// Position is where to start: the position of the first row not yet consumed. A new split starts where its source
	// says, usually at 0. Positions grow strictly from row to row but need not be consecutive; they end at MaxPosition.
	Position int64
}

// ReaderContext is what an engine gives a new reader.
type ReaderContext struct {
	Job   string
	Lane  int // 0 ≤ Lane < Lanes
	Lanes int
	Meter Meter
	Log   *slog.Logger
}

// Reader reads splits, one at a time, for one lane. All calls come from that lane's goroutine.
type Reader[T any] interface {
	// Open makes s the open split, to be read from s.Position. The engine opens a split only when none is open: at
	// first, and after Fetch answered io.EOF. ctx bounds this call only.
	Open(ctx context.Context, s Split) error

	// Fetch empties b and fills it with the next rows of the open split. It blocks until there is at least one row, the
	// split ends or ctx does.
	//
	//   - nil: b holds at least one row.
	//   - io.EOF: the split is finished and b holds no row; the split is no longer open.
	//   - ctx ended: rows that were ready are handed over with a nil error; without any, the error is ctx's. Nothing is
	//     lost: the next Fetch goes on. An engine ends a fetch this way for a barrier.
	//   - any other error: b holds no row, and the job attempt ends.
	//
	// What b holds is valid until the next Fetch, Open or Close.
	Fetch(ctx context.Context, b *Batch[T]) error

	// Close frees everything, also with a split open. It is idempotent.
	Close() error
}

// Acknowledger is a Reader whose source wants to hear when rows are safe: message queues that redeliver what nobody
// acknowledged. Calls come from the lane's goroutine, between rows.
//
// A source of this kind must not rely on Acknowledge being called for every barrier, nor at all: an engine whose
// completion signals are unreliable does not offer it.
type Acknowledger interface {
	// Barrier says that the rows of the open split before position consumed, and all of the splits finished so far,
	// belong to this checkpoint. Rows fetched but not consumed do not.
	Barrier(checkpoint, consumed int64)

	// Acknowledge says that the checkpoint has been stored. Checkpoints are acknowledged in the order of their
	// barriers; one that is skipped is covered by the next.
	Acknowledge(ctx context.Context, checkpoint int64) error
}

// Sized is an Enumerator that knows how much there is to read, for progress and estimates.
type Sized interface {
	// Size is the sum, over all splits found so far, of what there is to read, in bytes. known is false where the
	// source cannot say. It is called from the coordinator.
	Size() (bytes int64, known bool)
}
