package gcp

import (
	"context"
	"fmt"
	"net/http"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// Storage is a client of Cloud Storage. Safe for concurrent use.
type Storage struct {
	*storage.Client
	free func()
}

// Close frees the client; idle connections to the real service belong to the official transport.
func (s *Storage) Close() error {
	err := s.Client.Close()
	s.free()
	return err
}

// StorageClient opens a client of Cloud Storage. The caller closes it.
func (c Connection) StorageClient(ctx context.Context) (*Storage, error) {
	opts, err := c.storageOptions()
	if err != nil {
		return nil, err
	}
	free := func() {}
	if c.StorageEndpoint != "" {
		// As in REST: a transport that can be drained, and takes no proxy from the environment.
		t := &http.Transport{MaxIdleConnsPerHost: 64}
		opts = append(opts, option.WithHTTPClient(&http.Client{Transport: t}))
		free = t.CloseIdleConnections
	}
	s, err := storage.NewClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open a client of Cloud Storage: %w", err)
	}
	return &Storage{Client: s, free: free}, nil
}

func (c Connection) storageOptions() ([]option.ClientOption, error) {
	if c.StorageEndpoint == "" {
		if c.Emulated() {
			return nil, fmt.Errorf("%w: set StorageEndpoint too, the Cloud Storage of the service whose other endpoints are set", ErrEndpoint)
		}
		return c.identity()
	}
	return []option.ClientOption{
		option.WithEndpoint("http://" + c.StorageEndpoint + "/storage/v1/"),
		option.WithoutAuthentication(),
		option.WithTelemetryDisabled(),
	}, nil
}
