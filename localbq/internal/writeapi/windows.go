package writeapi

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// windows draws how long changes take to arrive, once for each change.
type windows struct {
	profile profile.Windows
	log     *audit.Log

	mu     sync.Mutex // guards the fields below
	random *rand.Rand
	drawn  map[windowKey]drawn
}

// windowKey is one definition of one table.
type windowKey struct {
	instance int64
	number   int
}

// drawn is the lengths for one definition.
type drawn struct{ deny, fresh, open time.Duration }

func (w *windows) of(t *store.Table, info *store.Info) drawn {
	if w.profile == (profile.Windows{}) {
		return drawn{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := windowKey{t.Instance(), info.Number}
	d, ok := w.drawn[key]
	if ok {
		return d
	}
	if info.Number == 0 {
		d.deny = w.profile.CreateDefaultAppend.Draw(w.random)
	}
	if info.Change.Adds {
		d.fresh = w.profile.AddNewConnection.Draw(w.random)
		d.open = w.profile.AddOpenConnection.Draw(w.random)
	}
	if info.Change.Relaxes {
		d.fresh = max(d.fresh, w.profile.RelaxNewConnection.Draw(w.random))
		d.open = max(d.open, w.profile.RelaxOpenConnection.Draw(w.random))
	}
	w.drawn[key] = d
	if d != (drawn{}) {
		e := w.log.Begin(audit.Record{
			RPC: "window", Table: info.Ref.Path(), Instance: key.instance, After: info.Version,
			Note: fmt.Sprintf("definition %d: denied %v, unknown to new connections %v, to open ones %v", info.Number, d.deny, d.fresh, d.open),
		})
		e.Done(audit.Sent)
	}
	return d
}

// tooFresh reports whether the table is so new that appends to it are still denied.
func (w *windows) tooFresh(t *store.Table, now time.Time) bool {
	first := t.Infos()[0]
	return !passed(first.Created, w.of(t, first).deny, now)
}

// passed reports whether a window that opened at start is over. None is over at once: versions run ahead of a clock that
// stands still, and so do the times made of them.
func passed(start time.Time, length time.Duration, now time.Time) bool {
	return length == 0 || !start.Add(length).After(now)
}

// known is the definition that a connection, opened when the store was at version opened, knows at now: changes arrive in
// order, each once its window has passed.
func (w *windows) known(t *store.Table, opened int64, now time.Time) *store.Info {
	infos := t.Infos()
	known := infos[0]
	for _, info := range infos[1:] {
		d := w.of(t, info)
		wait := d.fresh
		if opened < info.Version {
			wait = d.open
		}
		if !passed(info.Modified, wait, now) {
			break
		}
		known = info
	}
	return known
}
