package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/code"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

// detailed is a status with a storage error in its details.
func detailed(code codes.Code, detail storagepb.StorageError_StorageErrorCode) *status.Status {
	s, err := status.New(code, "detailed").WithDetails(&storagepb.StorageError{Code: detail})
	if err != nil {
		panic(err)
	}
	return s
}

func TestClassifyErrors(t *testing.T) {
	t.Parallel()
	type want struct {
		kind    Kind
		code    string
		missing bool
	}
	for name, c := range map[string]struct {
		err  error
		want want
	}{
		"SW-160_canceled":          {status.Error(codes.Canceled, ""), want{KindTransient, "CANCELLED", false}},
		"unknown with a status":    {status.Error(codes.Unknown, ""), want{KindTransient, "UNKNOWN", false}},
		"unavailable":              {status.Error(codes.Unavailable, ""), want{KindTransient, "UNAVAILABLE", false}},
		"aborted":                  {status.Error(codes.Aborted, ""), want{KindTransient, "ABORTED", false}},
		"internal":                 {status.Error(codes.Internal, ""), want{KindTransient, "INTERNAL", false}},
		"deadline":                 {status.Error(codes.DeadlineExceeded, ""), want{KindTransient, "DEADLINE_EXCEEDED", false}},
		"exhausted":                {status.Error(codes.ResourceExhausted, ""), want{KindTransient, "RESOURCE_EXHAUSTED", false}},
		"wrapped":                  {fmt.Errorf("x: %w", status.Error(codes.Unavailable, "")), want{KindTransient, "UNAVAILABLE", false}},
		"SW-28_no status":          {errors.New("x"), want{KindTerminal, Unclassified, false}},
		"context of somebody else": {context.Canceled, want{KindTerminal, Unclassified, false}},
		"invalid":                  {status.Error(codes.InvalidArgument, ""), want{KindTerminal, "INVALID_ARGUMENT", false}},
		"precondition":             {status.Error(codes.FailedPrecondition, ""), want{KindTerminal, "FAILED_PRECONDITION", false}},
		"unauthenticated":          {status.Error(codes.Unauthenticated, ""), want{KindTerminal, "UNAUTHENTICATED", false}},
		"unimplemented":            {status.Error(codes.Unimplemented, ""), want{KindTerminal, "UNIMPLEMENTED", false}},
		"data loss":                {status.Error(codes.DataLoss, ""), want{KindTerminal, "DATA_LOSS", false}},
		"bare exists":              {status.Error(codes.AlreadyExists, ""), want{KindTerminal, "ALREADY_EXISTS", false}},
		"bare range":               {status.Error(codes.OutOfRange, ""), want{KindTerminal, "OUT_OF_RANGE", false}},
		"denied":                   {status.Error(codes.PermissionDenied, ""), want{KindMissingTable, "PERMISSION_DENIED", true}},
		"not found":                {status.Error(codes.NotFound, ""), want{KindMissingTable, "NOT_FOUND", true}},
		"mismatch": {detailed(codes.InvalidArgument, storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS).Err(),
			want{KindSchemaMismatch, "INVALID_ARGUMENT", false}},
		"finalized": {detailed(codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED).Err(),
			want{KindStaleStream, "INVALID_ARGUMENT", false}},
		"stream state": {detailed(codes.FailedPrecondition, storagepb.StorageError_INVALID_STREAM_STATE).Err(),
			want{KindStaleStream, "FAILED_PRECONDITION", false}},
		"stream not found may be a table not found": {detailed(codes.NotFound, storagepb.StorageError_STREAM_NOT_FOUND).Err(),
			want{KindStaleStream, "NOT_FOUND", true}},
		"offset": {detailed(codes.AlreadyExists, storagepb.StorageError_OFFSET_ALREADY_EXISTS).Err(),
			want{KindOffset, "ALREADY_EXISTS", false}},
		"other details count for nothing": {detailed(codes.InvalidArgument, storagepb.StorageError_TABLE_NOT_FOUND).Err(),
			want{KindTerminal, "INVALID_ARGUMENT", false}},
		"neighbour's status": {closedBy(status.Error(codes.PermissionDenied, "")), want{KindDeadHandle, Unclassified, false}},
		"timeout":            {ErrResponseTimeout, want{KindDeadHandle, Unclassified, false}},
	} {
		t.Run(name, func(t *testing.T) {
			v := classifyError(c.err)
			if got := (want{v.kind, v.codeName(), v.missing()}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !errors.Is(v.err, c.err) {
				t.Errorf("the cause is %v", v.err)
			}
		})
	}
}

var mismatch = detailed(codes.InvalidArgument, storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS)

func answer(s *status.Status, rows ...int64) *storagepb.AppendRowsResponse {
	a := &storagepb.AppendRowsResponse{}
	if s != nil {
		a.Response = &storagepb.AppendRowsResponse_Error{Error: s.Proto()}
	}
	for _, i := range rows {
		a.RowErrors = append(a.RowErrors, &storagepb.RowError{Index: i, Message: fmt.Sprintf("row %d is bad", i)})
	}
	return a
}

func TestClassifyAnswers(t *testing.T) {
	t.Parallel()
	if v := classifyAnswer(&storagepb.AppendRowsResponse{UpdatedSchema: &storagepb.TableSchema{}}, true); v != nil {
		t.Errorf("success is %+v", v)
	}
	odd := func(code int32) *storagepb.AppendRowsResponse {
		return &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_Error{Error: &rpcstatus.Status{Code: code}},
			RowErrors: []*storagepb.RowError{{Index: 0}}}
	}
	for name, c := range map[string]struct {
		answer *storagepb.AppendRowsResponse
		kind   Kind
		code   string
		rows   []int
	}{
		"rows":                                 {answer(status.New(codes.InvalidArgument, ""), 2, 0), KindRows, "INVALID_ARGUMENT", []int{0, 2}},
		"SW-48_rows without an error":          {answer(nil, 1), KindRows, "INVALID_ARGUMENT", []int{1}},
		"SW-45_rows on an outage":              {answer(status.New(codes.Unavailable, ""), 0), KindTransient, "UNAVAILABLE", nil},
		"SW-46_rows without a right":           {answer(status.New(codes.PermissionDenied, ""), 0), KindRows, "PERMISSION_DENIED", []int{0}},
		"rows on a finalized stream":           {answer(detailed(codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED), 0), KindStaleStream, "INVALID_ARGUMENT", nil},
		"rows at a taken offset":               {answer(detailed(codes.AlreadyExists, storagepb.StorageError_OFFSET_ALREADY_EXISTS), 0), KindOffset, "ALREADY_EXISTS", nil},
		"SW-51_mismatch with rows":             {answer(detailed(codes.InvalidArgument, storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS), 0), KindRows, "INVALID_ARGUMENT", []int{0}},
		"SW-51_mismatch with rows, updates on": {answer(detailed(codes.InvalidArgument, storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS), 0), KindSchemaMismatch, "INVALID_ARGUMENT", nil},
		"rows, updates on":                     {answer(nil, 1), KindRows, "INVALID_ARGUMENT", []int{1}},
		"mismatch":                             {answer(detailed(codes.InvalidArgument, storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS)), KindSchemaMismatch, "INVALID_ARGUMENT", nil},
		"denied":                               {answer(status.New(codes.PermissionDenied, "")), KindMissingTable, "PERMISSION_DENIED", nil},
		"SW-52_error with code 0":              {odd(0), KindTerminal, Unclassified, nil},
		"SW-52_error with code 99":             {odd(99), KindTerminal, Unclassified, nil},
		"SW-52_error with a code of -1":        {odd(-1), KindTerminal, Unclassified, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := classifyAnswer(c.answer, strings.HasSuffix(name, "updates on"))
			if v.kind != c.kind || v.codeName() != c.code {
				t.Errorf("got %s %s, want %s %s", v.kind, v.codeName(), c.kind, c.code)
			}
			if got := v.refused(); !cmp.Equal(got, c.rows) && len(got)+len(c.rows) > 0 {
				t.Errorf("rows %v, want %v", got, c.rows)
			}
			if v.err == nil {
				t.Error("no cause")
			}
		})
	}
}

// SW-160: codes are called as google/rpc/code.proto calls them.
func TestCodeNames(t *testing.T) {
	t.Parallel()
	for number, want := range code.Code_name {
		if number == 0 {
			continue // no error
		}
		if got := classifyError(status.Error(codes.Code(number), "")).codeName(); got != want {
			t.Errorf("code %d is called %s, want %s", number, got, want)
		}
	}
}

func TestDetailsAreFoundAmongOthers(t *testing.T) {
	t.Parallel()
	s := detailed(codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED).Proto()
	s.Details = append([]*anypb.Any{{TypeUrl: "type.googleapis.com/unknown.Thing"}}, s.Details...)
	if v := classifyError(status.FromProto(s).Err()); v.kind != KindStaleStream {
		t.Errorf("got %s", v.kind)
	}
}

// What comes back with the same rows is not tried again; what may pass is.
func TestPermanent(t *testing.T) {
	for want, errs := range map[bool][]*AppendError{
		true: {{Verdict: KindSchemaMismatch, Code: "INVALID_ARGUMENT"}, {Verdict: KindTerminal, Code: "INVALID_ARGUMENT"},
			{Verdict: KindTerminal, Code: "UNIMPLEMENTED"}},
		false: {{Verdict: KindSchemaMismatch, Code: "INVALID_ARGUMENT", passing: true}, {Verdict: KindTransient, Code: "UNAVAILABLE"}, {Verdict: KindMissingTable, Code: "PERMISSION_DENIED"},
			{Verdict: KindTerminal, Code: Unclassified}, {Verdict: KindTerminal, Code: "UNAUTHENTICATED"}, {Verdict: KindDeadHandle, Code: Unclassified}},
	} {
		for _, e := range errs {
			if e.Permanent() != want {
				t.Errorf("%s, %s: Permanent is %v", e.Verdict, e.Code, !want)
			}
		}
	}
}
