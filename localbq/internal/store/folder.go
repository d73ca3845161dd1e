package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// lockFolder makes a folder if it is not there and keeps other processes, and other stores of this one, out of it until the
// file it returns is closed.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	held, err := lockFile(f)
	if held {
		err = fmt.Errorf("folder %s is in use by another local BigQuery (process %s): close that one, or use another folder", dir, holder(f))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintf("%d\n", os.Getpid())))
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// holder is the process id that the holder of the lock has left in its file.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return "unknown"
}

// writeFile replaces a file as a whole and for good: either the old one or the new one is there, whatever happens.
func writeFile(path string, content []byte) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
