package files

import (
	"errors"
	"fmt"
	"io/fs"
)

// lastingError is one that comes back whenever the same is tried again, so that nobody does: each attempt would write the
// records before it once more.
type lastingError struct{ error }

func lasting(err error) error { return lastingError{err} }

func (e lastingError) Unwrap() error { return e.error }

// Permanent is true: see engine.Restart.
func (lastingError) Permanent() bool { return true }

// damaged says what an error of reading a file means. Compressed bytes that could be read, and make no sense, will make no
// more sense the next time.
func (o *openPart) damaged(err error) error {
	if o.Packed == "" || o.raw.err != nil {
		return err
	}
	return lasting(fmt.Errorf("%w: the %s file is damaged or cut short", err, o.Packed))
}

// PathError is a path or pattern that names nothing that could be read. It is found before anything is read, and comes back
// whenever the same is tried again.
type PathError struct {
	Index int    // of the path, as NewSource was given it
	Path  string // that path or pattern
	Err   error  // what is wrong, with the name of the file
}

func (e *PathError) Error() string { return "files source: " + e.Err.Error() }
func (e *PathError) Unwrap() error { return e.Err }

// Permanent is true: see engine.Restart.
func (e *PathError) Permanent() bool { return true }

// noFile recognises what is wrong with the name of a file, as opposed to what may be gone in a minute.
func noFile(err error) bool {
	return errors.Is(err, errNoFile) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// errNoFile marks errors that say why a path is no file that could be read.
var errNoFile = errors.New("no file")

// unfitFile is an error that noFile recognises.
func unfitFile(format string, args ...any) error { return unfitFileError{fmt.Sprintf(format, args...)} }

type unfitFileError struct{ msg string }

func (e unfitFileError) Error() string        { return e.msg }
func (e unfitFileError) Is(target error) bool { return target == errNoFile }
