package objects

import (
	"io"
	"time"
)

// Hide makes an object look as if it were not there, to readers and listings, for a time. What is written under its name
// meanwhile is hidden too.
func (s *Store) Hide(bucket, name string, length time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.lookup(bucket, name, 0); err != nil {
		return err
	}
	s.hidden[bucket+"/"+name] = s.clock.Now().Add(length)
	return nil
}

// hides reports whether an object is hidden now; s.mu is held.
func (s *Store) hides(o *Object) bool {
	if len(s.hidden) == 0 {
		return false
	}
	until, hidden := s.hidden[o.Bucket+"/"+o.Name]
	return hidden && until.After(s.clock.Now())
}

// Corrupt replaces an object by one of a new generation and the same size, whose middle half has all its bits turned.
func (s *Store) Corrupt(bucket, name string) error {
	r, err := s.OpenIf(bucket, name, 0, Conditions{})
	if err != nil {
		return err
	}
	defer r.Close()
	damaged := make([]byte, r.Size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.Size()), damaged); err != nil {
		return err
	}
	for i := len(damaged) / 4; i < len(damaged)-len(damaged)/4; i++ {
		damaged[i] = ^damaged[i]
	}
	d, err := s.Draft(Object{Bucket: bucket, Name: name, Attributes: r.Object().Attributes}, Conditions{})
	if err != nil {
		return err
	}
	if _, err := d.Write(damaged); err != nil {
		return err
	}
	_, err = d.Publish(Declared{})
	return err
}
