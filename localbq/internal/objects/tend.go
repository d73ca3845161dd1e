package objects

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// alarm is when the store looks next for what is over: uploads that have expired, objects that lifecycle rules delete.
type alarm struct {
	mu     sync.Mutex // guards the fields below; never held while s.mu is asked for
	at     time.Time  // zero when no timer is set
	timer  clock.Timer
	closed bool
	tends  sync.WaitGroup
}

// wake makes sure that the store looks around at a time. s.mu must not be held.
func (s *Store) wake(at time.Time) {
	a := &s.alarm
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at = at
	// The least that is not nothing, because a manual clock would call at once, with our lock held.
	a.timer = s.clock.AfterFunc(max(at.Sub(s.clock.Now()), 1), s.tend)
}

// silence ends the alarm and waits until nobody looks around.
func (a *alarm) silence() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.tends.Wait()
}

// tend removes what is over and sets the alarm anew.
func (s *Store) tend() {
	a := &s.alarm
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.at = time.Time{}
	a.tends.Add(1)
	a.mu.Unlock()
	defer a.tends.Done()
	now := s.clock.Now()
	for _, next := range []time.Time{s.expireUploads(now), s.expireObjects(now)} {
		if !next.IsZero() {
			s.wake(next)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expireUploads ends the uploads that have taken too long, and tells when the next one will have.
func (s *Store) expireUploads(now time.Time) (next time.Time) {
	s.mu.RLock()
	var due []*Upload
	for _, u := range s.uploads {
		if at := u.expires(); at.After(now) {
			next = earlier(next, at)
		} else {
			due = append(due, u)
		}
	}
	s.mu.RUnlock()
	for _, u := range due {
		if !u.mu.TryLock() { // a chunk is coming in
			next = earlier(next, now.Add(time.Minute))
			continue
		}
		if err := u.end(); err != nil {
			s.logger.Error("expired upload not removed", "upload", u.ID, "error", err)
		}
		u.mu.Unlock()
	}
	return next
}

// expireObjects deletes what lifecycle rules delete, and tells when there will be more.
func (s *Store) expireObjects(now time.Time) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		if len(b.DeleteAges) == 0 {
			continue
		}
		for _, o := range slices.Clone(b.objects) {
			at := b.ends(o)
			if at.IsZero() || at.After(now) {
				next = earlier(next, at)
			} else if err := s.remove(o); err != nil {
				s.logger.Error("lifecycle rule not applied", "bucket", o.Bucket, "object", o.Name, "error", err)
			}
		}
	}
	return next
}

// aging sets the alarm for an object that a lifecycle rule will delete. s.mu must not be held.
func (s *Store) aging(o *Object) {
	s.mu.RLock()
	var at time.Time
	if b := s.buckets[o.Bucket]; b != nil {
		at = b.ends(o)
	}
	s.mu.RUnlock()
	if !at.IsZero() {
		s.wake(at)
	}
}

// ends is when lifecycle rules delete an object; zero is never.
func (b *Bucket) ends(o *Object) (at time.Time) {
	for _, rule := range b.DeleteAges {
		if rule.matches(o.Name) {
			at = earlier(at, o.Created.Add(time.Duration(rule.Days)*24*time.Hour))
		}
	}
	return at
}

func (a *Age) matches(name string) bool {
	return (len(a.Prefixes) == 0 || slices.ContainsFunc(a.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })) &&
		(len(a.Suffixes) == 0 || slices.ContainsFunc(a.Suffixes, func(p string) bool { return strings.HasSuffix(name, p) }))
}
