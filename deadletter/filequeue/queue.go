package filequeue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/stream"
)

// Options tune a queue. The zero value is the default.
type Options struct {
	// MaxFileBytes is the size from which on another file is begun, 1 GiB by default; NoLimit never begins one. Letters are
	// never cut, so that a file may be one letter longer for each lane.
	MaxFileBytes int64
}

// NoLimit is the MaxFileBytes of a queue that is one file whatever its size.
const NoLimit = -1

// Queue is the failure policy that appends failed records to a queue.
type Queue struct {
	path  string
	limit int64
}

// New makes the policy of the queue at path. Whether its file can be written is found out here, where nothing has been done
// yet. The folder is made for that; the file is made when the first record fails.
func New(path string, o Options) (*Queue, error) {
	if path == "" {
		return nil, errors.New("dead letters: the file name is empty")
	}
	if o.MaxFileBytes < NoLimit {
		return nil, fmt.Errorf("dead letters: MaxFileBytes %d: expected a positive number, 0 for the default, or NoLimit", o.MaxFileBytes)
	}
	if o.MaxFileBytes == 0 {
		o.MaxFileBytes = 1 << 30
	}
	if err := appendable(path); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Queue{path: path, limit: o.MaxFileBytes}, nil
}

// appendable finds out whether a file can be appended to, and leaves no trace of it.
func appendable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return creatable(filepath.Dir(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: what is written to it cannot be known to be safe", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func creatable(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".dead-letters-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// NewHandler makes the handler of one lane.
func (q *Queue) NewHandler(_ context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	return q.newHandler(hc), nil
}

func (q *Queue) newHandler(hc stream.HandlerContext) *handler {
	return &handler{q: q, hc: hc, meters: deadletter.NewMeters(hc, "file")}
}

// handler appends the letters of one lane.
type handler struct {
	q      *Queue
	hc     stream.HandlerContext
	meters *deadletter.Meters
	file   *appender // nil until the first record, and after one that filled a file
	line   []byte
}

// Handle appends the letter of a record.
func (h *handler) Handle(ctx context.Context, f *stream.FailedRecord) error {
	l := deadletter.Of(f, h.hc, time.Now())
	return h.append(ctx, &l)
}

// maxKeptBytes is how much memory a handler keeps for the next letter.
const maxKeptBytes = 1 << 20

func (h *handler) append(ctx context.Context, l *deadletter.Letter) (err error) {
	if h.line, err = l.AppendLine(h.line[:0]); err != nil {
		return fmt.Errorf("dead letter of %s@%d: %w", l.File, l.Position, err)
	}
	defer func() {
		if cap(h.line) > maxKeptBytes {
			h.line = nil
		}
	}()
	if h.file == nil {
		if h.file, err = h.q.open(ctx, h.hc); err != nil {
			return fmt.Errorf("dead letters: %w", err)
		}
	}
	if err := h.file.append(h.line); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	h.meters.Offered()
	if h.q.limit != NoLimit && h.file.end >= h.q.limit {
		return h.leave()
	}
	return nil
}

// leave ends the file that is full.
func (h *handler) leave() error {
	err := h.sync()
	if closing := h.file.Close(); err == nil && closing != nil {
		err = fmt.Errorf("dead letters: %w", closing)
	}
	h.file = nil
	return err
}

func (h *handler) sync() error {
	began, n := time.Now(), h.meters.InFlight()
	err := h.file.flush()
	if err != nil {
		n, err = 0, fmt.Errorf("dead letters: %w", err)
	}
	h.meters.Waited(began, n)
	return err
}

// Flush has everything handled so far on disk when it returns nil.
func (h *handler) Flush(context.Context) error {
	if h.file == nil {
		return nil
	}
	return h.sync()
}

// Close closes the file.
func (h *handler) Close() error {
	h.meters.Closed()
	if h.file == nil {
		return nil
	}
	err := h.file.Close()
	h.file = nil
	return err
}
