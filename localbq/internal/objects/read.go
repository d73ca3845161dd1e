package objects

import (
	"context"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// List is the objects of a bucket whose names begin with prefix, by name. What was acknowledged before is in it.
func (s *Store) List(_ context.Context, bucket, prefix string) ([]Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, err := s.bucket(bucket)
	if err != nil {
		return nil, err
	}
	first, _ := b.find(prefix)
	var out []Object
	for _, o := range b.objects[first:] {
		if !strings.HasPrefix(o.Name, prefix) {
			break
		}
		if s.hides(o) {
			continue
		}
		out = append(out, o.clone())
	}
	return slices.Clip(out), nil
}

// Get is the attributes of an object; generation 0 is the one that is there.
func (s *Store) Get(bucket, name string, generation int64, c Conditions) (Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, err := s.lookup(bucket, name, generation)
	if err != nil {
		return Object{}, err
	}
	return o.clone(), c.check(o)
}

// lookup finds an object; s.mu is held.
func (s *Store) lookup(bucket, name string, generation int64) (*Object, error) {
	b, err := s.bucket(bucket)
	if err != nil {
		return nil, err
	}
	if o := b.get(name); o != nil && (generation == 0 || generation == o.Generation) && !s.hides(o) {
		return o, nil
	}
	object := bucket + "/" + name
	return nil, refusal.New(refusal.NotFound, "No such object: %s", object)
}

// Reader reads one object. It is unaffected by what happens to the object's name meanwhile. Safe for concurrent use.
type Reader struct {
	object Object
	data   data
}

// Open opens an object for reading; generation 0 is the one that is there.
func (s *Store) Open(_ context.Context, bucket, name string, generation int64) (*Reader, error) {
	return s.OpenIf(bucket, name, generation, Conditions{})
}

// OpenIf is Open under conditions.
func (s *Store) OpenIf(bucket, name string, generation int64, c Conditions) (*Reader, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, err := s.lookup(bucket, name, generation)
	if err == nil {
		err = c.check(o)
	}
	if err != nil {
		return nil, err
	}
	d, err := s.medium.open(o.data)
	if err != nil {
		return nil, err
	}
	return &Reader{object: o.clone(), data: d}, nil
}

// Object is the attributes of the object being read.
func (r *Reader) Object() Object { return r.object }

// Size is the number of bytes.
func (r *Reader) Size() int64 { return r.object.Size }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(b []byte, at int64) (int, error) { return r.data.ReadAt(b, at) }

// Close gives the bytes free.
func (r *Reader) Close() error { return r.data.Close() }
