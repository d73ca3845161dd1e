package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
)

// unaryTimeout bounds one attempt of a call that is no stream.
const unaryTimeout = time.Minute

// service is the clients of one connection, shared by all writers of the process that use it. Safe for concurrent use.
type service struct {
	connection gcp.Connection

	mu        sync.Mutex // guards what follows; held while a client is opened, which reads credentials
	write     *bqstorage.BigQueryWriteClient
	rest      *gcp.REST
	locations map[datasetKey]string // datasets never move
	pools     map[poolKey]*pool
	seats     []*seat

	users int // guarded by registry.mu
}

type datasetKey struct{ project, dataset string }

type poolKey struct {
	location string
	options  Options
}

// registry holds the services in use. Writers of one process share what they can without knowing of each other.
var registry = struct {
	mu       sync.Mutex // guards services
	services map[gcp.Connection]*service
}{services: map[gcp.Connection]*service{}}

// acquire returns the service of a connection, shared with its other users. It opens nothing.
func acquire(c gcp.Connection) *service {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s := registry.services[c]
	if s == nil {
		s = &service{connection: c, locations: map[datasetKey]string{}, pools: map[poolKey]*pool{}}
		registry.services[c] = s
	}
	s.users++
	return s
}

// release gives the service up; its last user closes it.
func (s *service) release() error {
	registry.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(registry.services, s.connection)
	}
	registry.mu.Unlock()
	if !last {
		return nil
	}
	s.mu.Lock()
	pools, rest := s.pools, s.rest
	var clients []*bqstorage.BigQueryWriteClient
	if s.write != nil {
		clients = append(clients, s.write)
	}
	for _, p := range s.seats {
		clients = append(clients, p.client)
	}
	s.mu.Unlock()
	for _, p := range pools {
		p.close()
	}
	if rest != nil {
		rest.Close()
	}
	var errs []error
	for _, c := range clients {
		if err := c.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close a client of the Storage Write API: %w", err))
		}
	}
	return errors.Join(errs...)
}

// largeWrites hands requests to the system in fewer and larger pieces than gRPC does by itself, 32 KiB: a tenth of the processor
// time of a request of 512 KiB. The buffers belong to who is writing just now, not to each connection, as is gRPC's default.
var largeWrites = []option.ClientOption{
	option.WithGRPCDialOption(grpc.WithWriteBufferSize(512 << 10)),
}

func (s *service) client(ctx context.Context) (*bqstorage.BigQueryWriteClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write == nil {
		// Some credentials keep the context for as long as they refresh their token.
		w, err := s.connection.WriteClient(context.WithoutCancel(ctx), largeWrites...)
		if err != nil {
			return nil, err
		}
		s.write = w
	}
	return s.write, nil
}

// admin opens the REST client at its first use, which most jobs never make.
func (s *service) admin(ctx context.Context) (*gcp.REST, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest == nil {
		r, err := s.connection.REST(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		s.rest = r
	}
	return s.rest, nil
}

// streamName is the default stream of a table, which always exists (storage.proto, CreateWriteStream).
func streamName(dst table.Destination) string { return dst.Path() + "/streams/_default" }

// locate answers where a dataset is: one call for each dataset and process. A table that does not exist is the error
// that the service makes of it.
func (s *service) locate(ctx context.Context, dst table.Destination) (string, error) {
	key := datasetKey{dst.Project, dst.Dataset}
	s.mu.Lock()
	location, known := s.locations[key]
	s.mu.Unlock()
	if known {
		return location, nil
	}
	client, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	ws, err := client.GetWriteStream(ctx, &storagepb.GetWriteStreamRequest{Name: streamName(dst)}, once, gax.WithTimeout(unaryTimeout))
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locations[key] = ws.GetLocation()
	return ws.GetLocation(), nil
}

// once switches the generated client's own retries off: they would multiply with ours.
var once = gax.WithRetry(func() gax.Retryer { return nil })

// poolAt returns the connections to a place, making them at the first request.
func (s *service) poolAt(ctx context.Context, project, location string, o Options, log *slog.Logger) (*pool, error) {
	client, err := s.client(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := poolKey{location, o}
	p := s.pools[key]
	if p == nil {
		p = newPool(appendOpener(client, project, location), o.conn(log), o.MinConnections, o.MaxConnections)
		s.pools[key] = p
	}
	return p, nil
}

// withFrames sends frames as they are.
var withFrames = gax.WithGRPCOptions(grpc.ForceCodecV2(codec{}))

// appendOpener opens streams for default streams. The header routes shared streams, which belong to no one table, to where
// the tables are (storage.proto, AppendRows).
func appendOpener(client *bqstorage.BigQueryWriteClient, project, location string) openFunc {
	if location == "" {
		return opener(client, "")
	}
	return opener(client, "write_location=projects/"+project+"/locations/"+location)
}
