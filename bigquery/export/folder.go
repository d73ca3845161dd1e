package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// folder is a place in the file system.
type folder struct {
	target target
	notes  *os.File
	mode   fs.FileMode // of the file that is replaced; 0 is none
}

const partial = ".partial"

func (f *folder) claim(context.Context) ([]byte, error) {
	if info, err := os.Stat(f.target.before); err == nil && !f.target.many {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %q is no file", ErrPlace, f.target.typed)
		}
		f.mode = info.Mode().Perm()
	}
	if f.target.many {
		if err := os.MkdirAll(filepath.Dir(f.target.name(0)), 0o777); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPlace, err)
		}
	}
	var err error
	if f.notes, err = os.OpenFile(f.target.notes(), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if held, err := lockFile(f.notes); err != nil || held {
		err = errors.Join(err, f.notes.Close())
		f.notes = nil
		if held {
			return nil, fmt.Errorf("%q: %w", f.target.typed, ErrBusy)
		}
		return nil, err
	}
	// Whoever finished meanwhile took the notes away with their name.
	if now, err := os.Stat(f.target.notes()); err != nil || !sameFile(f.notes, now) {
		return nil, errors.Join(fmt.Errorf("%q: %w", f.target.typed, ErrBusy), f.Close())
	}
	return io.ReadAll(f.notes)
}

func sameFile(open *os.File, named fs.FileInfo) bool {
	info, err := open.Stat()
	return err == nil && os.SameFile(info, named)
}

func (f *folder) occupied(context.Context) (string, error) {
	if !f.target.many {
		if _, err := os.Stat(f.target.before); err == nil {
			return f.target.typed, nil
		}
		return "", nil
	}
	dir := filepath.Dir(f.target.name(0))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if f.target.numbered(e.Name()) {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", nil
}

func (f *folder) cuts() bool { return true }

func (f *folder) begin(_ context.Context, n int, length int64) (file, error) {
	path := f.target.name(n) + partial
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	info, err := out.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%w: %q is no file", ErrPlace, path)
	case info.Size() < length:
		err = fmt.Errorf("%w: %s has %d bytes and had %d: somebody else has changed it; remove %s to begin again", ErrNotes, path, info.Size(), length, f.target.notes())
	default:
		err = out.Truncate(length)
	}
	if err == nil && f.mode != 0 {
		err = out.Chmod(f.mode)
	}
	if err == nil {
		_, err = out.Seek(length, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &folderFile{out}, nil
}

type folderFile struct{ *os.File }

func (f *folderFile) writeParts(parts [][]byte) (int64, error) { return writev(f.File, parts) }

func (f *folderFile) sync() error { return f.Sync() }

func (f *folderFile) finish() error {
	return errors.Join(f.Sync(), f.Close())
}

func (f *folderFile) abandon() { _ = f.Close() }

func (f *folder) keep(_ context.Context, size int64, line []byte) error {
	if info, err := f.notes.Stat(); err != nil {
		return err
	} else if info.Size() > size {
		if err := f.notes.Truncate(size); err != nil {
			return err
		}
	}
	if _, err := f.notes.WriteAt(line, size); err != nil {
		return err
	}
	if size > 0 {
		return f.notes.Sync()
	}
	return errors.Join(f.notes.Sync(), syncFolder(filepath.Dir(f.target.notes())))
}

func (f *folder) publish(_ context.Context, n int) error {
	name := f.target.name(n)
	err := os.Rename(name+partial, name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Stat(name); there == nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}

func (f *folder) forget(_ context.Context, n int) error {
	err := os.Remove(f.target.name(n) + partial)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(f.target.notes()))
}

func (f *folder) Close() error {
	if f.notes == nil {
		return nil
	}
	notes := f.notes
	f.notes = nil
	// Notes that nothing was written to say nothing.
	if info, err := notes.Stat(); err == nil && info.Size() == 0 {
		if now, err := os.Stat(f.target.notes()); err == nil && sameFile(notes, now) {
			_ = os.Remove(f.target.notes())
		}
	}
	return notes.Close()
}
