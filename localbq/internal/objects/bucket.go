package objects

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Bucket is a bucket's attributes. The JSON form is what a folder keeps.
type Bucket struct {
	Name           string            `json:"name"`
	Project        string            `json:"project"`
	Location       string            `json:"location"`
	StorageClass   string            `json:"storageClass"`
	Created        time.Time         `json:"created"`
	Updated        time.Time         `json:"updated"`
	Metageneration int64             `json:"metageneration"`
	Labels         map[string]string `json:"labels,omitempty"`
	// DeleteAges are the ages in days at which lifecycle rules delete objects.
	DeleteAges []Age `json:"deleteAges,omitempty"`
	// Access is what was said about who may do what, which the service keeps and does not act on.
	Access json.RawMessage `json:"access,omitempty"`
}

// Age is a lifecycle rule that deletes objects.
type Age struct {
	Days int64 `json:"days"`
	// Prefixes and Suffixes limit it to names; nil is all.
	Prefixes []string `json:"prefixes,omitempty"`
	Suffixes []string `json:"suffixes,omitempty"`
}

func (b *Bucket) clone() Bucket {
	c := *b
	c.Labels, c.DeleteAges = maps.Clone(b.Labels), slices.Clone(b.DeleteAges)
	return c
}

// bucket is a bucket with what is in it.
type bucket struct {
	Bucket
	objects []*Object // by name
}

// find is where an object is, or would be.
func (b *bucket) find(name string) (int, bool) {
	return slices.BinarySearchFunc(b.objects, name, func(o *Object, name string) int { return cmp.Compare(o.Name, name) })
}

// get is the object of a name, nil where there is none.
func (b *bucket) get(name string) *Object {
	if at, ok := b.find(name); ok {
		return b.objects[at]
	}
	return nil
}

// put makes an object the one of its name and returns the one it replaces.
func (b *bucket) put(o *Object) (replaced *Object) {
	at, ok := b.find(o.Name)
	if ok {
		replaced, b.objects[at] = b.objects[at], o
		return replaced
	}
	b.objects = slices.Insert(b.objects, at, o)
	return nil
}

func (b *bucket) remove(name string) {
	if at, ok := b.find(name); ok {
		b.objects = slices.Delete(b.objects, at, at+1)
	}
}

// InsertBucket makes a bucket. Location and storage class have the service's defaults.
func (s *Store) InsertBucket(b Bucket) (Bucket, error) {
	if err := checkBucketName(b.Name); err != nil {
		return Bucket{}, err
	}
	b = b.clone()
	b.Location, b.StorageClass = strings.ToUpper(cmp.Or(b.Location, "US")), cmp.Or(b.StorageClass, "STANDARD")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[b.Name] != nil {
		return Bucket{}, refusal.New(refusal.Conflict, "Your previous request to create the named bucket succeeded and you already own it.")
	}
	b.Created = s.now()
	b.Updated, b.Metageneration = b.Created, 1
	if err := s.medium.saveBucket(&b); err != nil {
		return Bucket{}, err
	}
	s.buckets[b.Name] = &bucket{Bucket: b}
	return b.clone(), nil
}

// Bucket is the attributes of a bucket.
func (s *Store) Bucket(name string, c Conditions) (Bucket, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, err := s.bucket(name)
	if err != nil {
		return Bucket{}, err
	}
	return b.clone(), c.compare(true, 0, b.Metageneration)
}

// Buckets are a project's buckets whose names begin with prefix, by name.
func (s *Store) Buckets(project, prefix string) []Bucket {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Bucket
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		if b := s.buckets[name]; b.Project == project && strings.HasPrefix(name, prefix) {
			out = append(out, b.clone())
		}
	}
	return out
}

// PatchBucket changes the attributes of a bucket that may change: storage class, labels, ages and access.
func (s *Store) PatchBucket(name string, c Conditions, change func(*Bucket) error) (Bucket, error) {
	patched, err := s.patchBucket(name, c, change)
	if err == nil {
		s.wake(s.now()) // what a new rule deletes may be there already
	}
	return patched, err
}

func (s *Store) patchBucket(name string, c Conditions, change func(*Bucket) error) (Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucket(name)
	if err == nil {
		err = c.compare(true, 0, b.Metageneration)
	}
	if err != nil {
		return Bucket{}, err
	}
	next := b.clone()
	if err := change(&next); err != nil {
		return Bucket{}, err
	}
	next.StorageClass = cmp.Or(next.StorageClass, "STANDARD")
	next.Metageneration++
	next.Updated = s.now()
	if err := s.medium.saveBucket(&next); err != nil {
		return Bucket{}, err
	}
	b.Bucket = next
	return next.clone(), nil
}

// DeleteBucket removes an empty bucket.
func (s *Store) DeleteBucket(name string, c Conditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucket(name)
	if err != nil {
		return err
	}
	if err := c.compare(true, 0, b.Metageneration); err != nil {
		return err
	}
	if len(b.objects) > 0 {
		return refusal.New(refusal.Conflict, "The bucket you tried to delete is not empty.")
	}
	if err := s.medium.removeBucket(name); err != nil {
		return err
	}
	delete(s.buckets, name)
	return nil
}

// bucket finds a bucket; s.mu is held.
func (s *Store) bucket(name string) (*bucket, error) {
	if b := s.buckets[name]; b != nil {
		return b, nil
	}
	return nil, refusal.New(refusal.NotFound, "The specified bucket does not exist.")
}
