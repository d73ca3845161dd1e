package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// output gives write a place to write to: standard output, a device or a pipe as it is, or a file, which appears when it is
// complete.
func (a *app) output(name string, write func(io.Writer) error) error {
	if name == "-" {
		return buffered(a.stdout, write)
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return usagef("-o %s is a folder: name a file in it", name)
	case err == nil && !info.Mode().IsRegular():
		// Another file in its place would be the end of a device.
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return usagef("-o %s: %w", name, err)
		}
		return errors.Join(buffered(f, write), f.Close())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("-o %s: %w", name, err)
	}
	if err := replace(name, info, write); err != nil {
		if _, ok := errors.AsType[*placeError](err); ok {
			return usagef("-o %s: %w", name, err)
		}
		return err
	}
	return nil
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<20)
	err := write(b)
	if err == nil {
		return b.Flush()
	}
	_ = b.Flush() // what there is, beside the error
	return err
}

// placeError is a file that cannot be made where it is to be, found before there is anything to put into it.
type placeError struct{ error }

func (e *placeError) Unwrap() error { return e.error }

// replace writes a file beside the one of that name and puts it in its place, with the permissions of the one that was
// there, if any; was is that one. A link stays, and leads to the new file.
func replace(name string, was fs.FileInfo, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), ".millrace-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &placeError{err}
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if was != nil {
		err = f.Chmod(was.Mode().Perm())
	}
	if err == nil {
		err = buffered(f, write)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
