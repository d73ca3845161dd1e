package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes a lock that the system gives back when the process ends, however it ends. It locks a byte far behind the
// text, which others may then still read.
func lockFile(f *os.File) (held bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
