package readapi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func unimplemented(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, "local BigQuery does not implement "+format, args...)
}

var grpcCodes = map[refusal.Reason]codes.Code{
	refusal.Invalid: codes.InvalidArgument, refusal.InvalidQuery: codes.InvalidArgument, refusal.NotFound: codes.NotFound,
	refusal.AccessDenied: codes.PermissionDenied, refusal.NotImplemented: codes.Unimplemented,
	refusal.QuotaExceeded: codes.ResourceExhausted, refusal.RateLimitExceeded: codes.ResourceExhausted,
}

// statusOf turns a refusal of a room below into a status.
func statusOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	if e := refusal.Of(err); e != nil {
		code, ok := grpcCodes[e.Reason]
		if !ok {
			code = codes.Internal
		}
		return status.Error(code, e.Message)
	}
	if q, ok := errors.AsType[*query.Error](err); ok {
		return invalid("request failed: %s", q.Error())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}
