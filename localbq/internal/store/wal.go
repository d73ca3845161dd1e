package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Sync says when what is written to the log is forced to the disk. Whatever it says, what has been acknowledged survives the
// end of the process; Sync is about the end of the machine.
type Sync uint8

const (
	SyncNone     Sync = iota // when the system sees fit
	SyncInterval             // every second
	SyncAlways               // before a write is acknowledged
)

const walMagic = "millwal1"

// wal is the newest segment of the log. Store.committing guards everything but dirty.
type wal struct {
	dir    string
	sync   Sync
	number int // of the segment
	file   *os.File
	size   int64
	dirty  atomic.Bool // written to since the last sync
}

func segmentName(number int) string { return fmt.Sprintf("log-%06d", number) }

// create starts the segment that follows, which says where the one before ends, if there is one.
func (w *wal) create() error {
	f, err := os.OpenFile(filepath.Join(w.dir, segmentName(w.number+1)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	head := []byte(walMagic)
	if w.number > 0 {
		var start int
		head, start = beginFrame(head)
		head = endFrame(appendContinues(head, w.size), start)
	}
	if _, err := f.Write(head); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), syncDir(w.dir)); err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.number, w.size = f, w.number+1, int64(len(head))
	return nil
}

// write appends whole frames, and forces them to the disk if that is asked for. After an error the file may end in a torn
// frame, so nothing may be written any more.
func (w *wal) write(frames []byte) error {
	n, err := w.file.Write(frames)
	w.size += int64(n)
	if err == nil && w.sync == SyncAlways {
		err = w.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("store log %s: %w", w.file.Name(), err)
	}
	w.dirty.Store(true)
	return nil
}

// rotate closes the segment, complete and on disk, and starts the next.
func (w *wal) rotate() error {
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil {
		return err
	}
	w.dirty.Store(false)
	return w.create()
}

// close gives the segment back.
func (w *wal) close() error { return errors.Join(w.file.Sync(), w.file.Close()) }

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
