package fault

import (
	"strings"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

func (s *Status) code() (codes.Code, bool) {
	var c codes.Code
	err := c.UnmarshalJSON([]byte(`"` + strings.ToUpper(s.Code) + `"`))
	return c, err == nil && c != codes.OK
}

func (s *Status) known() bool {
	_, ok := s.code()
	_, storage := storagepb.StorageError_StorageErrorCode_value[s.StorageError]
	return ok && (storage || s.StorageError == "")
}

// GRPC is the status with its details; entity is the stream or table of the call.
func (s *Status) GRPC(entity string) *status.Status {
	code, _ := s.code()
	var details []protoadapt.MessageV1
	if s.StorageError != "" {
		details = append(details, &storagepb.StorageError{
			Code:   storagepb.StorageError_StorageErrorCode(storagepb.StorageError_StorageErrorCode_value[s.StorageError]),
			Entity: entity, ErrorMessage: s.Message,
		})
	}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(s.RetryDelay))})
	}
	out, err := status.New(code, s.Message).WithDetails(details...)
	if err != nil { // check has refused code OK
		return status.New(codes.Internal, err.Error())
	}
	return out
}
