package deadletter

// Fold finds the letters that are in a queue more than once. It remembers 16 bytes of each. The zero value is ready to use.
type Fold struct {
	seen map[[16]byte]struct{}
}

// First reports whether the letter is the first of its kind.
func (f *Fold) First(l *Letter) bool {
	id := l.Identity()
	if _, again := f.seen[id]; again {
		return false
	}
	if f.seen == nil {
		f.seen = map[[16]byte]struct{}{}
	}
	f.seen[id] = struct{}{}
	return true
}
