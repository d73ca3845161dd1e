package writeapi

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// windows draws how long changes take to arrive, once for each change.
type windows struct {
	profile profile.Windows
	log     *audit.Log
	storms  *storm.Storms // what is held open beside what was drawn

	mu     sync.Mutex // guards the fields below
	random *rand.Rand
	drawn  map[windowKey]drawn
	denied map[denialKey]int // calls still to be denied
}

// denialKey is one kind of calls on one table.
type denialKey struct {
	instance int64
	method   string
}

// windowKey is one definition of one table.
type windowKey struct {
	instance int64
	number   int
}

// drawn is the lengths for one definition.
type drawn struct{ deny, fresh, open, ghost time.Duration }

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
		d.ghost = w.profile.RecreateGhost.Draw(w.random)
	}
	if info.Change.Adds {
		d.fresh = w.profile.AddNewConnection.Draw(w.random)
		d.open = w.profile.AddOpenConnection.Draw(w.random)
	}
	if info.Change.Relaxes {
		d.fresh = max(d.fresh, w.profile.RelaxNewConnection.Draw(w.random))
		d.open = max(d.open, w.profile.RelaxOpenConnection.Draw(w.random))
	}
	if info.Change.Drops {
		drop := w.profile.SchemaDrop.Draw(w.random)
		d.fresh, d.open = max(d.fresh, drop), max(d.open, drop)
	}
	w.drawn[key] = d
	if d != (drawn{}) {
		e := w.log.Begin(audit.Record{
			RPC: "window", Table: info.Ref.Path(), Instance: key.instance, After: info.Version,
			Note: fmt.Sprintf("definition %d: denied %v, unknown to new connections %v, to open ones %v, haunted %v",
				info.Number, d.deny, d.fresh, d.open, d.ghost),
		})
		e.Done(audit.Sent)
	}
	return d
}

// tooFresh reports whether the table is so new that appends to it are still denied.
func (w *windows) tooFresh(t *store.Table, now time.Time) bool {
	if _, _, on := w.storms.On(storm.CreateDefaultAppend, t.Instance()); on {
		return true
	}
	first := t.Infos()[0]
	return !passed(first.Created, w.of(t, first).deny, now)
}

// deniedBy is the window that denies a method.
var deniedBy = map[string]string{"CreateWriteStream": storm.CreateOpenStream, "FlushRows": storm.CreateFlush}

// denies reports whether a call on a table is denied because the table is fresh.
func (w *windows) denies(t *store.Table, method string, d profile.Denials, now time.Time) bool {
	if _, _, on := w.storms.On(deniedBy[method], t.Instance()); on {
		return true
	}
	if d == (profile.Denials{}) || passed(t.Infos()[0].Created, d.Within, now) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := denialKey{t.Instance(), method}
	left, drawn := w.denied[key]
	if !drawn {
		if left = d.Draw(w.random); left > 0 {
			e := w.log.Begin(audit.Record{
				RPC: "window", Table: t.Ref().Path(), Instance: key.instance,
				Note: fmt.Sprintf("%s is denied %d times while the table is fresh", method, left),
			})
			e.Done(audit.Sent)
		}
	}
	w.denied[key] = max(0, left-1)
	return left > 0
}

// staleFor is how long a connection that is opened now to a stream of t holds a stale count of its rows.
func (w *windows) staleFor(t *store.Table, now time.Time) time.Duration {
	if _, until, on := w.storms.On(storm.ReconnectOffset, t.Instance()); on {
		return until.Sub(now)
	}
	if w.profile.ReconnectOffset == (profile.Window{}) {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.profile.ReconnectOffset.Draw(w.random)
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
		wait, held := d.fresh, storm.NewConnection
		if opened < info.Version {
			wait, held = d.open, storm.OpenConnection
		}
		if !passed(info.Modified, wait, now) {
			break
		}
		if from, _, on := w.storms.On(held, t.Instance()); on && !passed(info.Modified, wait, from) || on && !info.Modified.Before(from) {
			break
		}
		known = info
	}
	return known
}
