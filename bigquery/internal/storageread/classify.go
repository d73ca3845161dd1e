package storageread

import (
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/internal/gcp"
)

// verdict is what an error of a ReadRows call means.
type verdict uint8

const (
	ended   verdict = iota + 1 // the stream has no more rows
	backOff                    // open again after a wait that grows
	reopen                     // open again at once
	asTold                     // open again after the delay that the service named
	fatal
)

// classify is the table of ReadRows errors, both of opening the call and of receiving. Anything that is not listed is
// fatal. It follows the official Java client, the only one that resumes a stream by itself (google-cloud-java,
// ReadRowsRetryingCallable and ApiResultRetryAlgorithm).
func classify(err error) (verdict, time.Duration) {
	if errors.Is(err, io.EOF) {
		return ended, 0
	}
	s, ok := status.FromError(err)
	if !ok {
		return fatal, 0
	}
	switch s.Code() {
	case codes.Unavailable:
		return backOff, 0
	case codes.Internal:
		if brokenTransport(s.Message()) {
			return reopen, 0
		}
	case codes.ResourceExhausted:
		if d, ok := namedDelay(s); ok {
			return asTold, d
		}
	}
	return fatal, 0
}

// brokenTransport reports whether the words of an INTERNAL error are a connection's. It is the one place that decides by
// text: no typed detail tells a reset connection from a fault of the service, and the Java client does the same. The
// last two are what grpc-go says (internal/transport, http2_client.go; rpc_util.go, recvMsg).
func brokenTransport(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{
		"rst_stream", "rst stream", " rst ", "received unexpected eos ", "connection closed with unknown cause",
		"http/2 error code: internal_error",
		"server closed the stream without sending trailers", "unexpected eof",
	} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

// namedDelay is the delay of a RetryInfo detail (google/rpc/error_details.proto).
func namedDelay(s *status.Status) (time.Duration, bool) {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

func isHTTP(err error, code int) bool {
	e, ok := errors.AsType[*googleapi.Error](err)
	return ok && e.Code == code
}

// permanent reports whether a restart would meet the same error again, so that an engine need not try: rows and schemas
// that cannot be read, and what the service says about the request, the caller or the session rather than about itself.
func permanent(err error) bool {
	if _, ok := errors.AsType[*row.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*partitionError](err); ok {
		return true
	}
	if j, ok := errors.AsType[*QueryJobError](err); ok {
		return permanentReasons[j.Reason]
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code >= 400 && e.Code < 500 && restcall.Classify(err) != restcall.Limited
	}
	for _, known := range []error{ErrNoResultTable, gcp.ErrCredentials, gcp.ErrNoCredentials, gcp.ErrEndpoint} {
		if errors.Is(err, known) {
			return true
		}
	}
	return permanentCodes[codeOf(err)]
}

// permanentCodes are those whose meaning excludes a retry with an unchanged request (google/rpc/code.proto).
var permanentCodes = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.NotFound: true, codes.PermissionDenied: true, codes.Unauthenticated: true,
	codes.FailedPrecondition: true, codes.OutOfRange: true, codes.Unimplemented: true,
}

// permanentReasons are those of failed jobs that the query or the caller must change for (BigQuery documentation, "Error
// messages").
var permanentReasons = map[string]bool{
	"accessDenied": true, "billingNotEnabled": true, "invalid": true, "invalidQuery": true, "notFound": true,
	"notImplemented": true, "responseTooLarge": true,
}
