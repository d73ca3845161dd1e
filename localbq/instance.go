package localbq

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/decode"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// Instance is a running local BigQuery. Safe for concurrent use.
type Instance struct {
	config Config
	store  *store.Store
	// objects is what the Cloud Storage part holds.
	objects *objects.Store
	audit   *audit.Log
	faults  *fault.Rules
	conns   fault.Connections
	rest    *http.Server
	gcs     *http.Server
	grpc    *grpc.Server
	// certificates are gRPC's; nil where it is in clear text.
	certificates *certificates
	// storms are windows held open and quotas used up by fault rules.
	storms *storm.Storms
	// denials are what callers are refused.
	denials denials
	// expire ends a read session before its time, dropResult deletes a query's result, restart ends all AppendRows calls.
	expire     func(session string) error
	dropResult func(job string) error
	restart    func()
	// stopJobs ends what jobs do, without a wait for them; nil where nothing is served.
	stopJobs func()
	// services are what the servers serve, closed behind them.
	services []func() error

	calls    context.Context // of calls over HTTP, which end with the instance even where nobody reads their connection
	endCalls context.CancelFunc
	handling sync.RWMutex // held for reading by each call over HTTP; guards shut
	shut     bool         // calls over HTTP are not let in any more

	restAddr, grpcAddr, gcsAddr string
	exposed                     []string       // listeners beyond the loopback interface
	serving                     sync.WaitGroup // the accept loops, ended by stop
	closing                     sync.Once
	closed                      error
}

// Start starts an instance; Close ends it. ctx bounds the start, not the instance's life.
func Start(ctx context.Context, c Config) (*Instance, error) {
	c.resolve()
	i := &Instance{config: c}
	i.denials.set(c.Deny)
	i.calls, i.endCalls = context.WithCancel(context.Background())
	if err := i.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("local BigQuery: %w", err), i.Close())
	}
	c.Logger.Info("local BigQuery serves", "rest", i.restAddr, "grpc", i.grpcAddr, "gcs", i.gcsAddr, "seed", c.Seed)
	return i, nil
}

func (i *Instance) start(ctx context.Context) error {
	if err := i.open(); err != nil {
		return err
	}
	return i.serve(ctx)
}

func (c *Config) resolve() {
	if c.Project == "" {
		c.Project = DefaultProject
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Seed == 0 {
		var b [8]byte
		rand.Read(b[:])
		c.Seed = binary.LittleEndian.Uint64(b[:]) | 1
	}
	c.Profile = c.Profile.Resolve()
}

// open opens what the instance keeps.
func (i *Instance) open() error {
	c := &i.config
	var err error
	i.storms = storm.New(c.Clock)
	i.faults = fault.NewRules(c.Clock, c.Seed, &i.conns)
	i.faults.ChangeWith(i.changeState)
	options := store.Options{
		Clock: c.Clock, AutoCreateDataset: c.AutoCreateDataset, Check: decode.CheckDefaults, Mode: c.mode, Wrote: i.wrote,
		TombstoneRetention: c.Profile.Limits.TombstoneRetention,
		Dir:                c.Dir, Sync: c.Sync, Logger: c.Logger,
		Locked: i.openAudit, Recovered: i.recovered, Trimming: func() error { return i.audit.Flush() },
	}
	if c.Dir == "" {
		if err := i.openAudit(); err != nil {
			return err
		}
	}
	i.store, err = store.Open(options)
	if err != nil {
		return err
	}
	if r := i.store.Recovery(); r.Changes > 0 || r.CutBytes > 0 {
		c.Logger.Info("local BigQuery replayed its log", "folder", c.Dir, "changes", r.Changes, "rows", r.Rows, "cutBytes", r.CutBytes)
	}
	i.objects, err = i.openObjects()
	return err
}

// openObjects opens the buckets, in the folder if there is one, which the store has to itself by now.
func (i *Instance) openObjects() (*objects.Store, error) {
	o := objects.Options{Clock: i.config.Clock, Force: i.config.Sync != SyncNone, Logger: i.config.Logger}
	if i.config.Dir != "" {
		o.Dir = filepath.Join(i.config.Dir, "storage")
	}
	return objects.New(o)
}

// openAudit opens the audit log, in the folder if there is one.
func (i *Instance) openAudit() error {
	o := audit.Options{Clock: i.config.Clock, MaxBytes: i.config.Audit.MaxBytes, CountsOnly: i.config.Audit.CountsOnly}
	if i.config.Dir != "" {
		o.Path = filepath.Join(i.config.Dir, "audit.jsonl")
	}
	var err error
	i.audit, err = audit.Open(o)
	return err
}

// recovered accounts for rows that an earlier process had written, if it did not get to it.
func (i *Instance) recovered(note []byte, t *store.Table, w store.Written) error {
	for _, r := range effects(t, w) {
		if err := i.audit.Recovered(note, r); err != nil {
			return err
		}
	}
	return nil
}

// serve opens the listeners and answers on them.
func (i *Instance) serve(ctx context.Context) error {
	if i.config.SinglePort {
		return i.singlePort(ctx)
	}
	if err := i.certify(); err != nil {
		return err
	}
	restListener, err := i.listen(ctx, "REST", i.config.RESTAddr)
	if err != nil {
		return err
	}
	grpcListener, err := i.listen(ctx, "gRPC", i.config.GRPCAddr)
	if err != nil {
		return errors.Join(err, restListener.Close())
	}
	gcsListener, err := i.listen(ctx, "Cloud Storage", i.config.GCSAddr)
	if err != nil {
		return errors.Join(err, restListener.Close(), grpcListener.Close())
	}
	i.restAddr, i.grpcAddr, i.gcsAddr = restListener.Addr().String(), grpcListener.Addr().String(), gcsListener.Addr().String()
	i.rest, i.grpc, i.gcs = i.newREST(), i.newGRPC(), i.newGCS()
	i.serving.Go(func() { i.report("REST", i.rest.Serve(i.conns.Watch(restListener)), http.ErrServerClosed) })
	i.serving.Go(func() {
		i.report("Cloud Storage", i.gcs.Serve(i.conns.Watch(gcsListener)), http.ErrServerClosed)
	})
	i.serving.Go(func() { i.report("gRPC", i.grpc.Serve(i.conns.Watch(grpcListener)), grpc.ErrServerStopped) })
	return nil
}

func (i *Instance) report(face string, err, orderly error) {
	if err != nil && !errors.Is(err, orderly) {
		i.config.Logger.Error("local BigQuery stopped serving", "face", face, "error", err)
	}
}

// listen opens one listener, on the loopback interface unless the address says otherwise.
func (i *Instance) listen(ctx context.Context, name, addr string) (net.Listener, error) {
	if addr == "" {
		addr = ":0"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: address %q: expected host:port: %w", name, addr, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if tcp := l.Addr().(*net.TCPAddr); !tcp.IP.IsLoopback() {
		i.exposed = append(i.exposed, name)
		i.config.Logger.Warn("local BigQuery listens beyond this machine and checks no credentials: whoever reaches the address can read and change everything",
			"listener", name, "address", tcp.String())
	}
	return l, nil
}

// Exposed names the listeners that others than this machine can reach: "REST", "gRPC", "Cloud Storage", or "single port".
func (i *Instance) Exposed() []string { return slices.Clone(i.exposed) }

// REST is the address of the REST API, host:port.
func (i *Instance) REST() string { return i.restAddr }

// GRPC is the address of the Storage Write and Storage Read APIs, host:port.
func (i *Instance) GRPC() string { return i.grpcAddr }

// GCS is the address of Cloud Storage, host:port: what clients take as STORAGE_EMULATOR_HOST.
func (i *Instance) GCS() string { return i.gcsAddr }

// Project is the project that completes short table names.
func (i *Instance) Project() string { return i.config.Project }

// Seed is where every random choice derives from.
func (i *Instance) Seed() uint64 { return i.config.Seed }

// Clock is the clock of the instance; advance it where it is a *ManualClock.
func (i *Instance) Clock() Clock { return i.config.Clock }

// ClientOptions point a client of the REST API at the instance.
func (i *Instance) ClientOptions() []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint("http://" + i.restAddr), option.WithoutAuthentication()}
}

// GCSClientOptions point a client of Cloud Storage at the instance.
func (i *Instance) GCSClientOptions() []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint("http://" + i.gcsAddr + "/storage/v1/"), option.WithoutAuthentication()}
}

// GRPCClientOptions point a client of the Storage Write or Storage Read API at the instance, managedwriter included.
func (i *Instance) GRPCClientOptions() []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(i.grpcAddr),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(i.clientCredentials())),
	}
}

func (i *Instance) clientCredentials() credentials.TransportCredentials {
	if i.certificates != nil {
		return credentials.NewTLS(&tls.Config{RootCAs: i.certificates.pool})
	}
	return insecure.NewCredentials()
}

// Authority is the certificate, in PEM, of the authority behind gRPC over TLS; nil without Config.GRPCTLS.
func (i *Instance) Authority() []byte {
	if i.certificates == nil {
		return nil
	}
	return slices.Clone(i.certificates.authority)
}

// certify makes gRPC's certificates if there are to be any.
func (i *Instance) certify() error {
	if !i.config.GRPCTLS {
		return nil
	}
	host := ""
	if i.config.GRPCAddr != "" {
		var err error
		if host, _, err = net.SplitHostPort(i.config.GRPCAddr); err != nil {
			return err
		}
	}
	var err error
	i.certificates, err = newCertificates(host)
	return err
}

// Close ends every call, stops listening and gives the folder free. It may be called more than once.
func (i *Instance) Close() error {
	i.closing.Do(func() { i.closed = i.close() })
	return i.closed
}

func (i *Instance) close() error {
	var errs []error
	if i.stopJobs != nil {
		i.stopJobs() // before the rules let go of those they hold: they end where they are
	}
	if i.faults != nil {
		i.faults.Close() // what rules hold goes on, and is answered by a closed connection
	}
	i.endCalls()
	if i.grpc != nil {
		errs = append(errs, i.rest.Close(), i.gcs.Close())
		i.handling.Lock() // waits for the calls that are in
		i.shut = true
		i.handling.Unlock()
		i.grpc.Stop()
	}
	i.serving.Wait()
	for _, end := range i.services {
		errs = append(errs, end())
	}
	if i.config.Queries != nil {
		errs = append(errs, i.config.Queries.Close())
	}
	if i.objects != nil {
		errs = append(errs, i.objects.Close()) // before the store, which gives the folder free
	}
	if i.store != nil {
		errs = append(errs, i.store.Close())
	}
	if i.audit != nil {
		errs = append(errs, i.audit.Close())
	}
	return errors.Join(errs...)
}
