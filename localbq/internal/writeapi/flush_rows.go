package writeapi

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// FlushRows makes the rows of a BUFFERED stream visible up to an offset, included, all at once. An offset at or below one that
// has been flushed is ALREADY_EXISTS, and a finalized stream takes no flush: what it holds unflushed is lost.
func (s *Server) FlushRows(ctx context.Context, q *storagepb.FlushRowsRequest) (*storagepb.FlushRowsResponse, error) {
	if err := s.flushRows(ctx, q); err != nil {
		return nil, ended(err)
	}
	return &storagepb.FlushRowsResponse{Offset: q.GetOffset().GetValue()}, nil
}

func (s *Server) flushRows(ctx context.Context, q *storagepb.FlushRowsRequest) error {
	name, ok := parseStream(q.GetWriteStream())
	offset := q.GetOffset().GetValue()
	switch {
	case !ok:
		return invalidName(q.GetWriteStream())
	case q.GetOffset() == nil:
		return invalid(name.full, "The offset to flush up to must be set.")
	case offset < 0:
		return invalid(name.full, "The offset to flush up to must not be negative, got %d.", offset)
	}
	if e := watch.Event(ctx); e != nil {
		e.Update(func(r *audit.Record) { r.Offset = &offset })
	}
	t, err := s.table(ctx, name.table, permissionUpdate)
	if err != nil {
		return err
	}
	if s.windows.denies(t, "FlushRows", s.Profile.Windows.CreateFlush, s.Clock.Now()) {
		return permissionDenied(permissionUpdate, name.table.Path())
	}
	if name.isDefault() {
		return stateFailure(name.full, store.StreamWrongKind)
	}
	stream := t.Stream(name.id)
	if stream == nil {
		return unknownStream(name)
	}
	if _, err = stream.Flush(offset, noteOf(ctx), account(ctx, t)); err != nil {
		return flushFailure(name, offset, err)
	}
	return nil
}

// flushFailure words the faults of a flush's offset its own way.
func flushFailure(name streamName, offset int64, err error) error {
	if e, ok := err.(*store.StreamError); ok {
		switch e.Fault {
		case store.OffsetTaken:
			return &failure{
				code: codes.AlreadyExists, storage: storagepb.StorageError_OFFSET_ALREADY_EXISTS, entity: name.full,
				message: fmt.Sprintf("Offset %d has already been flushed Entity: %s", offset, name.full),
			}
		case store.OffsetBeyond:
			return &failure{
				code: codes.OutOfRange, storage: storagepb.StorageError_OFFSET_OUT_OF_RANGE, entity: name.full,
				message: fmt.Sprintf("Offset %d is beyond the end of the stream Entity: %s", offset, name.full),
			}
		}
	}
	return streamFailure(name, offset, err)
}
