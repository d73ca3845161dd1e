package restcall

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"cloud.google.com/go/auth"
	"google.golang.org/api/googleapi"
)

// Answer is what an answer of the REST service means to the call that got it.
type Answer uint8

const (
	Done     Answer = iota
	Exists          // somebody else created it: as good as done, as a rule
	Absent          // there is no such thing
	Passing         // worth another attempt
	Limited         // too many at once: worth another attempt
	Stale           // it has changed since it was read
	Terminal        // another attempt would answer the same
)

// Classify reads the answer to a call. Only codes and reasons count, never the message's text.
//
// The reasons are those of the BigQuery documentation, "Error messages". rateLimitExceeded comes with status 403 too:
// of 16 concurrent creations of one table 5 got it (measured 2026-08-08).
func Classify(err error) Answer {
	if err == nil {
		return Done
	}
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return classifyAnswer(answer)
	}
	var token *auth.Error
	if errors.As(err, &token) {
		if token.Temporary() {
			return Passing
		}
		return Terminal
	}
	if connectionFailure(err) {
		return Passing
	}
	return Terminal
}

func classifyAnswer(e *googleapi.Error) Answer {
	reason := func(want string) bool {
		return slices.ContainsFunc(e.Errors, func(i googleapi.ErrorItem) bool { return i.Reason == want })
	}
	switch {
	case reason("quotaExceeded"): // a quota of the day, not of the second
		return Terminal
	case reason("rateLimitExceeded"), reason("jobRateLimitExceeded"), e.Code == http.StatusTooManyRequests:
		return Limited
	case reason("conditionNotMet"):
		return Stale
	}
	switch e.Code {
	case http.StatusPreconditionFailed:
		return Stale
	case http.StatusNotFound:
		return Absent
	case http.StatusConflict:
		return Exists
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Passing
	}
	return Terminal
}

// Denied recognises the error of a caller who lacks a permission. It does not say that what was asked for exists.
func Denied(err error) bool {
	var answer *googleapi.Error
	return errors.As(err, &answer) && answer.Code == http.StatusForbidden && classifyAnswer(answer) == Terminal
}

// connectionFailure reports whether a call ended without an answer: refused, reset, cut off, or out of the time that
// one attempt gets. The caller has ruled out that its own context ended.
func connectionFailure(err error) bool {
	var u *url.Error
	var n net.Error
	return errors.As(err, &u) || errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded)
}
