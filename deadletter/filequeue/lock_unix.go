//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filequeue

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// Writers of a file hold a shared lock on it, which the system gives back when their process ends, however it ends. File
// systems without locks are not told apart from files that others write to: nothing is cut there.

// lockAlone reports whether nobody else writes to the file, and keeps it so.
func lockAlone(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil, nil
}

// lockShared says to others that the file is written to.
func lockShared(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// removed reports whether a file that is open has no name any more.
func removed(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
