package readapi

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/projection"
)

// cursor walks over the rows of a stream.
type cursor struct {
	projection *projection.Projection
	runs       []run
	at         int64 // the row of runs[0]
	done       int64 // rows of the stream before the cursor
}

// seek is a cursor at a row of a resolved stream.
func (st *stream) seek(offset int64) (*cursor, error) {
	if offset > st.rows {
		return nil, status.Errorf(codes.FailedPrecondition, "offset %d has not been allocated yet", offset)
	}
	c := &cursor{projection: st.session.projection, runs: st.runs, done: offset}
	for len(c.runs) > 0 && offset >= c.runs[0].rows {
		offset -= c.runs[0].rows
		c.runs = c.runs[1:]
	}
	c.at = offset
	return c, nil
}

// here is the run that the cursor is in, and where; false at the end of the stream.
func (c *cursor) here() (run, int64, bool) {
	if len(c.runs) == 0 {
		return run{}, 0, false
	}
	return c.runs[0], c.at, true
}

// moveTo goes on to a row of the current run, or behind it.
func (c *cursor) moveTo(at int64) {
	c.done += at - c.at
	c.at = at
	if at == c.runs[0].rows {
		c.runs, c.at = c.runs[1:], 0
	}
}

// index is where row i of the run is in its batch.
func (r run) index(i int64) int {
	if r.picked != nil {
		return int(r.picked[i])
	}
	return int(i)
}
