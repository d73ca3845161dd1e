package readapi

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/localbq/internal/ingestion"
	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

const (
	maxRestrictionBytes = 1 << 20
	maxTraceIDBytes     = 256
)

// CreateReadSession pins a snapshot of a table and plans its streams.
func (s *Server) CreateReadSession(ctx context.Context, r *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error) {
	asked := r.GetReadSession()
	project, err := checkRequest(r, asked)
	if err != nil {
		return nil, err
	}
	if s.denied(ctx, "bigquery.readsessions.create", r.Parent) {
		return nil, status.Errorf(codes.PermissionDenied,
			"request failed: the user does not have 'bigquery.readsessions.create' permission for '%s'", r.Parent)
	}
	t, snapshot, err := s.snapshot(ctx, asked)
	if err != nil {
		return nil, err
	}
	location, err := s.location(t)
	if err != nil {
		return nil, err
	}
	made := &session{
		name:    "projects/" + project + "/locations/" + location + "/sessions/" + newID(),
		expires: s.Clock.Now().Add(lifetime), snapshot: snapshot,
	}
	made.table = t
	if err := s.choose(made, t, asked.GetReadOptions()); err != nil {
		return nil, err
	}
	if made.format, err = newFormat(asked, made.projection.Schema); err != nil {
		return nil, err
	}
	streams, bytes, err := s.plan(made, r)
	if err != nil {
		return nil, err
	}
	s.sessions.add(made, streams...)
	return describe(made, asked, streams, bytes), nil
}

// checkRequest refuses what is wrong with a request by itself, and answers the project that owns the session.
func checkRequest(r *storagepb.CreateReadSessionRequest, asked *storagepb.ReadSession) (string, error) {
	project, ok := strings.CutPrefix(r.GetParent(), "projects/")
	switch {
	case !ok || project == "" || strings.Contains(project, "/"):
		return "", invalid("request failed: parent %q: expected projects/{project}", r.GetParent())
	case asked == nil:
		return "", invalid("request failed: read_session is missing")
	case r.MaxStreamCount < 0, r.PreferredMinStreamCount < 0:
		return "", invalid("max_stream_count and preferred_min_stream_count must not be negative")
	case r.MaxStreamCount > 0 && r.PreferredMinStreamCount > r.MaxStreamCount:
		return "", invalid("preferred_min_stream_count must be less than or equal to max_stream_count")
	case len(asked.TraceId) > maxTraceIDBytes:
		return "", invalid("request failed: trace_id has %d bytes, at most %d are allowed", len(asked.TraceId), maxTraceIDBytes)
	case len(asked.GetReadOptions().GetRowRestriction()) > maxRestrictionBytes:
		return "", invalid("request failed: row_restriction has %d bytes, at most %d are allowed",
			len(asked.GetReadOptions().GetRowRestriction()), maxRestrictionBytes)
	}
	if p := asked.GetReadOptions().GetSamplePercentage(); asked.GetReadOptions() != nil && asked.GetReadOptions().SamplePercentage != nil && !(p > 0 && p <= 100) {
		return "", invalid("request failed: sample_percentage must be above 0 and at most 100, got %v", p)
	}
	return project, nil
}

// snapshot finds the table and pins its rows.
func (s *Server) snapshot(ctx context.Context, asked *storagepb.ReadSession) (*store.Table, *store.Snapshot, error) {
	ref, ok := store.ParseTablePath(asked.GetTable())
	if !ok {
		return nil, nil, invalid("request failed: table %q: expected projects/{project}/datasets/{dataset}/tables/{table}", asked.GetTable())
	}
	if s.denied(ctx, "bigquery.tables.getData", ref.Path()) || !query.MayRead(principal(ctx), ref.Project, ref.Dataset) {
		return nil, nil, status.Errorf(codes.PermissionDenied,
			"request failed: the user does not have 'bigquery.tables.getData' permission on '%s' (or it may not exist)", ref.Path())
	}
	t, err := s.Store.Table(ref)
	if err != nil {
		return nil, nil, statusOf(err)
	}
	if t.Info().View != nil {
		return nil, nil, invalid("request failed: non-table entities cannot be read with the storage API")
	}
	snapshot, merging, err := s.rows(t, asked.GetTableModifiers().GetSnapshotTime())
	if err != nil {
		return nil, nil, statusOf(err)
	}
	if merging {
		return nil, nil, invalid("request failed: table %s has changes that are merged at query time and cannot be read with the "+
			"storage API: set its max_staleness, or wait until they are applied", ref)
	}
	return t, snapshot, nil
}

// rows are the table's as queries see them, and whether they would have to be merged.
func (s *Server) rows(t *store.Table, at *timestamppb.Timestamp) (*store.Snapshot, bool, error) {
	if at == nil {
		snapshot, err := t.Query(s.Store.Version())
		return snapshot, t.Merging(), err
	}
	snapshot, err := t.QueryAt(at.AsTime())
	return snapshot, t.MergingAt(at.AsTime()), err
}

// location is the dataset's, in lower case as in the names of sessions.
func (s *Server) location(t *store.Table) (string, error) {
	d, err := s.Store.Dataset(t.Ref().DatasetRef())
	if err != nil {
		return "", statusOf(err)
	}
	return strings.ToLower(d.Location), nil
}

// choose resolves selected fields and the restriction.
func (s *Server) choose(made *session, t *store.Table, o *storagepb.ReadSession_TableReadOptions) error {
	columns := made.snapshot.Info.Schema
	if columns == nil {
		columns = &schema.Schema{}
	}
	var unknown []string
	made.projection, unknown = projection.Of(columns, o.GetSelectedFields())
	for _, name := range o.GetSelectedFields() {
		if s.unheardOf(t, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return invalid("request failed: The following selected fields do not exist in the table schema: %s", strings.Join(unknown, ", "))
	}
	if text := o.GetRowRestriction(); text != "" {
		if s.Queries == nil {
			return unimplemented("row_restriction: %s", s.NoQueries)
		}
		var err error
		if made.restriction, err = s.Queries.Restrict(text, ingestion.With(made.snapshot.Info.Definition)); err != nil {
			return statusOf(err)
		}
	}
	return partitionFilter(made)
}

// partitionFilter refuses to read a whole table that wants a filter.
func partitionFilter(made *session) error {
	info := made.snapshot.Info
	column := query.RequiredFilter(info.Definition)
	if column == "" || made.restriction != nil && made.restriction.Uses(column) {
		return nil
	}
	return invalid("request failed: Cannot query over table '%s.%s.%s' without a filter over column(s) '%s' that can be used for partition elimination",
		info.Ref.Project, info.Ref.Dataset, info.Ref.Table, column)
}

// unheardOf reports whether a column is so new that read sessions do not know it yet (Windows.ReadSelectedFields).
func (s *Server) unheardOf(t *store.Table, path string) bool {
	window := s.Profile.Windows.ReadSelectedFields
	from, _, held := s.Storms.On(storm.ReadSelectedFields, t.Instance())
	if window.Max == 0 && !held {
		return false
	}
	var before *schema.Schema
	for _, info := range t.Infos() {
		if info.Change.Adds {
			// One length for each change, whichever session asks.
			length := window.Draw(rand.New(rand.NewPCG(s.Seed, uint64(info.Version))))
			if s.Clock.Now().Before(info.Modified.Add(length)) || held && !info.Modified.Add(length).Before(from) {
				break
			}
		}
		before = info.Schema
	}
	_, unknown := projection.Of(before, []string{path})
	return len(unknown) > 0
}

// plan cuts the snapshot into streams; it also answers the bytes of the selected columns.
func (s *Server) plan(made *session, r *storagepb.CreateReadSessionRequest) ([]*stream, int64, error) {
	parts := made.snapshot.Parts()
	bytes := selectedBytes(parts, made.projection)
	total := int64(0)
	for _, b := range bytes {
		total += b
	}
	if o := r.ReadSession.GetReadOptions(); o != nil && o.SamplePercentage != nil {
		parts = sample(parts, *o.SamplePercentage, rand.New(rand.NewPCG(s.Seed, uint64(made.snapshot.Version))))
		bytes = selectedBytes(parts, made.projection)
	}
	n := streamCount(total, s.Limits.SplitBytes, wanted{int64(r.MaxStreamCount), int64(r.PreferredMinStreamCount)})
	var streams []*stream
	for _, runs := range cut(parts, bytes, n) {
		streams = append(streams, &stream{name: streamName(made.name), session: made, runs: runs, rows: countRows(runs), resolved: made.restriction == nil})
	}
	return streams, total, nil
}

func countRows(runs []run) (n int64) {
	for _, r := range runs {
		n += r.rows
	}
	return n
}

// describe is the session as the client gets it.
func describe(made *session, asked *storagepb.ReadSession, streams []*stream, bytes int64) *storagepb.ReadSession {
	out := &storagepb.ReadSession{
		Name: made.name, ExpireTime: timestamppb.New(made.expires.Truncate(time.Microsecond)), DataFormat: asked.DataFormat,
		Table: asked.Table, TraceId: asked.TraceId, EstimatedTotalBytesScanned: bytes,
		EstimatedRowCount: made.snapshot.NumRows(),
	}
	if asked.TableModifiers != nil {
		out.TableModifiers = proto.CloneOf(asked.TableModifiers)
	}
	if asked.ReadOptions != nil {
		out.ReadOptions = proto.CloneOf(asked.ReadOptions)
	}
	if query.Anonymous(made.snapshot.Info.Ref.Dataset) {
		out.EstimatedTotalBytesScanned = 0 // measured by another connector for anonymous tables, 2026-08
	}
	made.format.describe(out)
	for _, st := range streams {
		out.Streams = append(out.Streams, &storagepb.ReadStream{Name: st.name})
	}
	return out
}
