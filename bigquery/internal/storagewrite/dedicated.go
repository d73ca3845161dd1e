package storagewrite

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/metadata"
)

// The window of a connection to a stream of its own. The service takes the appends of one stream in order, so there is
// nothing to gain from spreading them.
const (
	ownWindowRequests = 1000
	ownWindowBytes    = 100 << 20
)

// ownAppender appends to a stream that has one connection at a time.
type ownAppender interface {
	appender
	// close ends the connection and everything unanswered on it, and returns when it is gone.
	close()
}

// ownHandle is the connection to one created stream. It belongs to a lane.
type ownHandle struct {
	stream string
	conn   *conn
	stop   context.CancelFunc
	leave  func()
}

func newOwnHandle(open openFunc, name string, o connOptions, leave func()) *ownHandle {
	// The life of the connection, not of any call.
	ctx, stop := context.WithCancel(context.Background())
	o.maxInflightRequests, o.maxInflightBytes = ownWindowRequests, ownWindowBytes
	return &ownHandle{name, newConn(ctx, open, o), stop, leave}
}

// append hands the call to the connection, waiting for room. The offset is the call's.
func (h *ownHandle) append(ctx context.Context, c *call) error {
	c.stream = h.stream
	return h.conn.append(ctx, c)
}

func (h *ownHandle) close() {
	h.stop()
	<-h.conn.ended
	h.leave()
}

// streamsPerClient is how many streams one client carries. A client has one HTTP/2 connection, on which Google's front
// ends allow 100 streams; one more would wait until another one ends.
const streamsPerClient = 90

// seat is a client and the number of created streams that are open through it.
type seat struct {
	client *bqstorage.BigQueryWriteClient
	taken  int
}

// takeSeat finds a client with room for one more stream, or makes one. leave gives the place back.
func (s *service) takeSeat(ctx context.Context) (client *bqstorage.BigQueryWriteClient, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var free *seat
	for _, p := range s.seats {
		if p.taken < streamsPerClient {
			free = p
			break
		}
	}
	if free == nil {
		w, err := s.connection.WriteClient(context.WithoutCancel(ctx), largeWrites...)
		if err != nil {
			return nil, nil, err
		}
		free = &seat{client: w}
		s.seats = append(s.seats, free)
	}
	free.taken++
	return free.client, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		free.taken--
	}, nil
}

// ownOpener opens AppendRows streams for one created stream. The header routes them to where that is.
func ownOpener(client *bqstorage.BigQueryWriteClient, name string) openFunc {
	return opener(client, "write_stream="+url.QueryEscape(name))
}

// opener opens AppendRows streams that take frames; route tells the service which of its parts to ask, "" leaves it to
// find out.
func opener(client *bqstorage.BigQueryWriteClient, route string) openFunc {
	return func(ctx context.Context) (appendStream, error) {
		if route != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-goog-request-params", route)
		}
		s, err := client.AppendRows(ctx, once, withFrames)
		if err != nil {
			return nil, err
		}
		// Asking for its context commits gRPC to this stream. It would open another one by itself when the service
		// never saw this one, and then SendMsg may answer that the stream is over while RecvMsg waits on its
		// replacement for ever (https://github.com/grpc/grpc-go/issues/4691).
		_ = s.Context()
		return s, nil
	}
}

// createStream creates a stream of type BUFFERED on a table.
func (s *service) createStream(ctx context.Context, parent string) (string, error) {
	client, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	ws, err := client.CreateWriteStream(ctx, &storagepb.CreateWriteStreamRequest{
		Parent:      parent,
		WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_BUFFERED},
	}, once, gax.WithTimeout(unaryTimeout))
	if err != nil {
		return "", err
	}
	return ws.GetName(), nil
}

// lookUp asks whether there is a stream of that name.
func (s *service) lookUp(ctx context.Context, name string) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	_, err = client.GetWriteStream(ctx, &storagepb.GetWriteStreamRequest{Name: name}, once, gax.WithTimeout(unaryTimeout))
	return err
}

// flushRows makes the rows of a stream visible up to an offset, included, and answers up to where they are.
func (s *service) flushRows(ctx context.Context, name string, offset int64) (int64, error) {
	client, err := s.client(ctx)
	if err != nil {
		return 0, err
	}
	a, err := client.FlushRows(ctx, flushRequest(name, offset), once, gax.WithTimeout(unaryTimeout))
	if err != nil {
		return 0, err
	}
	return a.GetOffset(), nil
}

// openOwn opens a created stream: restored looks it up first, since it may be gone.
func (s *service) openOwn(ctx context.Context, name string, restored bool, o Options, log *slog.Logger) (ownAppender, error) {
	if restored {
		if err := s.lookUp(ctx, name); err != nil {
			return nil, err
		}
	}
	client, leave, err := s.takeSeat(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a client for stream %s: %w", name, err)
	}
	return newOwnHandle(ownOpener(client, name), name, o.conn(log), leave), nil
}
