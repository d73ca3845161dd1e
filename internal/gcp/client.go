package gcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	bqrest "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// ErrEndpoint says that one service is an emulator and the one asked for is not. Talking to the real service then would
// be a surprise.
var ErrEndpoint = errors.New("emulator endpoint is missing")

// GRPCOptions are the options of clients of the Storage Read and Write services. The key file, if any, is read here.
func (c Connection) GRPCOptions(context.Context) ([]option.ClientOption, error) {
	if c.GRPCEndpoint == "" {
		if c.Emulated() {
			return nil, fmt.Errorf("%w: set GRPCEndpoint too, the Storage API of the service whose other endpoints are set", ErrEndpoint)
		}
		return c.identity()
	}
	return []option.ClientOption{
		option.WithEndpoint(c.GRPCEndpoint),
		option.WithoutAuthentication(),
		option.WithTelemetryDisabled(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		// The official clients raise the limit from grpc's 4 MiB; a connection of another make must not lower it.
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32))),
	}, nil
}

// RESTOptions are the options of clients of the BigQuery REST service, among them the official high-level client. The
// key file, if any, is read here.
func (c Connection) RESTOptions(context.Context) ([]option.ClientOption, error) {
	if c.RESTEndpoint == "" {
		if c.Emulated() {
			return nil, fmt.Errorf("%w: set RESTEndpoint too, the REST API of the service whose other endpoints are set", ErrEndpoint)
		}
		return c.identity()
	}
	return []option.ClientOption{
		option.WithEndpoint("http://" + c.RESTEndpoint + "/bigquery/v2/"),
		option.WithoutAuthentication(),
	}, nil
}

// identity is the options of the real service.
func (c Connection) identity() ([]option.ClientOption, error) {
	var opts []option.ClientOption
	if c.QuotaProject != "" {
		opts = append(opts, option.WithQuotaProject(c.QuotaProject))
	}
	if c.KeyFile == "" {
		return opts, checkDefault()
	}
	creds, err := loadKeyFile(c.KeyFile)
	if err != nil {
		return nil, err
	}
	return append(opts, option.WithAuthCredentials(creds)), nil
}

// WriteClient opens a client of the Storage Write service. Its generated retries are on: callers with a schedule of
// their own pass call options. The caller closes it.
func (c Connection) WriteClient(ctx context.Context, more ...option.ClientOption) (*bqstorage.BigQueryWriteClient, error) {
	opts, err := c.GRPCOptions(ctx)
	if err != nil {
		return nil, err
	}
	w, err := bqstorage.NewBigQueryWriteClient(ctx, append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("open a client of the Storage Write API: %w", err)
	}
	return w, nil
}

// ReadClient opens a client of the Storage Read service. Its generated retries are on: callers with a schedule of their
// own pass call options. The caller closes it.
func (c Connection) ReadClient(ctx context.Context, more ...option.ClientOption) (*bqstorage.BigQueryReadClient, error) {
	opts, err := c.GRPCOptions(ctx)
	if err != nil {
		return nil, err
	}
	r, err := bqstorage.NewBigQueryReadClient(ctx, append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("open a client of the Storage Read API: %w", err)
	}
	return r, nil
}

// REST is a client of the BigQuery REST service. The generated client repeats no call by itself. Safe for concurrent
// use.
type REST struct {
	*bqrest.Service
	close func()
}

// Close frees idle connections to an emulator; those to the real service belong to the official transport.
func (r *REST) Close() { r.close() }

// REST opens a client of the BigQuery REST service.
func (c Connection) REST(ctx context.Context) (*REST, error) {
	opts, err := c.RESTOptions(ctx)
	if err != nil {
		return nil, err
	}
	free := func() {}
	if c.RESTEndpoint != "" {
		// A transport of our own can be drained, and takes no proxy from the environment.
		t := &http.Transport{MaxIdleConnsPerHost: 16}
		opts = append(opts, option.WithHTTPClient(&http.Client{Transport: t}))
		free = t.CloseIdleConnections
	}
	s, err := bqrest.NewService(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open a client of the BigQuery REST API: %w", err)
	}
	return &REST{Service: s, close: free}, nil
}
