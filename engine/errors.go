package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/millrace-dev/millrace/stream"
)

var (
	// ErrStop, as the cause of the context given to Run, asks for a graceful stop rather than an abort.
	ErrStop = errors.New("graceful stop")

	// ErrStopTimeout is found in the error of a run whose graceful stop took longer than Options.StopTimeout.
	ErrStopTimeout = errors.New("the graceful stop took too long")
)

// ConflictError says that the store holds checkpoints of another run of the job that this one did not start from: two
// processes run one job. The run that notices ends, and commits nothing more.
type ConflictError struct {
	Job        string
	Checkpoint int64 // of the other run
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another run of job %q has published checkpoint %d: two processes must not run one job with one store; "+
		"stop one of them, or give it another name or store", e.Job, e.Checkpoint)
}

// PanicError is a panic in a source, Func or sink. It ends the job: it would come back after a restart.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// caught turns a panic of the code it is deferred in into that code's error.
func caught(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// guarded calls f and turns its panic into an error.
func guarded(f func() error) (err error) {
	defer caught(&err)
	return f()
}

// contractError is a source or sink that does not keep to the contracts of stream. Trying again would not help.
type contractError struct{ msg string }

func (e *contractError) Error() string   { return e.msg }
func (e *contractError) Permanent() bool { return true }

func brokenContract(format string, args ...any) error {
	return &contractError{fmt.Sprintf(format, args...)}
}

// permanent reports whether err would come back after a restart.
func permanent(err error) bool {
	var said interface{ Permanent() bool }
	if errors.As(err, &said) && said.Permanent() {
		return true
	}
	if _, ok := errors.AsType[*PanicError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*ConflictError](err); ok {
		return true
	}
	return errors.Is(err, stream.ErrRecordFailed)
}

// located adds the place of the record being processed to an error that has none yet.
func located(err error, at stream.Position) error {
	if _, has := errors.AsType[*stream.PositionError](err); has {
		return err
	}
	return &stream.PositionError{At: locate(at), Err: err}
}

// locate asks the position for its location and survives a locator that panics: it is asked while another failure is
// being reported.
func locate(at stream.Position) (loc stream.Location) {
	defer func() {
		if recover() != nil {
			loc = stream.Location{Name: at.Split, Row: at.Row}
		}
	}()
	return at.Location()
}
