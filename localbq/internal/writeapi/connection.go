package writeapi

import (
	"bytes"
	"context"
	"errors"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/decode"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// connection is one AppendRows call: what it has said so far and what of it is still in force. One goroutine uses it.
type connection struct {
	server            *Server
	ctx               context.Context
	opened            int64 // the store's version then
	remote, principal string
	event             *audit.Event // of the request at hand
	held              []heldAnswer // in the order they must leave
	entered           *place       // whose quota of calls the connection counts for

	requests int
	arrow    bool // the first request had Arrow rows
	traceID  string
	stream   streamName // of the last request that named one
	// missing stays in force until a request changes it; columns are for one request (storage.proto).
	missing      storagepb.AppendRowsRequest_MissingValueInterpretation
	destinations map[store.TableRef]*destination
	created      *store.Stream // that the connection writes to; nil before the first request, and for default streams
	stale        time.Time     // until when it holds a stale count of the stream's rows
}

// destination is one table that the connection writes to.
type destination struct {
	table     *store.Table
	schema    *writerSchema // in force; nil until one could be read
	plan      *decode.Plan  // nil until it is needed, and whenever schema or info have changed
	info      *store.Info   // the definition that the plan is for
	announced int           // number of the last definition that the connection has been told of
	haunted   bool          // the table is gone and was made again, and the connection does not know
	vanishes  time.Time     // until when a haunted table acknowledges
}

// append carries out one request. It returns the answer without its common parts, or a *failure.
func (c *connection) append(r *request) (*storagepb.AppendRowsResponse, error) {
	if err := c.checkFields(r); err != nil {
		return nil, err
	}
	d, err := c.destination(r)
	if err != nil {
		return nil, err
	}
	answer, err := c.admitted(d, r)
	if err != nil {
		f := err.(*failure)
		if f.ends {
			return nil, f
		}
		answer = f.response()
	}
	c.announce(d, answer)
	return answer, nil
}

// admitted is write, as far as quotas allow it, and as far as the table is the one that the connection was opened to.
func (c *connection) admitted(d *destination, r *request) (*storagepb.AppendRowsResponse, error) {
	if err := c.enter(d); err != nil {
		return nil, err
	}
	if err := c.server.quotas.append(d.table.Ref(), c.stream.full, c.created, r.size); err != nil {
		return nil, err
	}
	if d.haunted {
		return c.ghost(d)
	}
	return c.write(d, r)
}

// hear remembers what a request that is refused out of hand says of the connection. Clients leave that out of the
// requests behind it, whatever the answer: managedwriter sends stream and schema once for each call.
func (c *connection) hear(r *request) {
	if c.checkFields(r) == nil {
		_, _ = c.destination(r)
	}
}

// maxTraceID is the longest trace id taken, in bytes.
const maxTraceID = 256

// checkFields holds the rules of one request on its connection, before any table is looked at. Breaking one ends the call.
func (c *connection) checkFields(r *request) error {
	c.requests++
	first := c.requests == 1
	entity := r.stream
	if entity == "" {
		entity = c.stream.full
	}
	switch {
	case first && r.stream == "":
		return invalid("", "The first request on a connection must name its write_stream.").ending()
	case r.stream == "" && len(c.destinations) > 1:
		return invalid(entity, "The connection has written to more than one table: every request must name its write_stream.").ending()
	case r.arrow && r.proto:
		return invalid(entity, "A request must not carry both proto_rows and arrow_rows.").ending()
	case !first && (r.arrow && !c.arrow || r.proto && c.arrow):
		return invalid(entity, "A connection must not mix proto_rows and arrow_rows.").ending()
	case len(r.traceID) > maxTraceID:
		return invalid(entity, "The trace_id has %d bytes, at most %d are allowed.", len(r.traceID), maxTraceID).ending()
	}
	if r.stream != "" {
		name, ok := parseStream(r.stream)
		switch {
		case !ok:
			return invalidName(r.stream).ending()
		case !first && name.isDefault() != c.stream.isDefault():
			return invalid(r.stream, "A connection must not mix a default stream and a created stream.").ending()
		case !first && !name.isDefault() && name.full != c.stream.full:
			return invalid(r.stream, "The connection was opened for stream %s and must not name another.", c.stream.full).ending()
		}
		c.stream = name
	}
	if first {
		c.traceID, c.arrow = r.traceID, r.arrow
	}
	if r.missing != storagepb.AppendRowsRequest_MISSING_VALUE_INTERPRETATION_UNSPECIFIED {
		c.missing = r.missing
	}
	return nil
}

// destination finds the table of the request and what the connection remembers of it.
func (c *connection) destination(r *request) (*destination, error) {
	ref := c.stream.table
	t, err := c.server.table(c.ctx, ref, permissionGet)
	if err == nil {
		_, err = c.server.table(c.ctx, ref, permissionUpdate) // which an absent table is not asked for: it names the other
	}
	if err == nil && c.stream.isDefault() && c.server.windows.tooFresh(t, c.server.Clock.Now()) {
		err = permissionDenied(permissionUpdate, ref.Path())
	}
	if err != nil {
		if c.requests == 1 {
			return nil, err.(*failure).ending()
		}
		return nil, err
	}
	if !c.stream.isDefault() {
		if err := c.open(t); err != nil {
			return nil, err
		}
	}
	d := c.destinations[ref]
	if d == nil {
		if !r.schemaSent {
			return nil, invalid(c.stream.full, "The first request for a table on a connection must carry a writer schema.").ending()
		}
		d = &destination{table: t, announced: c.known(t).Number}
		c.destinations[ref] = d
	}
	if d.table != t && !c.haunts(d, t) { // dropped and made again
		d.table, d.plan, d.announced = t, nil, c.known(t).Number
	}
	if c.created != nil && d.schema != nil { // a created stream's connection keeps its writer schema
		return d, nil
	}
	if r.schemaSent && (d.schema == nil || !bytes.Equal(d.schema.bytes, r.descriptor)) {
		return d, c.adopt(d, r)
	}
	return d, nil
}

// adopt makes a writer schema the one in force for the table.
func (c *connection) adopt(d *destination, r *request) error {
	w, err := readWriterSchema(r)
	if err != nil {
		return invalid(c.stream.full, "%v", err)
	}
	d.schema, d.plan = w, nil
	return nil
}

// known is the definition of the table that has reached this connection.
func (c *connection) known(t *store.Table) *store.Info {
	return c.server.windows.known(t, c.opened, c.server.Clock.Now())
}

// write checks the rows against the table and commits them.
func (c *connection) write(d *destination, r *request) (*storagepb.AppendRowsResponse, error) {
	if err := c.plan(d); err != nil {
		return nil, err
	}
	if err := c.takesChanges(d); err != nil {
		return nil, err
	}
	if err := c.checkOffset(r); err != nil {
		return nil, err
	}
	switch {
	case r.count() == 0:
		return nil, c.noRows(r)
	}
	rows := store.Rows{Info: d.info, Count: r.count(), Account: c.accountFor(d), Stream: c.created, Offset: r.offset}
	if mode := d.table.Mode(); mode != store.ModeNull {
		if err := c.decode(d, r); err != nil {
			return nil, err
		}
		if mode == store.ModeStore {
			rows.Batches, rows.Changes = append(rows.Batches, d.plan.Take()), d.plan.TakeChanges()
		} else {
			d.plan.Reset()
		}
	}
	rows.Note = c.event.Note()
	written, err := d.table.Write(rows)
	if err != nil {
		return nil, c.storeFailure(r, err)
	}
	result := &storagepb.AppendRowsResponse_AppendResult{} // the default stream has no offsets
	if c.created != nil {
		result.Offset = wrapperspb.Int64(written.Offset)
	}
	return &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_AppendResult_{AppendResult: result}}, nil
}

// accountFor writes down what an append did.
func (c *connection) accountFor(d *destination) store.Account {
	return func(written store.Written) {
		c.event.Update(func(a *audit.Record) {
			a.Effect, a.Instance = audit.Visible, d.table.Instance()
			a.First, a.Count, a.Before, a.After = written.First, written.Count, written.Before, written.After
			if written.Hidden {
				a.Effect = audit.Applied
			}
			if c.created != nil {
				a.At = &written.Offset
			}
			a.Removed = Removed(written)
			if written.Mixed > 0 {
				a.Note = mixedNote(written.Mixed)
			}
		})
	}
}

func (c *connection) decoding(r *request) decode.Request {
	return decode.Request{
		Missing: interpretation(c.missing), Columns: r.columns, Now: c.server.Clock.Now(),
		MaxErrors: c.server.Profile.Limits.RowErrors, Inserts: c.server.Profile.CommittedChanges,
	}
}

// plan sees to a decode plan for the definition that has reached the connection.
func (c *connection) plan(d *destination) error {
	if d.schema == nil {
		return invalid(c.stream.full, "The connection has no valid writer schema for this table.")
	}
	info := c.known(d.table)
	if d.plan != nil && d.info == info {
		return nil
	}
	d.plan = nil
	plan, err := d.schema.compile(info)
	if err != nil {
		return c.schemaFailure(err)
	}
	d.plan, d.info = plan, info
	return nil
}

func (c *connection) schemaFailure(err error) error {
	s := err.(*decode.SchemaError)
	if s.Unimplemented {
		f := unimplemented(c.stream.full, "")
		f.message = s.Message
		return f
	}
	f := invalid(c.stream.full, "%s", s.Message)
	if len(s.Extra) > 0 {
		f.storage = storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS
	}
	return f
}

func (c *connection) rowFailure(bad []decode.RowError) error {
	f := invalid(c.stream.full, "Errors found while processing rows. Please refer to the row_errors field for details. "+
		"The list may not be complete because of the size limitations.")
	f.rows = bad
	return f
}

// storeFailure is for a write that the store refused: the table went away under it, or the log cannot be written.
func (c *connection) storeFailure(r *request, err error) error {
	if refused, ok := errors.AsType[*store.StreamError](err); ok {
		return c.refusedBy(refused, r)
	}
	switch {
	case refusal.Is(err, refusal.NotFound):
		return permissionDenied(permissionGet, c.stream.table.Path())
	case refusal.Is(err, refusal.Invalid): // the key went away under changes
		return invalid(c.stream.full, "%v.", err)
	case refusal.Is(err, refusal.BackendError):
		return &failure{code: codes.Unavailable, entity: c.stream.full, message: err.Error()}
	}
	return internal(c.stream.full, err)
}

// announce adds what every answer carries, and the schema if it has changed since the connection last heard of it.
func (c *connection) announce(d *destination, answer *storagepb.AppendRowsResponse) {
	info := c.known(d.table)
	if info.Number == d.announced {
		return
	}
	for _, i := range d.table.Infos()[d.announced+1 : info.Number+1] {
		if i.Change.Adds || i.Change.Relaxes || i.Change.Drops {
			answer.UpdatedSchema = info.Schema.Storage()
		}
	}
	d.announced = info.Number
}
