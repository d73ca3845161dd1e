package files

import "fmt"

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
