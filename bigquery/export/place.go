package export

import (
	"context"
	"io"
)

// place is where files go: a folder or a bucket. One goroutine uses it, but for Sync.
type place interface {
	// claim makes sure that nobody else writes the target and answers its notes, nil when there are none.
	claim(ctx context.Context) ([]byte, error)
	// occupied is the name of a file of the target that is there and complete, "" when there is none.
	occupied(ctx context.Context) (string, error)
	// begin makes a file, or goes on with one of which length bytes count.
	begin(ctx context.Context, n int, length int64) (file, error)
	// cuts reports whether begin can go on in the middle of a file.
	cuts() bool
	// keep writes notes that are whole up to size, and forgets what is behind.
	keep(ctx context.Context, size int64, line []byte) error
	// publish gives a complete file its name. It may be repeated.
	publish(ctx context.Context, n int) error
	// forget takes the notes away, and a partial file.
	forget(ctx context.Context, n int) error
	// Close gives the claim back.
	Close() error
}

// file is one that is being written.
type file interface {
	io.Writer
	// sync makes what has been written survive the machine. It may run beside Write.
	sync() error
	// finish ends a complete file; abandon ends one that is not.
	finish() error
	abandon()
}
