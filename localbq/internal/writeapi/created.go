package writeapi

import (
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// open finds the created stream of the connection, and holds it to its state. A stream that is gone ends the call.
func (c *connection) open(t *store.Table) error {
	s := t.Stream(c.stream.id)
	if s == nil {
		return unknownStream(c.stream).ending()
	}
	if c.created == nil && s.Kind() == store.Committed && s.State().End > 0 {
		if length := c.server.windows.staleFor(t, c.server.Clock.Now()); length > 0 {
			c.stale = c.server.Clock.Now().Add(length)
		}
	}
	c.created = s
	if s.State().Finalized {
		return stateFailure(c.stream.full, store.StreamFinalized)
	}
	return nil
}

// checkOffset refuses an offset as early as it can be refused. The store decides, for other connections write meanwhile.
func (c *connection) checkOffset(r *request) error {
	switch {
	case r.offset == nil:
		return nil
	case c.created == nil:
		return invalid(c.stream.full, "The offset must not be set for the default stream.")
	case *r.offset < 0:
		return invalid(c.stream.full, "The offset must not be negative, got %d.", *r.offset)
	}
	state := c.created.State()
	at := *r.offset
	refused := &store.StreamError{End: state.End}
	switch {
	case at < state.End:
		refused.Fault = store.OffsetTaken
	case at > state.End:
		refused.Fault = store.OffsetBeyond
	case c.server.Clock.Now().Before(c.stale) && state.Last < state.End:
		refused.Fault, refused.End = store.OffsetBeyond, state.Last
	default:
		c.stale = time.Time{}
		return nil
	}
	return c.refusedBy(refused, r)
}

// refusedBy is what a client hears of a stream that refuses its append. Only a stream that is gone ends the call.
func (c *connection) refusedBy(e *store.StreamError, r *request) error {
	received := int64(0)
	if r.offset != nil {
		received = *r.offset
	}
	f := streamFailure(c.stream, received, e).(*failure)
	if e.Fault == store.StreamNotFound {
		return f.ending()
	}
	return f
}
