package objects

import (
	"cmp"
	"context"
	"crypto/md5"
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums are the checksums of bytes that grow.
type sums struct {
	crc  hash.Hash32
	md5  hash.Hash
	size int64
}

func newSums() *sums { return &sums{crc: crc32.New(castagnoli), md5: md5.New()} }

func (s *sums) Write(b []byte) (int, error) {
	s.crc.Write(b)
	s.md5.Write(b)
	s.size += int64(len(b))
	return len(b), nil
}

// Declared is what a client says the bytes will turn out to be; nil says nothing.
type Declared struct {
	CRC32C *uint32
	MD5    []byte
}

// Draft is an object that is being made. It belongs to one goroutine.
type Draft struct {
	store  *Store
	object Object
	cond   Conditions
	data   data
	sums   *sums
	over   bool
}

// Draft begins an object of a bucket that is there. Of the object, bucket, name and attributes count.
func (s *Store) Draft(o Object, c Conditions) (*Draft, error) {
	if err := s.checkDraft(&o, c); err != nil {
		return nil, err
	}
	d, err := s.medium.create()
	if err != nil {
		return nil, err
	}
	return &Draft{store: s, object: o.clone(), cond: c, data: d, sums: newSums()}, nil
}

// checkDraft refuses early what publish would refuse.
func (s *Store) checkDraft(o *Object, c Conditions) error {
	if err := checkName(o.Name); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, err := s.bucket(o.Bucket)
	if err != nil {
		return err
	}
	return c.check(b.get(o.Name))
}

// Write adds bytes at the end.
func (d *Draft) Write(b []byte) (int, error) {
	n, err := d.data.Write(b)
	d.sums.Write(b[:n])
	return n, err
}

// Publish makes the object visible, if its conditions hold now and its bytes are what was declared. Whatever comes of it, the
// draft is over.
func (d *Draft) Publish(declared Declared) (Object, error) {
	if d.over {
		return Object{}, errors.New("objects: the draft is over")
	}
	d.over = true
	o, err := d.publish(declared)
	if err != nil {
		return Object{}, errors.Join(err, d.discard())
	}
	return o, d.data.Close()
}

func (d *Draft) publish(declared Declared) (Object, error) {
	o := &d.object
	o.Size, o.CRC32C, o.MD5, o.data = d.sums.size, d.sums.crc.Sum32(), d.sums.md5.Sum(nil), d.data.name()
	if err := declared.check(o); err != nil {
		return Object{}, err
	}
	if o.Components > 0 {
		o.MD5 = nil // as the service has it (Cloud Storage documentation, "Composite objects")
	}
	if err := d.data.sync(); err != nil {
		return Object{}, err
	}
	return d.store.publishDraft(o, d.cond)
}

func (s *Store) publishDraft(o *Object, c Conditions) (Object, error) {
	s.mu.Lock()
	published, err := s.publish(o, c)
	s.mu.Unlock()
	if err == nil {
		s.aging(&published)
	}
	return published, err
}

func (d Declared) check(o *Object) error {
	switch {
	case d.CRC32C != nil && *d.CRC32C != o.CRC32C:
		return refusal.New(refusal.Invalid, "Provided CRC32C %q doesn't match calculated CRC32C %q.", EncodeCRC32C(*d.CRC32C), EncodeCRC32C(o.CRC32C))
	case d.MD5 != nil && string(d.MD5) != string(o.MD5):
		return refusal.New(refusal.Invalid, "Provided MD5 hash %q doesn't match calculated MD5 hash %q.", EncodeMD5(d.MD5), EncodeMD5(o.MD5))
	}
	return nil
}

// Discard ends a draft that has not been published. It may be called more than once, and after Publish, when it does nothing.
func (d *Draft) Discard() error {
	if d.over {
		return nil
	}
	d.over = true
	return d.discard()
}

func (d *Draft) discard() error {
	err := d.data.Close()
	d.store.drop(d.data.name())
	return err
}

// publish gives an object its generation and makes it the one of its name; s.mu is held.
func (s *Store) publish(o *Object, c Conditions) (Object, error) {
	b, err := s.bucket(o.Bucket)
	if err == nil {
		err = c.check(b.get(o.Name))
	}
	if err != nil {
		return Object{}, err
	}
	o.Generation, o.Metageneration = s.generation(), 1
	o.Created = s.now()
	o.Updated = o.Created
	o.StorageClass = cmp.Or(o.StorageClass, b.StorageClass)
	if err := s.medium.saveObject(o); err != nil {
		return Object{}, err
	}
	if replaced := b.put(o); replaced != nil {
		s.drop(replaced.data)
	}
	return o.clone(), nil
}

// Create begins an object. Closing the writer publishes it; once ctx is done nothing is published and Close returns its cause.
func (s *Store) Create(ctx context.Context, bucket, name string) (io.WriteCloser, error) {
	d, err := s.Draft(Object{Bucket: bucket, Name: name}, Conditions{})
	if err != nil {
		return nil, err
	}
	return &creation{ctx: ctx, draft: d}, nil
}

// creation is a draft that its Close publishes. Its context is that of the one call that it is.
type creation struct {
	ctx   context.Context
	draft *Draft
}

func (c *creation) Write(b []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.draft.Write(b)
}

func (c *creation) Close() error {
	if err := context.Cause(c.ctx); err != nil {
		return errors.Join(err, c.draft.Discard())
	}
	_, err := c.draft.Publish(Declared{})
	return err
}
