package objects

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"

	"github.com/millrace-dev/millrace/internal/gcp"
)

// Store is the staged files of one connection. It makes no call before the first object is sent or deleted. Safe for concurrent
// use.
type Store struct {
	connection gcp.Connection
	deadline   time.Duration

	mu     sync.Mutex // guards client
	client *gcp.Storage
}

// New makes a Store. deadline bounds how long one request is repeated.
func New(c gcp.Connection, deadline time.Duration) *Store {
	return &Store{connection: c, deadline: deadline}
}

func (s *Store) open(ctx context.Context) (*gcp.Storage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		c, err := s.connection.StorageClient(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		s.client = c
	}
	return s.client, nil
}

// Close frees the client. Objects under way must be closed or aborted before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	c := s.client
	s.client = nil
	if err := c.Close(); err != nil {
		return fmt.Errorf("close the client of Cloud Storage: %w", err)
	}
	return nil
}

// handle is an object, whose requests are repeated after errors that pass; the last one is left in passing.
func (s *Store) handle(ctx context.Context, uri string, passing *atomic.Pointer[error]) (*storage.ObjectHandle, error) {
	bucket, name, err := parse(uri)
	if err != nil {
		return nil, err
	}
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	// Names are used once, so that it does no harm to write or delete twice.
	return c.Bucket(bucket).Object(name).Retryer(storage.WithPolicy(storage.RetryAlways), storage.WithErrorFunc(func(err error) bool {
		passes := storage.ShouldRetry(err)
		if passes {
			passing.Store(&err)
		}
		return passes
	})), nil
}

// ended is the error of a call that its context ended: why it did, and what the call failed with before.
func ended(ctx context.Context, passing *atomic.Pointer[error]) error {
	if last := passing.Load(); last != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), *last)
	}
	return context.Cause(ctx)
}

// parse takes a URI apart. What BigQuery would read as a pattern is refused.
func parse(uri string) (bucket, name string, err error) {
	rest, ok := strings.CutPrefix(uri, "gs://")
	bucket, name, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" || name == "" || strings.ContainsAny(rest, "*?#[]") {
		return "", "", fmt.Errorf("%q is no URI of a staged file: expected gs://bucket/name without * ? # [ ]", uri)
	}
	return bucket, name, nil
}

// Failure is an object that could not be deleted.
type Failure struct {
	URI string
	Err error
}

// deletions is how many objects are deleted at once.
const deletions = 32

// Delete deletes objects and returns those that it could not, in no order. One that is not there counts as deleted. When ctx ends,
// those that were not tried are among the failures.
func (s *Store) Delete(ctx context.Context, uris iter.Seq[string]) (failures []Failure) {
	var (
		mu      sync.Mutex // guards failures
		workers sync.WaitGroup
		next    = make(chan string)
	)
	work := func() {
		for uri := range next {
			if err := s.delete(ctx, uri); err != nil {
				mu.Lock()
				failures = append(failures, Failure{uri, err})
				mu.Unlock()
			}
		}
	}
	started := 0
	for uri := range uris {
		if started < deletions {
			started++
			workers.Go(work) // owned by this call: ends when next is closed
		}
		next <- uri
	}
	close(next)
	workers.Wait()
	return failures
}

func (s *Store) delete(ctx context.Context, uri string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var passing atomic.Pointer[error]
	o, err := s.handle(ctx, uri, &passing)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, s.deadline, fmt.Errorf("no success within %v", s.deadline))
	defer cancel()
	err = o.Delete(bounded)
	switch {
	case err == nil, errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		return nil
	case bounded.Err() != nil:
		return fmt.Errorf("delete %s: %w", uri, ended(bounded, &passing))
	}
	return fmt.Errorf("delete %s: %w", uri, err)
}
