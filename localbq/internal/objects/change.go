package objects

import (
	"errors"
	"io"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Delete removes an object; generation 0 is the one that is there.
func (s *Store) Delete(bucket, name string, generation int64, c Conditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.lookup(bucket, name, generation)
	if err == nil {
		err = c.check(o)
	}
	if err != nil {
		return err
	}
	return s.remove(o)
}

// remove takes an object that is there away; s.mu is held.
func (s *Store) remove(o *Object) error {
	if o.Generation > s.floor {
		// A clock that starts anew must not give this number to another object.
		if err := s.medium.saveFloor(s.last); err != nil {
			return err
		}
		s.floor = s.last
	}
	if err := s.medium.removeObject(o); err != nil {
		return err
	}
	s.buckets[o.Bucket].remove(o.Name)
	s.drop(o.data)
	return nil
}

// Patch changes an object's attributes.
func (s *Store) Patch(bucket, name string, generation int64, c Conditions, change func(*Attributes) error) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.lookup(bucket, name, generation)
	if err == nil {
		err = c.check(o)
	}
	if err != nil {
		return Object{}, err
	}
	next := o.clone()
	if err := change(&next.Attributes); err != nil {
		return Object{}, err
	}
	next.Metageneration++
	next.Updated = s.now()
	if err := s.medium.saveObject(&next); err != nil {
		return Object{}, err
	}
	s.buckets[bucket].put(&next)
	return next.clone(), nil
}

// Source is an object to copy or compose from.
type Source struct {
	Bucket, Name string
	Generation   int64 // 0 is the one that is there
	Conditions   Conditions
}

// Copy makes an object of the bytes of another, with that one's attributes unless to has some.
func (s *Store) Copy(from Source, to Object, c Conditions, declared Declared) (Object, error) {
	r, err := s.OpenIf(from.Bucket, from.Name, from.Generation, from.Conditions)
	if err != nil {
		return Object{}, err
	}
	defer r.Close()
	if to.Attributes.empty() {
		to.Attributes = r.Object().Attributes
	}
	d, err := s.Draft(to, c)
	if err != nil {
		return Object{}, err
	}
	if err := d.add(r); err != nil {
		return Object{}, errors.Join(err, d.Discard())
	}
	if composed := r.Object(); composed.MD5 == nil {
		d.object.Components = composed.Components
	}
	return d.Publish(declared)
}

// maxSources is how many objects one can be composed of at once (Cloud Storage documentation, objects.compose).
const maxSources = 32

// Compose makes an object of the bytes of others, one behind the other.
func (s *Store) Compose(from []Source, to Object, c Conditions, declared Declared) (Object, error) {
	if n := len(from); n == 0 || n > maxSources {
		return Object{}, refusal.New(refusal.Invalid, "The number of source components provided (%d) is not between 1 and %d", n, maxSources)
	}
	d, err := s.Draft(to, c)
	if err != nil {
		return Object{}, err
	}
	for _, source := range from {
		if err := d.addFrom(source); err != nil {
			return Object{}, errors.Join(err, d.Discard())
		}
	}
	return d.Publish(declared)
}

func (d *Draft) addFrom(from Source) error {
	r, err := d.store.OpenIf(from.Bucket, from.Name, from.Generation, from.Conditions)
	if err != nil {
		return err
	}
	defer r.Close()
	d.object.Components += max(1, r.object.Components)
	return d.add(r)
}

func (d *Draft) add(r *Reader) error {
	_, err := io.Copy(d, io.NewSectionReader(r, 0, r.Size()))
	return err
}
