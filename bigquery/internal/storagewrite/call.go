package storagewrite

import (
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/stream"
)

// call is one append on its way through the connection layer, and the future of its answer.
type call struct {
	batch  *batch
	size   int // bytes of the batch, framing included: what windows and limits count
	stream string
	offset int64 // noOffset on default streams

	updates bool         // tables are changed for rows that have more columns
	news    *atomic.Bool // raised when the answer tells that the table has another schema now, nil where nobody cares

	resends   stream.Counter // counts what the connection layer sends again
	attention *atomic.Bool   // raised when the call has failed, or has news
	trouble   *atomic.Bool   // raised when the call has failed, and shared with the appends behind it; nil on default streams
	load      *atomic.Int64  // bytes of the lane's unanswered appends

	// done is closed when answer and err are final. A nil err with an answer that holds no error is success.
	done   chan struct{}
	answer *storagepb.AppendRowsResponse
	err    error

	since time.Time // when the lane handed it over

	// The rest belongs to the connection, guarded by its mutex.
	seq    int64 // order of acceptance
	sentAt time.Time
	due    time.Time // when a paused call is to be sent again
	resent int       // in-band errors answered by sending again
	sends  int       // how often it was written to a stream; the writer may read it once the call is done
}

// finish makes the result known. Called once, from whichever goroutine learned of it; it counts nothing, classifies
// nothing and calls no one. The rows of a success are not needed again, unless an append before it has failed: then they may
// have to go to another stream with that one's.
func (c *call) finish(answer *storagepb.AppendRowsResponse, err error) {
	c.answer, c.err = answer, err
	c.load.Add(-int64(c.size))
	ok := err == nil && answer.GetError() == nil && len(answer.GetRowErrors()) == 0
	switch {
	case ok && (c.trouble == nil || !c.trouble.Load()):
		c.batch.rows.free()
	case !ok && c.trouble != nil:
		c.trouble.Store(true)
	}
	news := c.news != nil && answer.GetUpdatedSchema() != nil
	if news {
		c.news.Store(true)
	}
	close(c.done)
	if !ok || news {
		// Only now: a writer that lowers the flag before it looks for finished calls would otherwise miss this one.
		c.attention.Store(true)
	}
}

// finished reports whether the result is known.
func (c *call) finished() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
