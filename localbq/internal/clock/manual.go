package clock

import (
	"container/heap"
	"sync"
	"time"
)

// Manual stands still until Advance moves it.
type Manual struct {
	advancing sync.Mutex // held by Advance, so that two of them take turns

	mu      sync.Mutex // guards the fields below
	now     time.Time
	pending queue
	armed   uint64 // timers made so far: ties in due time fire in the order they were made
}

// Start is a time for manual clocks to start at, so that tests get equal figures.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewManual is a clock that says start.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now is the time that the last Advance reached.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc calls f in the Advance that reaches d from now, or at once where d is not positive.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	t := &manualTimer{clock: m, call: f, index: -1}
	if d <= 0 {
		f()
		return t
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed++
	t.due, t.order = m.now.Add(d), m.armed
	heap.Push(&m.pending, t)
	return t
}

// Advance moves the clock by d and fires every timer that falls due, in order of due time, before it returns. While a
// timer runs the clock shows that timer's due time, and timers made by it fire in the same call if they are due.
func (m *Manual) Advance(d time.Duration) {
	m.advancing.Lock()
	defer m.advancing.Unlock()
	target := m.Now().Add(d)
	for {
		call := m.next(target)
		if call == nil {
			return
		}
		call()
	}
}

// next takes the first timer due by target and moves the clock to it; without one it moves the clock to target.
func (m *Manual) next(target time.Time) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 || m.pending[0].due.After(target) {
		if target.After(m.now) {
			m.now = target
		}
		return nil
	}
	t := heap.Pop(&m.pending).(*manualTimer)
	m.now = t.due
	return t.call
}

type manualTimer struct {
	clock *Manual
	due   time.Time
	order uint64
	call  func()
	index int // in the queue; -1 when fired or stopped
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.pending, t.index)
	return true
}

// queue is a heap of timers by due time, then by age.
type queue []*manualTimer

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].order < q[j].order
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *queue) Push(x any) {
	t := x.(*manualTimer)
	t.index = len(*q)
	*q = append(*q, t)
}
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}
