package storageread

import (
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// resume decides what becomes of the ReadRows calls of one stream: at which row the next one opens, how long to wait
// before it, and when to give up. It knows neither a network nor a clock.
//
// Attempts are counted while they deliver nothing. A row makes all of them forgotten, so a stream that is slow and often
// broken is read to its end however long that takes; one that is stuck fails after maxAttempts calls.
type resume struct {
	maxAttempts int
	random      func() float64 // [0, 1)

	received    int64 // rows of the stream received; where the next call opens
	barren      int   // attempts in a row that ended without a row
	unavailable int   // UNAVAILABLE errors since the last row
	progressed  bool  // the current attempt has delivered a row
}

const (
	firstWait  = 100 * time.Millisecond
	waitGrowth = 1.3
	longWait   = 60 * time.Second
	shortWait  = time.Millisecond
)

// opening begins an attempt and says at which row.
func (r *resume) opening() (offset int64) {
	r.progressed = false
	return r.received
}

// got takes note of a block. One without rows is no progress.
func (r *resume) got(rows int64) {
	if rows > 0 {
		r.received += rows
		r.barren, r.unavailable, r.progressed = 0, 0, true
	}
}

// gaveUp is the error of an attempt that was the last.
type gaveUp struct {
	code     codes.Code
	attempts int
	err      error
}

func (g *gaveUp) Error() string { return g.err.Error() }
func (g *gaveUp) Unwrap() error { return g.err }

// failed takes the error that ended an attempt. It answers how long to wait before the next, or io.EOF at the end of the
// stream, or a *gaveUp.
func (r *resume) failed(err error) (wait time.Duration, end error) {
	v, told := classify(err)
	if v == ended {
		return 0, io.EOF
	}
	if !r.progressed {
		r.barren++
	}
	attempts := max(r.barren, 1)
	if v == fatal {
		return 0, &gaveUp{codeOf(err), attempts, err}
	}
	if r.barren >= r.maxAttempts {
		return 0, &gaveUp{codeOf(err), attempts, fmt.Errorf("%w: %w", ErrRetriesExhausted, err)}
	}
	switch v {
	case backOff:
		r.unavailable++
		return r.backOff(), nil
	case asTold:
		return told, nil
	}
	return shortWait, nil
}

// backOff draws from (0, nominal], so that readers that failed together do not come back together.
func (r *resume) backOff() time.Duration {
	nominal := min(float64(firstWait)*math.Pow(waitGrowth, float64(r.unavailable-1)), float64(longWait))
	return time.Duration(math.Ceil(nominal * (1 - r.random())))
}

// codeOf is the status of an error that has one, and OK for others, which status.Code calls Unknown.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.OK
}
