// Package refusal is how the local BigQuery says no: one error type that the REST face turns into an error body and the
// gRPC face into a status, so that every room below them can refuse in BigQuery's words without knowing either protocol.
package refusal

import (
	"errors"
	"fmt"
)

// Reason is the machine-readable cause, spelt as in errors[0].reason of a REST error body. Clients branch on it.
type Reason string

const (
	Invalid            Reason = "invalid"
	InvalidQuery       Reason = "invalidQuery"
	Required           Reason = "required"
	ResourceInUse      Reason = "resourceInUse"
	AccessDenied       Reason = "accessDenied"
	RateLimitExceeded  Reason = "rateLimitExceeded"
	QuotaExceeded      Reason = "quotaExceeded"
	NotFound           Reason = "notFound"
	Duplicate          Reason = "duplicate"
	Conflict           Reason = "conflict" // Cloud Storage's duplicate
	ConditionNotMet    Reason = "conditionNotMet"
	NotImplemented     Reason = "notImplemented"
	BackendError       Reason = "backendError"
	InternalError      Reason = "internalError"
	ServiceUnavailable Reason = "serviceUnavailable"
)

var codes = map[Reason]int{
	Invalid: 400, InvalidQuery: 400, Required: 400, ResourceInUse: 400,
	AccessDenied: 403, RateLimitExceeded: 403, QuotaExceeded: 403,
	NotFound: 404, Duplicate: 409, Conflict: 409, ConditionNotMet: 412,
	InternalError: 500, NotImplemented: 501, BackendError: 503, ServiceUnavailable: 503,
}

// Error is one refusal. Message is shown to the client as it stands.
type Error struct {
	Reason  Reason
	Message string
	// Location names the part of the request at fault ("query", a parameter, a header); "" where there is none.
	Location string
	// Status is the HTTP status where it is not the one that goes with the reason; 0 elsewhere.
	Status int
}

func (e *Error) Error() string { return e.Message }

// Code is the HTTP status; 500 for a reason that has none.
func (e *Error) Code() int {
	if e.Status != 0 {
		return e.Status
	}
	if code, ok := codes[e.Reason]; ok {
		return code
	}
	return 500
}

// New is a refusal with a formatted message.
func New(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Of finds the refusal in err's chain; nil when err is something else.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}

// Is reports whether err is a refusal with that reason.
func Is(err error, reason Reason) bool {
	e := Of(err)
	return e != nil && e.Reason == reason
}
