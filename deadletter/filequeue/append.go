package filequeue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// appender appends lines to one file.
type appender struct {
	f     *os.File
	end   int64 // of what it has appended
	made  bool  // since the last flush, so that its name is not safe yet
	dirty bool
}

// ErrRemoved is found in the error of a flush whose file has been deleted: the letters in it are lost, and the attempt ends, so
// that they are offered again.
var ErrRemoved = errors.New("the file was removed while letters were written to it")

// open opens the queue's last file, or the one after it when that is full.
func (q *Queue) open(ctx context.Context, hc stream.HandlerContext) (*appender, error) {
	if err := os.MkdirAll(filepath.Dir(q.path), 0o755); err != nil {
		return nil, err
	}
	there, err := numbers(q.path)
	if err != nil {
		return nil, err
	}
	n := 1
	if len(there) > 0 {
		n = there[len(there)-1]
		info, err := os.Stat(Name(q.path, n))
		if err == nil && q.limit != NoLimit && info.Size() >= q.limit {
			n++
		}
	}
	a, cut, err := openAppender(ctx, Name(q.path, n))
	if err == nil && cut > 0 && hc.Log != nil {
		hc.Log.WarnContext(ctx, "cut off the beginning of a dead letter that a crash left", "file", a.f.Name(), "bytes", cut)
	}
	return a, err
}

func openAppender(ctx context.Context, path string) (a *appender, cut int64, err error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	if cut, err = mend(ctx, f); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return &appender{f: f, made: missing != nil}, cut, nil
}

// mend deals with a line that a crash cut. Whoever has the file for itself cuts it off. Where others are writing, it is ended,
// so that it stays the only damaged one: it may be the line that another one is about to complete.
func mend(ctx context.Context, f *os.File) (cut int64, err error) {
	alone, err := lockAlone(f)
	if err != nil {
		return 0, err
	}
	torn, err := tornAt(f)
	if err == nil && torn >= 0 {
		if alone && ours(f, torn) {
			var info os.FileInfo
			if info, err = f.Stat(); err == nil {
				cut, err = info.Size()-torn, f.Truncate(torn)
			}
		} else {
			_, err = f.Write([]byte{'\n'})
		}
	}
	if err != nil {
		return 0, err
	}
	return cut, lockShared(ctx, f)
}

// tornAt is where the last line begins when it has no end, -1 when it has.
func tornAt(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return -1, err
	}
	block := make([]byte, 64<<10)
	for end := info.Size(); ; {
		start := max(0, end-int64(len(block)))
		part := block[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return -1, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			if at := start + int64(i) + 1; at < info.Size() {
				return at, nil
			}
			return -1, nil
		}
		if start == 0 {
			if info.Size() == 0 {
				return -1, nil
			}
			return 0, nil
		}
		end = start
	}
}

// firstBytes is how every letter begins.
const firstBytes = `{"time":"`

// ours reports whether a line looks like the beginning of a letter. A file that holds something else is not to lose it.
func ours(f *os.File, at int64) bool {
	head := make([]byte, len(firstBytes))
	n, _ := f.ReadAt(head, at)
	return n > 0 && string(head[:n]) == firstBytes[:n]
}

// append appends one line. One write of a file that was opened for appending is not cut by another's.
func (a *appender) append(line []byte) error {
	a.dirty = true
	if _, err := a.f.Write(line); err != nil {
		return err
	}
	// Behind an appending write, the position is where that ended, whoever else appends.
	var err error
	a.end, err = a.f.Seek(0, 1)
	return err
}

// flush has everything on disk, the name of the file too.
func (a *appender) flush() error {
	if !a.dirty {
		return nil
	}
	if err := a.f.Sync(); err != nil {
		return err
	}
	if a.made {
		if err := syncFolder(filepath.Dir(a.f.Name())); err != nil {
			return err
		}
	}
	info, err := a.f.Stat()
	if err != nil {
		return err
	}
	if removed(info) {
		return fmt.Errorf("%s: %w", a.f.Name(), ErrRemoved)
	}
	a.dirty, a.made = false, false
	return nil
}

func (a *appender) Close() error { return a.f.Close() }

// lockPause is how long to wait before asking for a lock again, which others hold only while they mend a file.
const lockPause = 5 * time.Millisecond

func wait(ctx context.Context) error {
	t := time.NewTimer(lockPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
