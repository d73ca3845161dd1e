package filequeue

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Failures is the policy for the sink of a replay: letters that fail again are appended to another queue, with where their
// records came from first and how often they have been replayed.
func (r *Replay) Failures(to *Queue) stream.FailurePolicy { return again{to} }

type again struct{ to *Queue }

func (a again) NewHandler(_ context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	return &againHandler{a.to.newHandler(hc)}, nil
}

type againHandler struct{ *handler }

// Handle reads the letter once more from where the record says it came from.
func (h *againHandler) Handle(ctx context.Context, f *stream.FailedRecord) error {
	e, err := readAt(f.At.Name, f.At.Row)
	if err != nil {
		return fmt.Errorf("dead letters: %s: the letter that failed again cannot be read again: %w", f.At, err)
	}
	l := e.Letter
	l.Time, l.Lane, l.Replays = time.Now().UTC(), h.hc.Lane, l.Replays+1
	l.Connector, l.Destination, l.Reason = f.Connector, f.Destination, f.Reason
	return h.append(ctx, &l)
}

func readAt(path string, at int64) (Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return Entry{}, err
	}
	l := lines{in: bufio.NewReader(f), at: at}
	r, err := l.next()
	if err != nil {
		return Entry{}, err
	}
	e := r.entry()
	return e, e.Err
}
