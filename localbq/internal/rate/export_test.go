package rate

// Len is the number of keys that are kept.
func (w *Windows[K]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.times)
}
