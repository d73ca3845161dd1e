package storagewrite

import (
	"sync"
	"sync/atomic"
)

// sideBySide calls do with 0 to count-1, n at a time, and returns when all calls have. A panic of one of them is the caller's,
// once all have ended.
func sideBySide(n, count int, do func(i int)) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	var wg sync.WaitGroup
	for range min(n, count) {
		wg.Go(func() { // joined below
			defer func() {
				if p := recover(); p != nil {
					panicked.CompareAndSwap(nil, &p)
				}
			}()
			for i := int(next.Add(1)); i <= count && panicked.Load() == nil; i = int(next.Add(1)) {
				do(i - 1)
			}
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}
