package writeapi

import (
	"context"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
)

// FinalizeWriteStream ends a created stream of any type and answers how many rows it has. It may be repeated, and makes
// nothing visible. The default stream is not found, as in the service.
func (s *Server) FinalizeWriteStream(ctx context.Context, q *storagepb.FinalizeWriteStreamRequest) (*storagepb.FinalizeWriteStreamResponse, error) {
	rows, err := s.finalizeWriteStream(ctx, q)
	if err != nil {
		return nil, ended(err)
	}
	return &storagepb.FinalizeWriteStreamResponse{RowCount: rows}, nil
}

func (s *Server) finalizeWriteStream(ctx context.Context, q *storagepb.FinalizeWriteStreamRequest) (int64, error) {
	name, ok := parseStream(q.GetName())
	switch {
	case !ok:
		return 0, invalidName(q.GetName())
	case name.isDefault():
		return 0, notFoundStream(name.full)
	}
	stream, err := s.created(ctx, name, permissionUpdate)
	if err != nil {
		return 0, err
	}
	rows, err := stream.Finalize()
	if err != nil {
		return 0, streamFailure(name, 0, err)
	}
	return rows, nil
}
