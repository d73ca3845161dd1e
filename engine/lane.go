package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/stream"
)

// lane is what the coordinator sees of a lane: an inbox for orders, and how it is doing. The lane's goroutine is owned by
// the attempt and ends after an order to leave, an error, or the attempt's context; see worker.run.
//
// Orders are taken in the order they were given, between two rows. That is what keeps a split in exactly one place: a
// lane that was given a split and then a barrier reports the split.
type lane struct {
	index int
	inbox chan order

	// attention is up when there may be something in the inbox: one load between two rows instead of a channel.
	attention atomic.Bool

	mu   sync.Mutex // guards wake and live
	wake context.CancelFunc
	live laneLive
}

// laneLive is how a lane was doing after its last batch.
type laneLive struct {
	doing      Doing
	split      string
	position   int64
	tally      stream.Tally
	inputBytes int64
}

// order is something the coordinator, or the lane's timer, wants done.
type order struct {
	what       orderKind
	split      stream.Split // assign
	checkpoint int64        // barrier, acknowledge
	final      bool         // barrier: the last one, after which nothing is written
}

type orderKind uint8

const (
	assign      orderKind = iota // read this split
	endInput                     // there will be no other split for this lane
	barrier                      // report for a checkpoint
	acknowledge                  // a checkpoint has been stored and committed
	tick                         // the writer's timer fired
	leave                        // end; follows a final barrier only
)

// inboxSize is more than can be waiting: a lane that does nothing for a while has been given at most one split or end
// of input, one barrier, one tick, and acknowledgements of two commits, the one that ran and the one that took all
// checkpoints stored meanwhile; then a leave.
const inboxSize = 8

func newLane(index int) *lane { return &lane{index: index, inbox: make(chan order, inboxSize)} }

// post gives the lane an order, and wakes it when it is waiting for rows. It never blocks.
func (l *lane) post(o order) {
	select {
	case l.inbox <- o:
	default:
		panic("engine: the inbox of a lane is full")
	}
	l.attention.Store(true)
	l.mu.Lock()
	wake := l.wake
	l.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// listen returns a context for fetches that post ends. It must be called before the inbox is emptied: an order posted
// in between has ended the new context, and one posted before is still in the inbox.
func (l *lane) listen(ctx, last context.Context) context.Context {
	if last != nil && last.Err() == nil {
		return last
	}
	fetch, wake := context.WithCancel(ctx)
	l.mu.Lock()
	l.wake = wake
	l.mu.Unlock()
	return fetch
}

// hangUp frees the context of fetches.
func (l *lane) hangUp() {
	l.mu.Lock()
	wake := l.wake
	l.wake = nil
	l.mu.Unlock()
	if wake != nil {
		wake()
	}
}

func (l *lane) show(f func(*laneLive)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.live)
}

func (l *lane) seen() laneLive {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// report is what a lane has to say for a checkpoint.
type report struct {
	lane         int
	split        *stream.Split // nil when none is open
	committables []stream.Committable
	states       []stream.State
	tally        stream.Tally // since the lane started
	inputBytes   int64
}
