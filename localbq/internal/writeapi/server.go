package writeapi

import (
	"context"
	"math/rand/v2"
	"sync"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/rate"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// Deps are what the service works with. All but Denied are required.
type Deps struct {
	Store   *store.Store
	Clock   clock.Clock
	Watch   *watch.Watch
	Profile profile.Profile // resolved
	Seed    uint64
	// Denied reports whether a caller is refused a permission on a table; nil denies nobody.
	Denied func(principal, permission, table string) bool
}

// Server is the service.
type Server struct {
	storagepb.UnimplementedBigQueryWriteServer
	Deps
	windows   windows
	quotas    quotas
	receivers sync.WaitGroup // goroutines that read from calls
}

// New makes the service; Register adds it to a server.
func New(d Deps) *Server {
	s := &Server{Deps: d}
	s.windows = windows{
		profile: d.Profile.Windows, log: d.Watch.Audit,
		random: rand.New(rand.NewPCG(d.Seed, 0x77726974)), drawn: map[windowKey]drawn{}, denied: map[denialKey]int{},
	}
	s.quotas = quotas{Quotas: d.Profile.Quotas, store: d.Store, calls: map[place]int64{}, used: rate.NewBuckets[bucketKey](d.Clock)}
	return s
}

// Register adds the service to a server, which must have been made with Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) { storagepb.RegisterBigQueryWriteServer(r, s) }

// Close waits for what the service started. The gRPC server must have been stopped.
func (s *Server) Close() { s.receivers.Wait() }

// table finds the table of a stream, or answers as the service does for one that is not there or not allowed.
func (s *Server) table(ctx context.Context, ref store.TableRef, permission string) (*store.Table, error) {
	path := ref.Path()
	t, err := s.Store.Table(ref)
	if err != nil || t.Info().View != nil || s.Denied != nil && s.Denied(watch.Principal(ctx), permission, path) {
		return nil, permissionDenied(permission, path)
	}
	return t, nil
}
