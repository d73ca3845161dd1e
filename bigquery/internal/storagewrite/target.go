package storagewrite

import (
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
)

// Target is one destination as one writer sees it.
type Target struct {
	outcome.Place

	handle   appender // nil until the first row, and while a repair opens the next
	schema   *schema  // nil until the first row
	steady   bool     // the schema never changes
	overhead int      // the most that a request takes besides its rows
	longer   int      // how much longer its stream's name may be than the default stream's

	own ownStream // with streams of the lane's own

	pending    *batch // nil or filling
	start      int    // where the row begun last starts in it
	guess      int    // bytes that its length will take, by the one before
	need       int    // bytes that the next row may take, framing included, by the one before
	usualBytes int    // size of the batches before, the largest of late

	run      run     // rows of an Arrow batch that wait
	columns  *schema // of the Arrow batches sent last
	rowBytes int     // of a row of them, about

	news atomic.Bool // set by connections: the table has another schema than the handle was opened under

	touched    bool // written to since the last flush
	lastAccess time.Time
}

// idle reports whether nothing was written for longer than limit. The time of an access is known to the flush after it:
// that is when it matters, and reading the clock for every record would cost more than the rest of its bookkeeping.
func (t *Target) idle(now time.Time, limit time.Duration) bool {
	if t.touched {
		t.touched, t.lastAccess = false, now
	}
	return (t.pending == nil || t.pending.count == 0) && now.Sub(t.lastAccess) > limit
}

// setSchema changes what the rows to come are.
func (t *Target) setSchema(s *schema) {
	t.schema, t.steady = s, s.fingerprint == 0 && !s.foreign
	t.overhead = header{stream: streamName(t.Dst), schema: s, traceID: traceID()}.maxBytes() + t.longer
}

// ownNameBytes is how much longer the name of a created stream may be than that of the default stream. Those seen have 36 to
// 64 characters where that has "_default".
const ownNameBytes = 256

// sized remembers how large batches get. A short one, sent by a flush, says little about the next.
func (t *Target) sized(b *batch) { t.usualBytes = max(b.size(), t.usualBytes/2) }
