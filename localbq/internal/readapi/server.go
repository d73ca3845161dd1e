package readapi

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// Deps are what the service works with. Store is required.
type Deps struct {
	Store   *store.Store
	Clock   clock.Clock // nil is the machine's
	Profile profile.Profile
	Limits  Limits
	Seed    uint64
	// Storms are windows held open by fault rules; nil is none.
	Storms *storm.Storms
	// Queries compiles row restrictions; nil where the service has no engine, and NoQueries then says why.
	Queries   query.Engine
	NoQueries string
	// Denied reports whether a caller is refused a permission on a resource; nil denies nobody.
	Denied func(principal, permission, resource string) bool
}

// Limits are sizes of streams and of responses. Zero means the default.
type Limits struct {
	// SplitBytes is the size of the selected columns up to which a session has one stream; a larger one has one for each
	// 66/240 of it. 0 is 240 MiB (another connector measured one stream at 195 MB and four at 264 MB, 2026-08).
	SplitBytes int64
	// BlockBytes and BlockRows bound one response, which holds at least one row. 0 is 4 MiB and 16,384 rows.
	BlockBytes int64
	BlockRows  int64
}

func (l Limits) resolve() Limits {
	if l.SplitBytes <= 0 {
		l.SplitBytes = 240 << 20
	}
	if l.BlockBytes <= 0 {
		l.BlockBytes = 4 << 20
	}
	if l.BlockRows <= 0 {
		l.BlockRows = 16_384
	}
	return l
}

// maxResponseBytes is what BigQuery puts into one response at most; a larger row cannot be read.
const maxResponseBytes = 128 << 20

// Server is the service. Safe for concurrent use.
type Server struct {
	storagepb.UnimplementedBigQueryReadServer
	Deps
	sessions sessions
}

// New makes the service; Register adds it to a server.
func New(d Deps) *Server {
	if d.Clock == nil {
		d.Clock = clock.Real()
	}
	d.Limits = d.Limits.resolve()
	return &Server{Deps: d, sessions: newSessions(d.Clock)}
}

// Register adds the service to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) { storagepb.RegisterBigQueryReadServer(r, s) }

// Expire ends a session before its time, by its full name or that of one of its streams.
func (s *Server) Expire(session string) error {
	if !s.sessions.expireNow(session) {
		return fmt.Errorf("no read session or read stream is named %q", session)
	}
	return nil
}

// Close forgets all sessions. The gRPC server must have been stopped.
func (s *Server) Close() { s.sessions.close() }

// anonymous is a caller that says nothing about itself.
const anonymous = "anonymous@local"

// principal is who calls: a bearer token "local:<principal>" says so, and no credential is checked.
func principal(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		if who, ok := strings.CutPrefix(value, "Bearer local:"); ok && who != "" {
			return who
		}
	}
	return anonymous
}

func (s *Server) denied(ctx context.Context, permission, resource string) bool {
	return s.Denied != nil && s.Denied(principal(ctx), permission, resource)
}
