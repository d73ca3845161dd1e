package storagewrite

import "slices"

// entry is a batch that was handed to a connection.
type entry struct {
	target *Target
	batch  *batch
	call   *call
	via    appender
}

// inflight is the batches of one writer whose appends are not known to have succeeded, in order of sending.
type inflight struct {
	entries []entry
	swept   int // length after the last sweep
}

func (f *inflight) add(e entry) { f.entries = append(f.entries, e) }

// sweep forgets the appends that have succeeded and calls done for each, then returns the first failed one, which stays.
func (f *inflight) sweep(done func(entry)) (entry, bool) {
	kept := f.entries[:0]
	var failed entry
	found := false
	for _, e := range f.entries {
		switch {
		case !e.call.finished():
			kept = append(kept, e)
		case e.call.judge() == nil:
			done(e)
		default:
			kept = append(kept, e)
			if !found {
				failed, found = e, true
			}
		}
	}
	clear(f.entries[len(kept):])
	f.entries, f.swept = kept, len(kept)
	return failed, found
}

// due reports whether so many were added since the last sweep that another one costs next to nothing for each.
func (f *inflight) due() bool { return len(f.entries) > 2*f.swept+16 }

// of returns the first entry of a target.
func (f *inflight) of(t *Target) (entry, bool) {
	for _, e := range f.entries {
		if e.target == t {
			return e, true
		}
	}
	return entry{}, false
}

// remove forgets an entry.
func (f *inflight) remove(c *call) {
	for i, e := range f.entries {
		if e.call != c {
			continue
		}
		if i == 0 { // the usual one, and cheap
			f.entries[0] = entry{}
			f.entries = f.entries[1:]
		} else {
			f.entries = slices.Delete(f.entries, i, i+1)
		}
		return
	}
}
