package writeapi

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// find looks a created stream up by its name; nil is none.
func find(s *store.Store, name string) *store.Stream {
	n, ok := parseStream(name)
	if !ok || n.isDefault() {
		return nil
	}
	t, err := s.Table(n.table)
	if err != nil {
		return nil
	}
	return t.Stream(n.id)
}

// StreamKind is the kind of a created stream by its name; "" is none of the store's.
func StreamKind(s *store.Store, name string) string {
	if stream := find(s, name); stream != nil {
		return stream.Kind().String()
	}
	return ""
}

// End is the number of rows that a created stream holds.
func End(s *store.Store, name string) (int64, error) {
	stream := find(s, name)
	if stream == nil {
		return 0, fmt.Errorf("write stream %q: there is none of this name", name)
	}
	return stream.State().End, nil
}

// Expire ends a created stream's life.
func Expire(s *store.Store, name string) error {
	stream := find(s, name)
	if stream == nil {
		return fmt.Errorf("write stream %q: there is none of this name to expire", name)
	}
	_, err := stream.Table().ExpireStream(stream.ID())
	return err
}

// kinds are the types of created streams.
var kinds = map[storagepb.WriteStream_Type]store.StreamKind{
	storagepb.WriteStream_COMMITTED: store.Committed,
	storagepb.WriteStream_PENDING:   store.Pending,
	storagepb.WriteStream_BUFFERED:  store.Buffered,
}

func typeOf(kind store.StreamKind) storagepb.WriteStream_Type {
	for t, k := range kinds {
		if k == kind {
			return t
		}
	}
	return storagepb.WriteStream_TYPE_UNSPECIFIED
}

// streamPath is the name of a created stream.
func streamPath(t *store.Table, id string) string { return t.Ref().Path() + "/streams/" + id }

// created finds a created stream whose table the caller may use.
func (s *Server) created(ctx context.Context, name streamName, permission string) (*store.Stream, error) {
	t, err := s.table(ctx, name.table, permission)
	if err != nil {
		return nil, err
	}
	stream := t.Stream(name.id)
	if stream == nil {
		return nil, unknownStream(name)
	}
	return stream, nil
}

// streamFailure is the refusal of a created stream, or of its table, for a client.
func streamFailure(name streamName, received int64, err error) error {
	if refusal.Is(err, refusal.NotFound) {
		return permissionDenied(permissionUpdate, name.table.Path())
	}
	refused, ok := errors.AsType[*store.StreamError](err)
	if !ok {
		return internal(name.full, err)
	}
	if f := offsetFailure(name.full, refused, received); f != nil {
		return f
	}
	return stateFailure(name.full, refused.Fault)
}

// stateFailure words the faults that have nothing to do with offsets.
func stateFailure(name string, fault store.StreamFault) *failure {
	var f *failure
	switch fault {
	case store.StreamFinalized:
		f = invalid(name, "Stream has been finalized.")
		f.storage = storagepb.StorageError_STREAM_FINALIZED
	case store.StreamWrongKind:
		f = invalid(name, "The type of the stream does not allow the operation.")
		f.storage = storagepb.StorageError_INVALID_STREAM_TYPE
	case store.StreamNotFinalized:
		f = invalid(name, "Stream has not been finalized.")
		f.storage = storagepb.StorageError_INVALID_STREAM_STATE
	case store.StreamCommitted:
		f = invalid(name, "Stream has already been committed.")
		f.storage = storagepb.StorageError_STREAM_ALREADY_COMMITTED
	default:
		f = notFoundStream(name)
	}
	return f
}

// offsetFailure words the faults of an append's offset; nil is another fault.
func offsetFailure(name string, e *store.StreamError, received int64) *failure {
	switch e.Fault {
	case store.OffsetTaken:
		return &failure{
			code: codes.AlreadyExists, storage: storagepb.StorageError_OFFSET_ALREADY_EXISTS, entity: name,
			message: fmt.Sprintf("The offset is within stream, expected offset %d, received %d", e.End, received),
		}
	case store.OffsetBeyond:
		return &failure{
			code: codes.OutOfRange, storage: storagepb.StorageError_OFFSET_OUT_OF_RANGE, entity: name,
			message: fmt.Sprintf("The offset is beyond stream, expected offset %d, received %d", e.End, received),
		}
	}
	return nil
}

// Shown are the rows of streams that a change made visible, for the audit log.
func Shown(t *store.Table, w store.Written) (out []audit.Shown) {
	for _, s := range w.Shown {
		out = append(out, audit.Shown{Stream: streamPath(t, s.Stream), Offset: s.Offset, Count: s.Count})
	}
	return out
}

// account writes down what a flush or a commit made visible.
func account(ctx context.Context, t *store.Table) store.Account {
	e := watch.Event(ctx)
	if e == nil {
		return nil
	}
	return func(w store.Written) {
		e.Update(func(r *audit.Record) {
			r.Instance, r.Shown, r.Before, r.After = t.Instance(), Shown(t, w), w.Before, w.After
			if w.Count > 0 {
				r.Effect, r.First, r.Count = audit.Visible, w.First, w.Count
			}
		})
	}
}

// noteOf is the gist of the call's record, for the store's log.
func noteOf(ctx context.Context) []byte {
	if e := watch.Event(ctx); e != nil {
		return e.Note()
	}
	return nil
}
