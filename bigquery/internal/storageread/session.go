package storageread

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Session is a read session: one snapshot of one table, cut into streams.
type Session struct {
	Name    string
	Table   table.Destination // what is read: for a query, its result
	Expires time.Time         // zero when the service did not say
	Schema  string            // Avro, or a schema message of Arrow
	Arrow   bool
	Streams []string

	// Estimates of the service, from metadata that may be stale; 0 when it made none.
	Rows, Bytes int64
}

// Splits are the session's streams, each from its start.
func (s *Session) Splits() []stream.Split {
	out := make([]stream.Split, len(s.Streams))
	for i, name := range s.Streams {
		out[i] = Split{Stream: name, Schema: s.Schema, Arrow: s.Arrow, Expires: s.Expires}.at(0)
	}
	return out
}

// Attempt is what a plan or a reader knows of the job it works for.
type Attempt struct {
	Job   string
	Lanes int // that read at once; 0 is not known
	Meter stream.Meter
	Log   *slog.Logger
}

// Plan runs the query, if the input is one, and creates the read session. It opens what connections it needs and closes
// them before it returns. Its error is a *PlanError, or ctx's when that ended.
func (c *Config) Plan(ctx context.Context, a Attempt) (*Session, error) {
	s, err := c.plan(ctx, a)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, &PlanError{What: c.what(), Hint: c.hint(err), Err: err}
}

func (c *Config) plan(ctx context.Context, a Attempt) (*Session, error) {
	from, err := c.resolve(ctx, a)
	if err != nil {
		return nil, err
	}
	req := c.request(from, a)
	if req.ReadSession.ReadOptions.RowRestriction, err = c.restricted(ctx, a); err != nil {
		return nil, err
	}
	s, err := c.create(ctx, req)
	if err != nil {
		return nil, err
	}
	s.Table = from
	if c.Arrow {
		return s, nil
	}
	// A schema that cannot be read, or not as the deserializer wants it, fails the plan and not a reader.
	_, err = c.Decoder(s.Schema)
	return s, err
}

// resolve answers the table that is read, once a query that makes it has ended. A plain table takes no call.
func (c *Config) resolve(ctx context.Context, a Attempt) (table.Destination, error) {
	q := c.Query
	if c.Views != nil {
		var err error
		if q, err = c.resolveView(ctx, a); err != nil {
			return table.Destination{}, err
		}
	}
	if q == nil {
		return c.Table, nil
	}
	return c.runQuery(ctx, a, q)
}

// create makes the session. Within CreateSessionTimeout the official client repeats the call while the service is
// unavailable or answers too late. A session that nobody reads costs nothing and expires by itself.
func (c *Config) create(ctx context.Context, req *storagepb.CreateReadSessionRequest) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.CreateSessionTimeout)
	defer cancel()
	cl, err := c.dialer()(ctx)
	if err != nil {
		return nil, err
	}
	defer cl.close()
	got, err := cl.create(ctx, req)
	if err != nil {
		return nil, err
	}
	s := &Session{Name: got.GetName(), Schema: got.GetAvroSchema().GetSchema(),
		Rows: got.GetEstimatedRowCount(), Bytes: got.GetEstimatedTotalBytesScanned()}
	if c.Arrow {
		s.Arrow, s.Schema = true, string(got.GetArrowSchema().GetSerializedSchema())
	}
	if t := got.GetExpireTime(); t != nil {
		s.Expires = t.AsTime()
	}
	for _, st := range got.GetStreams() {
		s.Streams = append(s.Streams, st.GetName())
	}
	return s, nil
}

// request leaves unset what was not asked for, so that the service's defaults hold.
func (c *Config) request(from table.Destination, a Attempt) *storagepb.CreateReadSessionRequest {
	opts := &storagepb.ReadSession_TableReadOptions{
		SelectedFields: c.SelectedFields,
		// Without it the service refuses tables with a column that Avro has no name for.
		OutputFormatSerializationOptions: &storagepb.ReadSession_TableReadOptions_AvroSerializationOptions{
			AvroSerializationOptions: &storagepb.AvroSerializationOptions{EnableDisplayNameAttribute: true},
		},
	}
	if c.SamplePercentage > 0 {
		opts.SamplePercentage = &c.SamplePercentage
	}
	if c.Compressed {
		opts.ResponseCompressionCodec = new(storagepb.ReadSession_TableReadOptions_RESPONSE_COMPRESSION_CODEC_LZ4)
	}
	session := &storagepb.ReadSession{
		Table:       from.Path(),
		DataFormat:  storagepb.DataFormat_AVRO,
		ReadOptions: opts,
		TraceId:     c.TraceID,
	}
	if c.Arrow {
		session.DataFormat, opts.OutputFormatSerializationOptions = storagepb.DataFormat_ARROW, nil
		if codec, packed := arrowCodecs[c.ArrowCompression]; packed {
			opts.OutputFormatSerializationOptions = &storagepb.ReadSession_TableReadOptions_ArrowSerializationOptions{
				ArrowSerializationOptions: &storagepb.ArrowSerializationOptions{BufferCompression: codec},
			}
		}
	}
	if c.TraceID == "" {
		session.TraceId = traceID(a.Job)
	}
	if !c.SnapshotTime.IsZero() {
		session.TableModifiers = &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(c.SnapshotTime)}
	}
	return &storagepb.CreateReadSessionRequest{
		Parent:                  "projects/" + c.Parent,
		ReadSession:             session,
		MaxStreamCount:          int32(c.MaxStreamCount),
		PreferredMinStreamCount: c.preferredStreams(a.Lanes),
	}
}

var arrowCodecs = map[ArrowCompression]storagepb.ArrowSerializationOptions_CompressionCodec{
	ArrowLZ4: storagepb.ArrowSerializationOptions_LZ4_FRAME, ArrowZSTD: storagepb.ArrowSerializationOptions_ZSTD,
}

// preferredStreams is how many streams are asked for: so many for each lane only where nothing else was said of them.
func (c *Config) preferredStreams(lanes int) int32 {
	if c.StreamsPerLane > 0 && c.MaxStreamCount == 0 && c.PreferredMinStreamCount == 0 {
		return int32(min(int64(c.StreamsPerLane)*int64(max(1, lanes)), math.MaxInt32))
	}
	return int32(c.PreferredMinStreamCount)
}

// MaxTraceID is the longest trace id, in bytes (stream.proto, ReadSession.trace_id).
const MaxTraceID = 256

func traceID(job string) string {
	job = strings.ToValidUTF8(job, "_")
	if len(job) > MaxTraceID {
		job = strings.ToValidUTF8(job[:MaxTraceID], "")
	}
	return job
}
