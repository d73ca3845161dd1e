package writeapi

import (
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// serve takes one request past the fault rules, carries it out, answers it, and writes it down. An error ends the call.
func (c *connection) serve(call storagepb.BigQueryWrite_AppendRowsServer, r *request) error {
	about := c.describe(r)
	c.event = c.begin(r, about)
	if verdict := c.at(fault.Receive, about); verdict.Reset || c.ctx.Err() != nil {
		c.event.Done(audit.Cut)
		return watch.Cut
	} else if verdict.Status != nil {
		c.hear(r)
		return c.send(call, about, injected(verdict.Status, about.Stream), 0)
	}
	answer := c.outcome(r)
	verdict := c.at(fault.Applied, about)
	if verdict.Reset {
		c.note(answer)
		c.event.Done(audit.Withheld)
		return watch.Cut
	} else if verdict.Status != nil {
		answer = injected(verdict.Status, about.Stream)
	}
	return c.send(call, about, answer, verdict.DelayAck)
}

// outcome is an answer: a response, or the end of the call.
type outcome struct {
	response *storagepb.AppendRowsResponse
	end      *status.Status
}

func (c *connection) describe(r *request) fault.Call {
	name := r.stream
	if name == "" {
		name = c.stream.full
	}
	about := fault.Call{
		Service: "write", Method: "AppendRows", Stream: name, Principal: c.principal, TraceID: c.traceID,
		Rows: r.count(), Remote: c.remote,
	}
	if c.requests == 0 {
		about.TraceID = r.traceID
	}
	if parsed, ok := parseStream(name); ok {
		about.Table = parsed.table.Path()
		about.StreamKind = c.server.Watch.StreamKind(name)
	}
	return about
}

func (c *connection) begin(r *request, about fault.Call) *audit.Event {
	return c.server.Watch.Audit.Begin(audit.Record{
		RPC: about.Method, Conn: c.remote, Principal: c.principal, TraceID: about.TraceID,
		Request: c.requestDigest(r), Table: about.Table, Stream: about.Stream,
		Offset: r.offset, Rows: about.Rows,
	})
}

func (c *connection) requestDigest(r *request) audit.Digest {
	if !c.server.Watch.Audit.Digests() {
		return 0
	}
	return audit.Digest(xxhash.Sum64(r.buffer.ReadOnlyData()))
}

func (c *connection) at(phase fault.Phase, about fault.Call) fault.Verdict {
	v := c.server.Watch.Faults.At(c.ctx, phase, about)
	if len(v.Fired) > 0 {
		c.event.Update(func(r *audit.Record) { r.Rules = append(r.Rules, v.Fired...) })
	}
	return v
}

// outcome carries the request out.
func (c *connection) outcome(r *request) outcome {
	answer, err := c.answer(r)
	if err != nil {
		return outcome{end: err.(*failure).status()}
	}
	return outcome{response: answer}
}

// injected is the answer of a fault rule.
func injected(s *fault.Status, stream string) outcome {
	answer := s.GRPC(stream)
	if s.Ends {
		return outcome{end: answer}
	}
	response := &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_Error{Error: answer.Proto()}}
	for _, row := range s.RowErrors {
		response.RowErrors = append(response.RowErrors, &storagepb.RowError{
			Index: row.Index, Code: storagepb.RowError_FIELDS_ERROR, Message: row.Message,
		})
	}
	return outcome{response: response}
}

// note writes down what the answer says.
func (c *connection) note(o outcome) {
	s := o.end
	if s == nil {
		s = status.FromProto(o.response.GetError())
	}
	c.event.Update(func(r *audit.Record) {
		r.Code = watch.CodeName(s.Code())
		if s.Code() != codes.OK {
			r.Detail = s.Message()
		}
	})
}

// send hands an answer over, unless it is to wait for some more. The error, if any, ends the call.
func (c *connection) send(call storagepb.BigQueryWrite_AppendRowsServer, about fault.Call, o outcome, wait int) error {
	c.note(o)
	if o.end != nil {
		event := c.event
		if err := c.release(call, true); err != nil {
			event.Done(audit.Cut)
			return err
		}
		event.Done(audit.Sent)
		return o.end.Err()
	}
	o.response.WriteStream = about.Stream
	for i := range c.held {
		c.held[i].wait--
	}
	c.held = append(c.held, heldAnswer{about, o, c.event, wait})
	return c.release(call, false)
}

// heldAnswer is an answer that has not left yet.
type heldAnswer struct {
	about   fault.Call
	outcome outcome
	event   *audit.Event
	wait    int // for as many further answers
}

// release sends what waits for no other answer any more, or everything, in order.
func (c *connection) release(call storagepb.BigQueryWrite_AppendRowsServer, all bool) error {
	for len(c.held) > 0 && (all || c.held[0].wait <= 0) {
		h := c.held[0]
		c.held = c.held[1:]
		c.event = h.event
		if err := c.deliver(call, h); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) deliver(call storagepb.BigQueryWrite_AppendRowsServer, h heldAnswer) error {
	c.event.Sending()
	if err := call.Send(h.outcome.response); err != nil {
		c.event.Done(audit.Cut)
		return err
	}
	verdict := c.at(fault.Answered, h.about)
	c.event.Done(audit.Sent)
	if verdict.Reset {
		return watch.Cut
	}
	return nil
}

// abandon writes down that answers which still wait will never leave.
func (c *connection) abandon() {
	for _, h := range c.held {
		h.event.Done(audit.Withheld)
	}
	c.held = nil
}
