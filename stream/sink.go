package stream

import (
	"context"
	"log/slog"
	"time"
)

// Sink makes the parts that write. Like a Source it may serve several attempts and keeps no state of them.
type Sink[T any] interface {
	// NewWriter makes the writer of one lane. With wc.States set it goes on from them; see State.
	NewWriter(ctx context.Context, wc WriterContext) (Writer[T], error)
}

// WriterContext is what an engine gives a new writer.
type WriterContext struct {
	Job   string
	Lane  int // 0 ≤ Lane < Lanes
	Lanes int

	// Run tells this run of the job from all others: 32 lower-case hexadecimal digits. Attempt counts the times that writers
	// were made in it, from 1. Names made of both and the lane are used by no other writer, were it still alive somewhere.
	Run     string
	Attempt int
	// Streaming says that checkpoints come on an interval. Otherwise there is one at the end, and others only when somebody
	// asks for them.
	Streaming bool

	// Checkpoint is the id of the checkpoint the job was restored from, 0 at a fresh start.
	Checkpoint int64

	// States are what writers returned from Snapshot, handed out so that all states of one destination reach one
	// writer, whatever the number of lanes was then and is now. A writer may get several states of one destination,
	// from several lanes or attempts, and several of one (destination, shard).
	States []State

	Meter Meter
	Log   *slog.Logger
}

// Writer takes the records of one lane. All calls come from that lane's goroutine; whatever goroutines the writer
// starts end before Close returns.
//
// The calls of a checkpoint are Flush, Prepare, Snapshot, in this order and with no Write between them. Any error from
// any method is final: the engine closes the writer and restores another one.
//
// A writer that has a committer never makes anything visible itself; one without makes rows durable no later than
// Flush. Either may be asked to go on from any earlier state while the writer that made the state is still alive in
// another process and still writing.
type Writer[T any] interface {
	// Write takes one record. It may buffer, and blocks while its bounded buffers are full. It keeps nothing of r after
	// returning: what it needs later it copies. A record that is wrong by itself goes to the failure handler and is no
	// error here.
	Write(ctx context.Context, r *Record[T]) error

	// Flush returns once every record written before is where a failure cannot lose it: acknowledged by the service, or
	// appended where a later commit makes it visible, or taken by the failure handler, whose own Flush it calls last.
	// final is true for the last flush of a job whose input ended or which was stopped.
	Flush(ctx context.Context, final bool) error

	// Prepare returns what the committer needs to make everything flushed so far visible. checkpoint is the id of the
	// checkpoint that it is taken for; should that one fail to be stored, a later one holds what was prepared for it. Writers
	// without a committer return nil.
	Prepare(ctx context.Context, checkpoint int64) ([]Committable, error)

	// Snapshot returns what a writer needs to go on from here, one State for each (destination, shard) that has
	// something to remember. Writers that need nothing return nil.
	Snapshot(ctx context.Context, checkpoint int64) ([]State, error)

	// Close frees everything without flushing, on success and failure alike. It is called exactly once.
	Close() error
}

// State is what a writer remembers of one destination and shard. It is small (under 200 bytes for stream writers, since
// some engines store it beside every key) and carries its own kind and version.
type State struct {
	Destination string // groups states: all states of a destination go to one writer
	Shard       string // "" where a destination has one
	Data        []byte
}

// Committable is a promise that can be kept from any process: what a committer needs to make flushed rows visible.
// It never changes, carries its own kind and version, and committing it is idempotent, whatever the order, for ever.
type Committable struct {
	// Key is what the commit acts on: a stream, a manifest. Committables with equal keys may be folded by the committer
	// into the one that covers most.
	Key  string
	Data []byte
}

// CommitScope says how many committers a sink wants.
type CommitScope uint8

const (
	// PerLane: committables are committed lane by lane, independently and possibly at once.
	PerLane CommitScope = iota
	// Global: one committer sees all committables that were prepared for a checkpoint together, and no others with them.
	// Checkpoints come in their order, each after the one before is committed, and none is taken meanwhile that nobody asked
	// for: rows wait in the writers while commits are slow.
	Global
	// AtEnd: one committer sees all committables of the job together, once, when its input has ended. Nothing is prepared
	// before: the job takes no checkpoint on an interval, savepoints are refused, and a stop leaves nothing behind.
	AtEnd
	// NoCommit: the writers of this sink, as it is configured, make rows visible themselves.
	NoCommit
)

// TwoPhase is a Sink whose writers return committables. One that may be configured either way answers NoCommit when they
// do not: see CommitsOf.
type TwoPhase interface {
	CommitScope() CommitScope

	// NewCommitter makes a committer. Committers keep no state from one Commit to the next that correctness depends on.
	NewCommitter(ctx context.Context, cc CommitterContext) (Committer, error)
}

// Shape is how a job is going to be run, as far as it matters to a sink. What an engine cannot do otherwise it leaves zero.
type Shape struct {
	Bounded bool // the source ends
	// Streaming says that checkpoints come on an interval, Every. Undecided says that nobody knows before the job runs.
	Streaming bool
	Undecided bool
	Every     time.Duration // 0 without checkpoints before the end
	// AtLeastOnce says that records from behind a checkpoint may be in it.
	AtLeastOnce bool
	// NoCheckpointAtEnd says that none follows the last record.
	NoCheckpointAtEnd bool
}

// Particular is a Sink that does not fit every job.
type Particular interface {
	// Fits returns what about the job does not fit, all of it, with what to do about it. It is asked before anything is
	// opened. log hears of what fits and may be regretted.
	Fits(s Shape, log *slog.Logger) error
}

// CommitsOf returns the second phase of a sink, nil when it has none.
func CommitsOf(sink any) TwoPhase {
	if two, ok := sink.(TwoPhase); ok && two.CommitScope() != NoCommit {
		return two
	}
	return nil
}

// CommitterContext is what an engine gives a new committer.
type CommitterContext struct {
	Job   string
	Lane  int // with scope PerLane; 0 with scope Global
	Meter Meter
	Log   *slog.Logger
}

// Committer makes prepared rows visible.
type Committer interface {
	// Commit makes all of cs visible. It is called after they have been stored, again with the same ones after a
	// restart, and possibly long after the writers that made them are gone. Having been committed before is success. It
	// retries by itself what is worth retrying; an error ends the job attempt, and the restart commits again.
	Commit(ctx context.Context, cs []Committable) error

	// Close is idempotent.
	Close() error
}

// Ticking is a Writer that wants to be called now and then even when no record comes, for example to bound how long
// rows stay in its buffers. Correctness must not depend on it: an engine without timers does not call it.
type Ticking interface {
	// Every is the wished interval, asked once. 0 means never.
	Every() time.Duration
	// Tick is called from the lane's goroutine, between records.
	Tick(ctx context.Context) error
}

// RecordsWriter is a Writer that can take many records at once. An engine may use it where nothing stands between the
// reader and the writer.
type RecordsWriter[T any] interface {
	// WriteRecords writes rs in order and returns how many it has written when it fails.
	WriteRecords(ctx context.Context, rs []Record[T]) (int, error)
}

// Encoding is a Sink whose work can be cut in two, for engines that move data between processes: an Encoder beside the
// records, and writers fed with EncodedBatches elsewhere. The unit that crosses is a batch for one destination and
// shard, 256 KiB to 1 MiB by default, because moving single rows costs far more than encoding them.
type Encoding[T any] interface {
	// NewEncoder makes an encoder. Like a writer it is used from one goroutine. The error of a sink that has none, as it is
	// configured, is errors.ErrUnsupported.
	NewEncoder(ctx context.Context, wc WriterContext) (Encoder[T], error)
}

// Encoder turns records into batches. It holds nothing across bundles: after Flush it is as new.
type Encoder[T any] interface {
	// Encode takes one record and emits those batches that are full. A record that is wrong by itself goes to the
	// failure handler.
	Encode(ctx context.Context, r *Record[T], emit func(EncodedBatch) error) error
	// Flush emits what is left.
	Flush(ctx context.Context, emit func(EncodedBatch) error) error
	Close() error
}

// EncodedBatch is rows of one destination and shard, encoded, on their way to a writer in another process. It carries
// its own kind and version.
type EncodedBatch struct {
	Destination string
	Shard       string
	Data        []byte
}

// EncodedWriter is a Writer that takes what an Encoder made, beside or instead of records.
type EncodedWriter interface {
	// WriteEncoded takes one batch, as Write takes a record. b.Data is the writer's from then on: it may be sent from where it is,
	// so nobody changes it any more.
	WriteEncoded(ctx context.Context, b EncodedBatch) error
}
