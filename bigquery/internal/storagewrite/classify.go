package storagewrite

import (
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is the class of a failure.
type Kind string

const (
	KindTransient      Kind = "transient"       // worth sending the same again
	KindRows           Kind = "row-level"       // the named rows are wrong, the others are not
	KindMissingTable   Kind = "missing-table"   // no table, or no permission: the service tells the two apart for nobody
	KindSchemaMismatch Kind = "schema-mismatch" // rows have columns the table lacks
	KindStaleStream    Kind = "stale-stream"    // the stream takes no more rows
	KindDeadHandle     Kind = "dead-handle"     // the connection went under, for whatever reason
	KindOffset         Kind = "offset"          // offset taken already, or beyond the end
	KindInconsistent   Kind = "inconsistent"    // a stream is not as its writer left it
	KindTerminal       Kind = "terminal"        // sending the same again would fail the same
)

// Unclassified is the code of failures without a status.
const Unclassified = "UNCLASSIFIED"

// verdict is what a failed append, or a failed opening, means. It never changes; nil is success.
type verdict struct {
	kind    Kind
	code    codes.Code
	coded   bool // whether there is a status
	storage storagepb.StorageError_StorageErrorCode
	rows    map[int]string // the message for each row refused
	err     error
}

// missing reports whether the cause may be that there is no table. An absent table answers PERMISSION_DENIED, "or it
// may not exist", and so does one that was created a moment ago (measured 2026-08-06); emulators say NOT_FOUND. With
// NOT_FOUND the stream may be what is missing; creating a table that exists does no harm.
func (v *verdict) missing() bool {
	return v.kind != KindRows && v.coded && (v.code == codes.NotFound || v.code == codes.PermissionDenied)
}

// exists reports whether the offset of an append is taken.
func (v *verdict) exists() bool {
	return v.kind == KindOffset && v.storage == storagepb.StorageError_OFFSET_ALREADY_EXISTS
}

// beyond reports whether the offset of an append is beyond the end of the stream.
func (v *verdict) beyond() bool {
	return v.kind == KindOffset && v.storage == storagepb.StorageError_OFFSET_OUT_OF_RANGE
}

// codeName is the canonical name of the code.
func (v *verdict) codeName() string {
	if !v.coded {
		return Unclassified
	}
	return rpccode.Code_name[int32(v.code)]
}

// refused is the numbers of the rows refused, in order.
func (v *verdict) refused() []int {
	rows := make([]int, 0, len(v.rows))
	for i := range v.rows {
		rows = append(rows, i)
	}
	slices.Sort(rows)
	return rows
}

// transientCodes are worth another attempt with the same rows. UNKNOWN is among them when the service says it; an
// error without any status is not UNKNOWN.
var transientCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.Internal, codes.Canceled,
	codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unknown}

// storageKinds are the details that outrank the status they come with (storage.proto, StorageError). Others are judged
// by their status.
var storageKinds = map[storagepb.StorageError_StorageErrorCode]Kind{
	storagepb.StorageError_STREAM_FINALIZED:             KindStaleStream,
	storagepb.StorageError_STREAM_NOT_FOUND:             KindStaleStream,
	storagepb.StorageError_INVALID_STREAM_STATE:         KindStaleStream,
	storagepb.StorageError_OFFSET_ALREADY_EXISTS:        KindOffset,
	storagepb.StorageError_OFFSET_OUT_OF_RANGE:          KindOffset,
	storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS: KindSchemaMismatch,
}

// classifyError judges the failure of a call that got no answer of its own. The caller has ruled out that its own
// context ended. Only codes count, never the text.
func classifyError(err error) *verdict {
	// Connection errors may hold the status of somebody else's append.
	if errors.Is(err, ErrConnClosed) || errors.Is(err, ErrResponseTimeout) {
		return &verdict{kind: KindDeadHandle, err: err}
	}
	// status.Code would make UNKNOWN, a transient code, of an error without a status.
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return &verdict{kind: KindTerminal, err: err}
	}
	v := &verdict{code: s.Code(), coded: true, storage: storageCode(s), err: err}
	v.kind = kindOf(v.code, v.storage)
	return v
}

// kindOf judges a failure that names no rows.
func kindOf(code codes.Code, detail storagepb.StorageError_StorageErrorCode) Kind {
	if slices.Contains(transientCodes, code) {
		return KindTransient
	}
	if k, ok := storageKinds[detail]; ok {
		return k
	}
	if code == codes.NotFound || code == codes.PermissionDenied {
		return KindMissingTable
	}
	return KindTerminal
}

func storageCode(s *status.Status) storagepb.StorageError_StorageErrorCode {
	for _, d := range s.Details() {
		if e, ok := d.(*storagepb.StorageError); ok {
			return e.GetCode()
		}
	}
	return storagepb.StorageError_STORAGE_ERROR_CODE_UNSPECIFIED
}

// classifyAnswer judges an answer that arrived; nil is success. updates says whether tables are changed for rows that have
// more columns: then nothing is wrong with such rows.
func classifyAnswer(a *storagepb.AppendRowsResponse, updates bool) *verdict {
	if a.GetError() == nil && len(a.GetRowErrors()) == 0 {
		return nil
	}
	v := &verdict{code: codes.InvalidArgument, coded: true}
	if e := a.GetError(); e != nil {
		if e.GetCode() <= int32(codes.OK) || e.GetCode() > int32(codes.Unauthenticated) {
			// No status has this code; gRPC would make no error of it at all.
			return &verdict{kind: KindTerminal, err: fmt.Errorf("answer with the error code %d: %s", e.GetCode(), e.GetMessage())}
		}
		s := status.FromProto(e)
		v.code, v.storage, v.err = s.Code(), storageCode(s), s.Err()
	} else {
		v.err = status.Error(codes.InvalidArgument, "rows were refused")
	}
	v.kind = kindOf(v.code, v.storage)
	// A failed append has written nothing. On an outage, rows that an answer lists may be good ones: they are sent again.
	// What is wrong with the stream outranks what is wrong with rows.
	widen := updates && v.kind == KindSchemaMismatch
	if rows := a.GetRowErrors(); len(rows) > 0 && !widen && v.kind != KindTransient && v.kind != KindStaleStream && v.kind != KindOffset {
		v.kind = KindRows
		v.rows = make(map[int]string, len(rows))
		for _, r := range rows {
			v.rows[int(r.GetIndex())] = r.GetMessage()
		}
	}
	return v
}

// judge is the verdict on a finished call.
func (c *call) judge() *verdict {
	if c.err != nil {
		return classifyError(c.err)
	}
	return classifyAnswer(c.answer, c.updates)
}
