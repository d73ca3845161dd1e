package localbq

import (
	"context"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/millrace-dev/millrace/localbq/internal/gcs"
	"github.com/millrace-dev/millrace/localbq/internal/readapi"
	"github.com/millrace-dev/millrace/localbq/internal/rest"
	"github.com/millrace-dev/millrace/localbq/internal/watch"
	"github.com/millrace-dev/millrace/localbq/internal/writeapi"
)

// Message sizes of the gRPC face in bytes. Requests are read beyond what AppendRows takes, so that its own answer to a
// request too large can be given.
const (
	maxReceiveBytes = 24 << 20
	maxSendBytes    = 129 << 20
	// readBytes is what is taken from a connection at a time.
	readBytes = 256 << 10
	// windowBytes is what a client may have on the way unread. With more, an append was in memory rather than in the processor's
	// caches by the time its turn came: of rows of 1 kB, 16 MiB let through two thirds of what this does (measured 2026-11-30).
	windowBytes = 1 << 20
)

// noQueries says why a service without an engine does not query.
const noQueries = "the service was started without a query engine (localbq.Config.Queries; package localbq/duckdb has one)"

// newREST joins what answers over HTTP.
func (i *Instance) newREST() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	face := rest.New(rest.Deps{
		Store: i.store, Objects: i.objects, Clock: i.config.Clock, Queries: i.config.Queries, NoQueries: noQueries, Denied: i.denials.denied,
		Profile: i.config.Profile, Seed: i.config.Seed, Watch: i.watch().REST(), Reads: i.jobReads, JobState: i.watch().Job, Storms: i.storms,
	})
	i.dropResult = face.DropResult
	i.stopJobs = face.StopJobs
	i.services = append(i.services, face.Close)
	mux := http.NewServeMux()
	mux.Handle("/", face)
	mux.Handle("/local/v1/", i.newAdmin())
	return &http.Server{Handler: i.guard(i.whileOpen(mux)), Protocols: protocols, ReadHeaderTimeout: 30 * time.Second, BaseContext: i.base}
}

// newGCS is what answers as Cloud Storage. Its clients speak HTTP/1.1 where there is no TLS.
func (i *Instance) newGCS() *http.Server {
	face := gcs.New(gcs.Deps{Objects: i.objects, Watch: i.watch().GCS()})
	return &http.Server{Handler: i.guard(i.whileOpen(face)), ReadHeaderTimeout: 30 * time.Second, BaseContext: i.base}
}

// base is where the contexts of calls over HTTP come from: a server that is closed cancels only those of calls whose body has
// been read, since it does not look at the others' connections.
func (i *Instance) base(net.Listener) context.Context { return i.calls }

// whileOpen keeps calls out once the instance closes, and lets close wait for those that are in: http.Server.Close does not.
func (i *Instance) whileOpen(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.handling.RLock()
		defer i.handling.RUnlock()
		if i.shut {
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

// watch is the rules and the log that calls are taken past.
func (i *Instance) watch() *watch.Watch {
	return &watch.Watch{Faults: i.faults, Audit: i.audit, Kind: func(stream string) string { return writeapi.StreamKind(i.store, stream) }}
}

// newGRPC joins what answers over gRPC.
func (i *Instance) newGRPC() *grpc.Server {
	secure := insecure.NewCredentials()
	if i.certificates != nil {
		secure = credentials.NewServerTLSFromCert(&i.certificates.server)
	}
	s := grpc.NewServer(
		grpc.Creds(secure),
		grpc.ForceServerCodecV2(writeapi.Codec()),
		experimental.BufferPool(writeapi.Memory()),
		grpc.WaitForHandlers(true),
		// Clients keep idle connections alive more often than gRPC's default of five minutes puts up with.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.MaxSendMsgSize(maxSendBytes),
		grpc.ReadBufferSize(readBytes),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(windowBytes),
		grpc.UnaryInterceptor(i.watch().Unary),
		grpc.StreamInterceptor(i.watch().Stream),
	)
	write := writeapi.New(writeapi.Deps{
		Store: i.store, Clock: i.config.Clock, Watch: i.watch(), Profile: i.config.Profile, Seed: i.config.Seed,
		Denied: i.denials.denied, Storms: i.storms,
	})
	write.Register(s)
	i.restart = write.Restart
	i.services = append(i.services, func() error { write.Close(); return nil })

	limits := i.config.Profile.Limits
	read := readapi.New(readapi.Deps{
		Store: i.store, Clock: i.config.Clock, Profile: i.config.Profile, Seed: i.config.Seed, Denied: i.denials.denied,
		Limits:  readapi.Limits{SplitBytes: limits.ReadSplitBytes, BlockBytes: limits.ReadBlockBytes, BlockRows: limits.ReadBlockRows},
		Queries: i.config.Queries, NoQueries: noQueries, Storms: i.storms,
	})
	read.Register(s)
	i.expire = read.Expire
	i.services = append(i.services, func() error { read.Close(); return nil })

	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	return s
}
