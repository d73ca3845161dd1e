package writeapi

import (
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/decode"
)

// failure is a refusal on its way to the client: in a response of the call, or as the call's end.
type failure struct {
	code    codes.Code
	storage storagepb.StorageError_StorageErrorCode
	entity  string // the stream or table
	message string
	rows    []decode.RowError
	ends    bool // the call ends with it
}

func (f *failure) Error() string { return f.message }

// ending makes the refusal the end of the call.
func (f *failure) ending() *failure {
	f.ends = true
	return f
}

// invalid is INVALID_ARGUMENT with the entity behind the message, as the service words it.
func invalid(entity, format string, args ...any) *failure {
	return &failure{code: codes.InvalidArgument, entity: entity, message: fmt.Sprintf(format, args...) + " Entity: " + entity}
}

func unimplemented(entity, what string) *failure {
	return &failure{code: codes.Unimplemented, entity: entity, message: "local BigQuery does not implement " + what}
}

// status is the refusal as a status with a StorageError in its details.
func (f *failure) status() *status.Status {
	s, err := status.New(f.code, f.message).WithDetails(&storagepb.StorageError{
		Code: f.storage, Entity: f.entity, ErrorMessage: f.message,
	})
	if err != nil { // only for code OK
		return status.New(codes.Internal, err.Error())
	}
	return s
}

// response is the refusal as an answer within the call.
func (f *failure) response() *storagepb.AppendRowsResponse {
	r := &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_Error{Error: f.proto()}}
	for _, row := range f.rows {
		r.RowErrors = append(r.RowErrors, &storagepb.RowError{
			Index: int64(row.Index), Code: storagepb.RowError_FIELDS_ERROR, Message: row.Message,
		})
	}
	return r
}

func (f *failure) proto() *rpcstatus.Status { return f.status().Proto() }

// permissionDenied is what a caller hears of a table that it may not use or that is not there: the service does not say
// which.
func permissionDenied(permission, table string) *failure {
	return &failure{
		code: codes.PermissionDenied, entity: table,
		message: fmt.Sprintf("Permission '%s' denied on resource '%s' (or it may not exist).", permission, table),
	}
}

const (
	permissionGet    = "TABLES_GET"
	permissionUpdate = "TABLES_UPDATE_DATA"
)

func internal(entity string, err error) *failure {
	return &failure{code: codes.Internal, entity: entity, message: err.Error()}
}
