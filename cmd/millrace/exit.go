package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/job"
)

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1 // the work was begun and did not succeed
	exitUsage  = 2 // bad usage or configuration, found before any work
)

// usageError is a mistake in what was typed, or in a file that was named.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// errReported ends a command with exitFailed after it has said itself what went wrong.
var errReported = errors.New("reported")

// exit says what went wrong and gives the code.
func (c *console) exit(err error) int {
	var bad *usageError
	var invalid *job.InvalidError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &invalid):
		c.fail("%v\n", invalid)
		return exitUsage
	case errors.As(err, &bad):
		c.fail("millrace: %v\n", err)
		return exitUsage
	case errors.Is(err, context.Canceled):
		c.fail("millrace: interrupted\n")
		return exitFailed
	}
	c.fail("millrace: %v\n", err)
	return exitFailed
}
