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
	"github.com/millrace-dev/millrace/localbq/internal/storm"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
)

// Deps are what the service works with. All but Denied are required.
type Deps struct {
	Store   *store.Store
	Clock   clock.Clock
	Watch   *watch.Watch
	Profile profile.Profile // resolved
	Seed    uint64
	// Storms are windows held open and quotas used up by fault rules; nil is none.
	Storms *storm.Storms
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

	restarting sync.Mutex    // guards restarted
	restarted  chan struct{} // closed at the next restart
}

// New makes the service; Register adds it to a server.
func New(d Deps) *Server {
	s := &Server{Deps: d, restarted: make(chan struct{})}
	s.windows = windows{
		profile: d.Profile.Windows, log: d.Watch.Audit, storms: d.Storms,
		random: rand.New(rand.NewPCG(d.Seed, 0x77726974)), drawn: map[windowKey]drawn{}, denied: map[denialKey]int{},
	}
	s.quotas = quotas{Quotas: d.Profile.Quotas, store: d.Store, storms: d.Storms, calls: map[place]int64{}, used: rate.NewBuckets[bucketKey](d.Clock)}
	return s
}

// Register adds the service to a server, which must have been made with Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) { storagepb.RegisterBigQueryWriteServer(r, s) }

// Close waits for what the service started. The gRPC server must have been stopped.
func (s *Server) Close() { s.receivers.Wait() }

// Restart ends all AppendRows calls, each behind the request at hand, as BigQuery does when one of its servers is restarted.
func (s *Server) Restart() {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	close(s.restarted)
	s.restarted = make(chan struct{})
}

// nextRestart is closed at the next restart.
func (s *Server) nextRestart() <-chan struct{} {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	return s.restarted
}

// table finds the table of a stream, or answers as the service does for one that is not there or not allowed.
func (s *Server) table(ctx context.Context, ref store.TableRef, permission string) (*store.Table, error) {
	path := ref.Path()
	t, err := s.Store.Table(ref)
	if err != nil || t.Info().View != nil || s.Denied != nil && s.Denied(watch.Principal(ctx), permission, path) {
		return nil, permissionDenied(permission, path)
	}
	return t, nil
}
