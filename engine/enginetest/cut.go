package enginetest

import (
	"context"

	"github.com/millrace-dev/millrace/engine"
)

// Process is where a store is called from; streamtest.Process is one.
type Process interface {
	// Step calls do, unless the process is dead, and answers its error, unless the process dies over it.
	Step(name string, do func() error) error
}

// InStore makes every call of a store a step of the process.
func InStore(p Process, s engine.Store) engine.Store { return cutStore{s, p} }

type cutStore struct {
	engine.Store
	p Process
}

func (s cutStore) Put(ctx context.Context, job string, id int64, data []byte) error {
	return s.p.Step("put checkpoint", func() error { return s.Store.Put(ctx, job, id, data) })
}

func (s cutStore) List(ctx context.Context, job string) (ids []int64, err error) {
	err = s.p.Step("list checkpoints", func() error {
		ids, err = s.Store.List(ctx, job)
		return err
	})
	return ids, err
}

func (s cutStore) Load(ctx context.Context, job string, id int64) (data []byte, err error) {
	err = s.p.Step("load checkpoint", func() error {
		data, err = s.Store.Load(ctx, job, id)
		return err
	})
	return data, err
}

func (s cutStore) Delete(ctx context.Context, job string, id int64) error {
	return s.p.Step("delete checkpoint", func() error { return s.Store.Delete(ctx, job, id) })
}
