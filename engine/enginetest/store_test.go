package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	TestStore(t, StoreHarness{New: func(TB) (engine.Store, func() engine.Store) {
		m := &Memory{}
		return m, func() engine.Store { return m }
	}})
}

// recorder is a TB that takes note of failures.
type recorder struct {
	*testing.T
	mu     sync.Mutex // guards failed and said
	failed bool
	said   string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.said += fmt.Sprintf(format, args...) + "\n"
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// badStore is Memory with methods replaced.
type badStore struct {
	*Memory
	put    func(ctx context.Context, job string, id int64, data []byte) error
	list   func(job string) ([]int64, error)
	load   func(job string, id int64) ([]byte, error)
	delete func(job string, id int64) error
}

func (s *badStore) Put(ctx context.Context, job string, id int64, data []byte) error {
	if s.put != nil {
		return s.put(ctx, job, id, data)
	}
	return s.Memory.Put(ctx, job, id, data)
}

func (s *badStore) List(ctx context.Context, job string) ([]int64, error) {
	if s.list != nil {
		return s.list(job)
	}
	return s.Memory.List(ctx, job)
}

func (s *badStore) Load(ctx context.Context, job string, id int64) ([]byte, error) {
	if s.load != nil {
		return s.load(job, id)
	}
	return s.Memory.Load(ctx, job, id)
}

func (s *badStore) Delete(ctx context.Context, job string, id int64) error {
	if s.delete != nil {
		return s.delete(job, id)
	}
	return s.Memory.Delete(ctx, job, id)
}

func (m *Memory) get(job string, id int64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[job][id]
}

func TestStoreChecks(t *testing.T) {
	background := context.Background()
	proved := map[string]bool{}
	for _, b := range []struct {
		name  string
		fault func(s *badStore)
		fails []string
	}{
		{"takes nothing for missing", func(s *badStore) {
			s.load = func(job string, id int64) ([]byte, error) {
				data, err := s.Memory.Load(background, job, id)
				if err == nil && len(data) == 0 {
					return nil, fmt.Errorf("%w: empty", engine.ErrNoCheckpoint)
				}
				return data, err
			}
		}, []string{"gives_back_what_was_put"}},
		{"keeps the caller's bytes", func(s *badStore) {
			s.load = func(job string, id int64) ([]byte, error) {
				if _, err := s.Memory.Load(background, job, id); err != nil {
					return nil, err
				}
				return s.get(job, id), nil
			}
		}, []string{"keeps_its_own_copy"}},
		{"lists by name", func(s *badStore) {
			s.list = func(job string) ([]int64, error) {
				ids, err := s.Memory.List(background, job)
				slices.SortFunc(ids, func(a, b int64) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				return ids, err
			}
		}, []string{"lists_ids_in_order"}},
		{"takes the same again", func(s *badStore) {
			s.put = func(ctx context.Context, job string, id int64, data []byte) error {
				if bytes.Equal(s.get(job, id), data) && len(data) > 2 {
					return nil
				}
				return s.Memory.Put(ctx, job, id, data)
			}
		}, []string{"refuses_an_id_that_is_taken"}},
		{"two may win", func(s *badStore) {
			var times atomic.Int64
			s.put = func(ctx context.Context, job string, id int64, data []byte) error {
				err := s.Memory.Put(ctx, job, id, data)
				if err != nil && len(data) == 1 && times.Add(1) == 5 {
					return nil
				}
				return err
			}
		}, []string{"one_of_many_at_once_wins"}},
		{"makes up what is missing", func(s *badStore) {
			s.load = func(job string, id int64) ([]byte, error) {
				if job == "other" {
					return nil, nil
				}
				return s.Memory.Load(background, job, id)
			}
		}, []string{"misses_what_is_not_there"}},
		{"minds deleting what is gone", func(s *badStore) {
			s.delete = func(job string, id int64) error {
				if s.get(job, id) == nil {
					return engine.ErrNoCheckpoint
				}
				return s.Memory.Delete(background, job, id)
			}
		}, []string{"deletes"}},
		{"lists by prefix", func(s *badStore) {
			s.delete = func(job string, id int64) error {
				if job == "job" && s.get("job-2", 2) != nil {
					_ = s.Memory.Delete(background, "job-2", id)
				}
				return s.Memory.Delete(background, job, id)
			}
		}, []string{"keeps_jobs_apart"}},
		{"cuts long names", func(s *badStore) {
			cut := func(job string) string { return job[:min(len(job), 255)] }
			s.put = func(ctx context.Context, job string, id int64, data []byte) error {
				return s.Memory.Put(ctx, cut(job), id, data)
			}
			s.load = func(job string, id int64) ([]byte, error) { return s.Memory.Load(background, cut(job), id) }
			s.list = func(job string) ([]int64, error) { return s.Memory.List(background, cut(job)) }
		}, []string{"takes_any_job_name"}},
		{"does not heed its context", func(s *badStore) {
			s.put = func(_ context.Context, job string, id int64, data []byte) error {
				return s.Memory.Put(background, job, id, data)
			}
		}, []string{"cancelled_put_publishes_nothing"}},
		{"cuts large checkpoints", func(s *badStore) {
			s.put = func(ctx context.Context, job string, id int64, data []byte) error {
				return s.Memory.Put(ctx, job, id, data[:min(len(data), 1<<20)])
			}
		}, []string{"takes_large_checkpoints"}},
		{"forgets with the process", nil, []string{"survives_the_process"}},
	} {
		h := StoreHarness{New: func(TB) (engine.Store, func() engine.Store) {
			s := &badStore{Memory: &Memory{}}
			if b.fault == nil {
				return s, func() engine.Store { return &Memory{} }
			}
			b.fault(s)
			return s, func() engine.Store { return s }
		}}
		for _, c := range storeChecks {
			r := &recorder{T: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.on(r, h)
			}()
			<-done
			if want := slices.Contains(b.fails, c.name); r.failed != want {
				t.Errorf("%s: check %s: failed %v, want %v\n%s", b.name, c.name, r.failed, want, r.said)
			}
		}
		for _, name := range b.fails {
			proved[name] = true
		}
	}
	for _, c := range storeChecks {
		if !proved[c.name] {
			t.Errorf("no broken store proves that check %s can fail", c.name)
		}
	}
}
