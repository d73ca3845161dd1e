package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/engine"
)

// Memory is a Store in memory, for tests that run many jobs. The zero value is ready.
type Memory struct {
	mu   sync.Mutex // guards jobs
	jobs map[string]map[int64][]byte
}

// Put implements engine.Store.
func (m *Memory) Put(ctx context.Context, job string, id int64, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == nil {
		m.jobs = map[string]map[int64][]byte{}
	}
	if m.jobs[job] == nil {
		m.jobs[job] = map[int64][]byte{}
	}
	if _, taken := m.jobs[job][id]; taken {
		return fmt.Errorf("publish checkpoint %d: %w", id, engine.ErrCheckpointExists)
	}
	m.jobs[job][id] = bytes.Clone(data)
	return nil
}

// List implements engine.Store.
func (m *Memory) List(_ context.Context, job string) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.jobs[job])), nil
}

// Load implements engine.Store.
func (m *Memory) Load(_ context.Context, job string, id int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.jobs[job][id]
	if !ok {
		return nil, fmt.Errorf("load checkpoint %d: %w", id, engine.ErrNoCheckpoint)
	}
	return bytes.Clone(data), nil
}

// Delete implements engine.Store.
func (m *Memory) Delete(_ context.Context, job string, id int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs[job], id)
	return nil
}

// Replace puts other bytes in the place of a checkpoint, as a disk may.
func (m *Memory) Replace(job string, id int64, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == nil {
		m.jobs = map[string]map[int64][]byte{}
	}
	if m.jobs[job] == nil {
		m.jobs[job] = map[int64][]byte{}
	}
	m.jobs[job][id] = bytes.Clone(data)
}
