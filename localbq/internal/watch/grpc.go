package watch

import (
	"context"
	"strings"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	rpccode "google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
)

// Watch is the rules and the log.
type Watch struct {
	Faults *fault.Rules
	Audit  *audit.Log
	// Kind is the kind of a created write stream by its name, "" of one that is not there; nil knows none.
	Kind func(stream string) string
}

// StreamKind is what rules call the kind of a write stream: default, committed, pending, buffered; "" of any other name.
func (w *Watch) StreamKind(stream string) string {
	if strings.HasSuffix(stream, "/_default") {
		return "default"
	}
	if w.Kind == nil {
		return ""
	}
	return w.Kind(stream)
}

type eventKey struct{}

// Event is the record of a unary call that a handler answers; nil outside of one.
func Event(ctx context.Context) *audit.Event {
	e, _ := ctx.Value(eventKey{}).(*audit.Event)
	return e
}

// Anonymous is a caller that says nothing about itself.
const Anonymous = "anonymous@local"

// Principal is who calls: a bearer token "local:<principal>" says so, and no credential is checked.
func Principal(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		if who, ok := strings.CutPrefix(value, "Bearer local:"); ok && who != "" {
			return who
		}
	}
	return Anonymous
}

// Remote is the client's end of the connection.
func Remote(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// CodeName spells a code as the protocol does: INVALID_ARGUMENT.
func CodeName(c codes.Code) string { return rpccode.Code_name[int32(c)] }

// Cut is what a handler returns whose connection has been reset: nobody hears it.
var Cut = status.Error(codes.Unavailable, "connection reset by a fault rule")

const servicePrefix = "/google.cloud.bigquery.storage.v1."

// split makes "write", "AppendRows" of a full method name; no service for one that is not BigQuery's.
func split(full string) (service, method string) {
	rest, ok := strings.CutPrefix(full, servicePrefix)
	if !ok {
		return "", ""
	}
	name, method, _ := strings.Cut(rest, "/")
	return map[string]string{"BigQueryWrite": "write", "BigQueryRead": "read"}[name], method
}

// named are the requests that say which stream or table they are about.
type named interface{ GetName() string }

// describe fills in what rules can match of a call.
func (w *Watch) describe(ctx context.Context, service, method string, request any) fault.Call {
	c := fault.Call{Service: service, Method: method, Principal: Principal(ctx), Remote: Remote(ctx)}
	switch r := request.(type) {
	case *storagepb.CreateReadSessionRequest:
		c.Table = r.GetReadSession().GetTable()
	case *storagepb.CreateWriteStreamRequest:
		c.Table, c.StreamKind = r.GetParent(), createdKinds[r.GetWriteStream().GetType()]
	case *storagepb.BatchCommitWriteStreamsRequest:
		c.Table, c.StreamKind = r.GetParent(), "pending"
	case *storagepb.FlushRowsRequest:
		c.Stream = r.GetWriteStream()
	case *storagepb.ReadRowsRequest:
		c.Stream = r.GetReadStream()
	case named:
		c.Stream = r.GetName()
	}
	if c.Table == "" && strings.Contains(c.Stream, "/tables/") {
		c.Table = strings.Join(strings.SplitN(c.Stream, "/", 7)[:6], "/")
	}
	if service == "write" && c.Stream != "" {
		c.StreamKind = w.StreamKind(c.Stream)
	}
	return c
}

// createdKinds are the kinds of streams that are yet to be created.
var createdKinds = map[storagepb.WriteStream_Type]string{
	storagepb.WriteStream_COMMITTED: "committed", storagepb.WriteStream_PENDING: "pending", storagepb.WriteStream_BUFFERED: "buffered",
}

func (w *Watch) begin(c fault.Call) *audit.Event {
	return w.Audit.Begin(audit.Record{
		RPC: c.Method, Conn: c.Remote, Principal: c.Principal, Table: c.Table, Stream: c.Stream, Object: c.Object,
	})
}

// Unary watches calls of one answer.
func (w *Watch) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	service, method := split(info.FullMethod)
	if service == "" {
		return handle(ctx, request)
	}
	c := w.describe(ctx, service, method, request)
	e := w.begin(c)
	v := w.Faults.At(ctx, fault.Receive, c)
	e.Update(func(r *audit.Record) { r.Rules = append(r.Rules, v.Fired...) })
	if err := instead(v, c); err != nil {
		return nil, finish(e, err, v.Reset, audit.Cut)
	}
	if ctx.Err() != nil { // the caller went away while a rule held the call: it was never made
		return nil, finish(e, status.FromContextError(ctx.Err()).Err(), true, audit.Cut)
	}
	answer, err := handle(context.WithValue(ctx, eventKey{}, e), request)
	v = w.Faults.At(ctx, fault.Applied, c)
	e.Update(func(r *audit.Record) { r.Rules = append(r.Rules, v.Fired...) })
	if replaced := instead(v, c); replaced != nil {
		return nil, finish(e, replaced, v.Reset, audit.Withheld)
	}
	_ = finish(e, err, ctx.Err() != nil, audit.Cut)
	w.Faults.At(ctx, fault.Answered, c)
	return answer, err
}

// instead is the error a verdict puts in place of the ordinary answer.
func instead(v fault.Verdict, c fault.Call) error {
	switch {
	case v.Reset:
		return Cut
	case v.Status != nil:
		entity := c.Stream
		if entity == "" {
			entity = c.Table
		}
		return v.Status.GRPC(entity).Err()
	}
	return nil
}

// finish completes a record with the answer err, which was kept back if kept, and returns it.
func finish(e *audit.Event, err error, kept bool, how audit.Fate) error {
	s := status.Convert(err)
	e.Update(func(r *audit.Record) { r.Code, r.Detail = CodeName(s.Code()), s.Message() })
	if !kept {
		how = audit.Sent
	}
	e.Done(how)
	return err
}

// Stream watches calls of many answers: phases applied and answered come for each of them. AppendRows is not its business.
func (w *Watch) Stream(server any, call grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	service, method := split(info.FullMethod)
	if service == "" || method == "AppendRows" {
		return handle(server, call)
	}
	s := &stream{ServerStream: call, watch: w, call: w.describe(call.Context(), service, method, nil)}
	s.event = w.begin(s.call)
	err := handle(server, s)
	if s.stopped != nil {
		err = s.stopped
	}
	return finish(s.event, err, s.cut, audit.Cut)
}

// stream is one call of many answers. Its handler uses it from one goroutine.
type stream struct {
	grpc.ServerStream
	watch   *Watch
	event   *audit.Event
	call    fault.Call
	stopped error // what a rule ended the call with
	cut     bool
}

// at asks the rules; an error ends the call.
func (s *stream) at(phase fault.Phase) error {
	v := s.watch.Faults.At(s.Context(), phase, s.call)
	if len(v.Fired) > 0 {
		s.event.Update(func(r *audit.Record) { r.Rules = append(r.Rules, v.Fired...) })
	}
	if err := instead(v, s.call); err != nil {
		s.stopped, s.cut = err, v.Reset
	}
	return s.stopped
}

func (s *stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.call = s.watch.describe(s.Context(), s.call.Service, s.call.Method, m)
	s.event.Update(func(r *audit.Record) { r.Table, r.Stream = s.call.Table, s.call.Stream })
	return s.at(fault.Receive)
}

func (s *stream) SendMsg(m any) error {
	if err := s.at(fault.Applied); err != nil {
		return err
	}
	if err := s.ServerStream.SendMsg(m); err != nil {
		s.cut = true
		return err
	}
	if rows, ok := m.(*storagepb.ReadRowsResponse); ok {
		s.event.Update(func(r *audit.Record) { r.Rows += rows.GetRowCount() })
	}
	return s.at(fault.Answered)
}
