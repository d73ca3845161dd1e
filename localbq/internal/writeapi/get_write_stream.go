package writeapi

import (
	"context"
	"strings"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
)

// GetWriteStream answers with the dataset's location in lower case, and with the schema in the FULL view only. The default
// stream is of type COMMITTED and has no times (official client suites; the proto comment says otherwise).
func (s *Server) GetWriteStream(ctx context.Context, q *storagepb.GetWriteStreamRequest) (*storagepb.WriteStream, error) {
	w, err := s.getWriteStream(ctx, q)
	return w, ended(err)
}

func (s *Server) getWriteStream(ctx context.Context, q *storagepb.GetWriteStreamRequest) (*storagepb.WriteStream, error) {
	name, ok := parseStream(q.GetName())
	if !ok {
		return nil, invalidName(q.GetName())
	}
	t, err := s.table(ctx, name.table, permissionGet)
	if err != nil {
		return nil, err
	}
	w := &storagepb.WriteStream{Name: name.full, Type: storagepb.WriteStream_COMMITTED}
	if !name.isDefault() {
		stream := t.Stream(name.id)
		if stream == nil {
			return nil, unknownStream(name)
		}
		w = s.describeStream(stream)
	}
	d, err := s.Store.Dataset(name.table.DatasetRef())
	if err != nil {
		return nil, permissionDenied(permissionGet, name.table.Path())
	}
	w.Location = strings.ToLower(d.Location)
	if q.GetView() == storagepb.WriteStreamView_FULL {
		w.TableSchema = s.windows.known(t, s.Store.Version(), s.Clock.Now()).Schema.Storage()
	}
	return w, nil
}

func invalidName(name string) *failure { return invalid(name, "Invalid stream name.") }

// unknownStream tells an id that no stream can have from one that none has any more.
func unknownStream(n streamName) *failure {
	if !wellFormedID(n.id) {
		return invalidName(n.full)
	}
	return notFoundStream(n.full)
}

func notFoundStream(name string) *failure {
	return &failure{
		code: codes.NotFound, storage: storagepb.StorageError_STREAM_NOT_FOUND, entity: name,
		message: "Requested entity was not found. Entity: " + name,
	}
}

// wellFormedID reports whether an id looks like those the service gives out: about 50 URL-safe characters.
func wellFormedID(id string) bool {
	if len(id) < 40 || len(id) > 100 {
		return false
	}
	return strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=:") == ""
}

// ended is a refusal as the error a handler returns.
func ended(err error) error {
	if f, ok := err.(*failure); ok {
		return f.status().Err()
	}
	return err
}
