package writeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// AppendRows answers the requests of one connection in order, one answer each. A refused request does not end the
// connection, but for breaches of the connection's own rules, which end it as the service does.
func (s *Server) AppendRows(call storagepb.BigQueryWrite_AppendRowsServer) error {
	c := s.connect(call.Context())
	defer c.abandon()
	defer c.leave()
	in := s.receive(call)
	idle := make(chan struct{}, 1)
	restarted := s.nextRestart()
	for {
		select {
		case <-restarted:
			return c.closed(call, c.restarted())
		default:
		}
		timer := s.Clock.AfterFunc(s.Profile.Limits.AppendIdle, func() { idle <- struct{}{} })
		select {
		case r := <-in:
			if !timer.Stop() { // it fired just now, and the request was in time all the same
				<-idle
			}
			if r.request == nil {
				if r.err == nil {
					r.err = c.release(call, true)
				}
				return r.err
			}
			err := c.serve(call, r.request)
			r.request.free()
			if err != nil {
				return ended(err)
			}
		case <-idle:
			return c.closed(call, c.idle())
		case <-restarted:
			if timer.Stop() {
				return c.closed(call, c.restarted())
			}
			return c.closed(call, c.idle())
		case <-c.ctx.Done():
			timer.Stop()
			return status.FromContextError(c.ctx.Err()).Err()
		}
	}
}

func (s *Server) connect(ctx context.Context) *connection {
	return &connection{
		server: s, ctx: ctx, opened: s.Store.Version(), remote: watch.Remote(ctx), principal: watch.Principal(ctx),
		destinations: map[store.TableRef]*destination{},
	}
}

// received is a request or, with none, why there are no more: nil after the client's orderly end.
type received struct {
	request *request
	err     error
}

var requests = sync.Pool{New: func() any { return new(request) }}

// receive reads requests ahead of their turn, by one. Its goroutine ends when the call does, at the latest when the handler
// returns.
func (s *Server) receive(call storagepb.BigQueryWrite_AppendRowsServer) <-chan received {
	in := make(chan received)
	s.receivers.Go(func() {
		for {
			r := requests.Get().(*request)
			next := received{request: r}
			if err := call.RecvMsg(r); err != nil {
				next.request = nil
				if !errors.Is(err, io.EOF) {
					next.err = err
				}
			}
			select {
			case in <- next:
			case <-call.Context().Done():
				return
			}
			if next.request == nil {
				return
			}
		}
	})
	return in
}

// answer is the response to one request, or the *failure that ends the call.
func (c *connection) answer(r *request) (*storagepb.AppendRowsResponse, error) {
	if f := c.tooLarge(r); f != nil {
		if f.ends {
			return nil, f
		}
		c.hear(r)
		return f.response(), nil
	}
	answer, err := c.append(r)
	if err == nil {
		return answer, nil
	}
	if f := err.(*failure); !f.ends {
		return f.response(), nil
	}
	return nil, err
}

func (c *connection) tooLarge(r *request) *failure {
	limits := c.server.Profile.Limits
	if r.size <= limits.AppendBytes {
		return nil
	}
	f := &failure{
		code: codes.InvalidArgument, entity: r.stream,
		message: fmt.Sprintf("AppendRows request too large: %d limit %d", r.size, limits.AppendBytes),
		ends:    !limits.AppendTooLargeInBand,
	}
	return f
}

// closed ends a connection that the service does not keep, with the answers that wait first.
func (c *connection) closed(call storagepb.BigQueryWrite_AppendRowsServer, why *failure) error {
	if err := c.release(call, true); err != nil {
		return err
	}
	return ended(why)
}

// restarted ends a connection because its server does (public reports of the message).
func (c *connection) restarted() *failure {
	return &failure{
		code: codes.Aborted, entity: c.stream.full,
		message: "Closing the stream because server is restarted. This is expected and client is advised to reconnect. Entity: " + c.stream.full,
	}
}

// idle ends a connection that has been silent for too long.
func (c *connection) idle() *failure {
	return &failure{
		code: codes.Aborted, entity: c.stream.full,
		message: fmt.Sprintf("Closing the stream because it has been inactive for %d seconds. Entity: %s",
			int64(c.server.Profile.Limits.AppendIdle.Seconds()), c.stream.full),
	}
}
