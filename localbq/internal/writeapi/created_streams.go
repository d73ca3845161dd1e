package writeapi

import (
	"context"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// CreateWriteStream refuses as the service does, and answers UNIMPLEMENTED to what the service would do.
func (s *Server) CreateWriteStream(ctx context.Context, q *storagepb.CreateWriteStreamRequest) (*storagepb.WriteStream, error) {
	ref, ok := store.ParseTablePath(q.GetParent())
	if !ok {
		return nil, ended(invalid(q.GetParent(), "Invalid table name."))
	}
	if _, err := s.table(ctx, ref, permissionUpdate); err != nil {
		return nil, ended(err)
	}
	kind := q.GetWriteStream().GetType()
	if kind == storagepb.WriteStream_TYPE_UNSPECIFIED {
		return nil, ended(invalid(q.GetParent(), "The type of the write stream is not specified."))
	}
	return nil, ended(unimplemented(q.GetParent(), "CreateWriteStream with type "+kind.String()))
}

// FlushRows is for created streams.
func (s *Server) FlushRows(_ context.Context, q *storagepb.FlushRowsRequest) (*storagepb.FlushRowsResponse, error) {
	return nil, ended(unimplemented(q.GetWriteStream(), "FlushRows"))
}

// FinalizeWriteStream is for created streams; the default stream is not found, as in the service.
func (s *Server) FinalizeWriteStream(_ context.Context, q *storagepb.FinalizeWriteStreamRequest) (*storagepb.FinalizeWriteStreamResponse, error) {
	if name, ok := parseStream(q.GetName()); ok && name.isDefault() {
		return nil, ended(notFoundStream(name.full))
	}
	return nil, ended(unimplemented(q.GetName(), "FinalizeWriteStream"))
}

// BatchCommitWriteStreams is for created streams.
func (s *Server) BatchCommitWriteStreams(_ context.Context, q *storagepb.BatchCommitWriteStreamsRequest) (*storagepb.BatchCommitWriteStreamsResponse, error) {
	return nil, ended(unimplemented(q.GetParent(), "BatchCommitWriteStreams"))
}
