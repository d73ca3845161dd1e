package objects

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"cloud.google.com/go/storage"
)

// Exists says whether an object is there. Needs storage.objects.get, and storage.objects.list to tell one that is not there from one
// that may not be read.
func (s *Store) Exists(ctx context.Context, uri string) (bool, error) {
	var passing atomic.Pointer[error]
	o, err := s.handle(ctx, uri, &passing)
	if err != nil {
		return false, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, s.deadline, fmt.Errorf("no success within %v", s.deadline))
	defer cancel()
	_, err = o.Attrs(bounded)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		return false, nil
	case bounded.Err() != nil:
		return false, fmt.Errorf("look for %s: %w", uri, ended(bounded, &passing))
	}
	return false, fmt.Errorf("look for %s: %w", uri, err)
}
