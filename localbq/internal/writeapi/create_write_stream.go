package writeapi

import (
	"context"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// CreateWriteStream makes a stream of type COMMITTED, PENDING or BUFFERED. The answer has a commit time for COMMITTED only,
// and no location (both recorded at the service).
func (s *Server) CreateWriteStream(ctx context.Context, q *storagepb.CreateWriteStreamRequest) (*storagepb.WriteStream, error) {
	w, err := s.createWriteStream(ctx, q)
	return w, ended(err)
}

func (s *Server) createWriteStream(ctx context.Context, q *storagepb.CreateWriteStreamRequest) (*storagepb.WriteStream, error) {
	ref, ok := store.ParseTablePath(q.GetParent())
	if !ok {
		return nil, invalid(q.GetParent(), "Invalid table name.")
	}
	t, err := s.table(ctx, ref, permissionUpdate)
	if err != nil {
		return nil, err
	}
	if s.windows.denies(t, "CreateWriteStream", s.Profile.Windows.CreateOpenStream, s.Clock.Now()) {
		return nil, permissionDenied(permissionUpdate, ref.Path())
	}
	kind, ok := kinds[q.GetWriteStream().GetType()]
	if !ok {
		return nil, invalid(q.GetParent(), "The type of the write stream is not specified, or is none of COMMITTED, PENDING and BUFFERED.")
	}
	if err := s.quotas.createStream(ref); err != nil {
		return nil, err
	}
	if clock.Sleep(ctx, s.Clock, s.quotas.createStreamWait(ref)) != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	stream, err := t.CreateStream(kind, s.token())
	if err != nil {
		return nil, streamFailure(streamName{full: q.GetParent(), table: ref}, 0, err)
	}
	w := s.describeStream(stream)
	w.TableSchema = s.windows.known(t, s.Store.Version(), s.Clock.Now()).Schema.Storage()
	return w, nil
}

// token makes stream ids hard to guess, and different from instance to instance of one seed.
func (s *Server) token() (out [27]byte) {
	s.windows.mu.Lock()
	defer s.windows.mu.Unlock()
	for i := range out {
		out[i] = byte(s.windows.random.Uint32())
	}
	return out
}

// describeStream is what create and get answer alike.
func (s *Server) describeStream(stream *store.Stream) *storagepb.WriteStream {
	w := &storagepb.WriteStream{
		Name: streamPath(stream.Table(), stream.ID()), Type: typeOf(stream.Kind()), CreateTime: timestamppb.New(stream.Created()),
	}
	if stream.Kind() == store.Committed {
		w.CommitTime = w.CreateTime
	} else if at := stream.State().Committed; !at.IsZero() {
		w.CommitTime = timestamppb.New(at)
	}
	return w
}
