package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// storeTimeout bounds one call of the store. Publishing a checkpoint is one call, of a few kilobytes as a rule; a store
// that needs longer than this counts as failing, which a run tolerates for a while.
const storeTimeout = time.Minute

// history is what a run knows of its job's checkpoints: where to start from, which are its own, which may go.
type history struct {
	store Store
	job   string
	run   RunID
	keep  int
	log   *slog.Logger

	mu    sync.Mutex
	base  int64           // the highest id in the store when the run started
	used  int64           // the highest id that this run has tried
	known map[int64]*fate // what is known of the ids in the store
}

// fate is what is known of one id of the store.
type fate struct {
	ours      bool
	savepoint bool
	unusable  bool // damaged, or not this job's
}

func newHistory(store Store, job string, run RunID, keep int, log *slog.Logger) *history {
	return &history{store: store, job: job, run: run, keep: keep, log: log, known: map[int64]*fate{}}
}

// open looks at the store for the first time and answers the checkpoint that from means; nil is a fresh start.
func (h *history) open(ctx context.Context, from From) (*Checkpoint, error) {
	ids, err := h.list(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		h.base = ids[len(ids)-1]
		h.used = h.base
	}
	switch {
	case from == None:
		return nil, nil
	case from > 0:
		return h.exactly(ctx, int64(from), ids)
	}
	return h.newest(ctx, ids, func(*Checkpoint) bool { return true })
}

// probe asks the store whether it can be written to, where it can tell.
func (h *history) probe(ctx context.Context) error {
	s, ok := h.store.(interface {
		Probe(ctx context.Context, job string) error
	})
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.Probe(bounded, h.job)
}

func (h *history) exactly(ctx context.Context, id int64, ids []int64) (*Checkpoint, error) {
	c, err := h.load(ctx, id)
	if errors.Is(err, ErrNoCheckpoint) {
		return nil, fmt.Errorf("%w; the store has %s", err, theIDs(ids))
	}
	return c, err
}

func theIDs(ids []int64) string {
	if len(ids) == 0 {
		return "none of this job"
	}
	return fmt.Sprint(ids)
}

// reopen answers the checkpoint to go on from after a failed attempt: the newest that this run has published, even
// where it had no answer, or start, with which it began.
func (h *history) reopen(ctx context.Context, start *Checkpoint) (*Checkpoint, error) {
	ids, err := h.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.refuseOthers(ctx, ids); err != nil {
		return nil, err
	}
	c, err := h.newest(ctx, after(ids, h.base), func(c *Checkpoint) bool { return c.Run == h.run })
	if c == nil && err == nil {
		return start, nil
	}
	return c, err
}

func (h *history) newest(ctx context.Context, ids []int64, wanted func(*Checkpoint) bool) (*Checkpoint, error) {
	for _, id := range slices.Backward(ids) {
		switch c, err := h.load(ctx, id); {
		case errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoCheckpoint):
			// It does not exist, or not any more; load has logged it.
		case err != nil:
			return nil, err
		case wanted(c):
			return c, nil
		}
	}
	return nil, nil
}

func after(ids []int64, id int64) []int64 {
	i, found := slices.BinarySearch(ids, id)
	if found {
		i++
	}
	return ids[i:]
}

// nextID answers an id that is in nobody's use, as far as is known.
func (h *history) nextID() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used++
	return h.used
}

// publish stores c, and makes sure that no other run has published one since this run started: had it, then both went on
// from the same checkpoint, and only one may commit what it wrote.
//
// It answers the size, and the ids in the store.
func (h *history) publish(ctx context.Context, c *Checkpoint) (size int, ids []int64, err error) {
	data := c.Encode()
	if err := h.put(ctx, c, data); err != nil {
		return 0, nil, err
	}
	h.note(c.ID, fate{ours: true, savepoint: c.Savepoint})
	ids, err = h.list(ctx)
	if err != nil {
		return 0, nil, err
	}
	if err := h.refuseOthers(ctx, ids); err != nil {
		h.withdraw(ctx, c.ID)
		return 0, nil, err
	}
	return len(data), ids, nil
}

func (h *history) put(ctx context.Context, c *Checkpoint, data []byte) error {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := h.store.Put(bounded, h.job, c.ID, data)
	if !errors.Is(err, ErrCheckpointExists) {
		return err
	}
	// A store's client may have sent it twice and heard the second answer only.
	if there, err := h.load(ctx, c.ID); err != nil {
		return err
	} else if there.Run != h.run {
		return &ConflictError{h.job, c.ID}
	}
	return nil
}

// withdraw takes back a checkpoint that must not be gone on from, as far as it can: it is older than the other run's
// newest, or that run finds it, as this one did.
func (h *history) withdraw(ctx context.Context, id int64) {
	if err := h.remove(ctx, id); err != nil {
		h.log.WarnContext(ctx, "checkpoint of a run in conflict left in the store", "checkpoint", id, "error", err)
	}
}

// refuseOthers fails when a checkpoint that this run neither found at its start nor took is there.
func (h *history) refuseOthers(ctx context.Context, ids []int64) error {
	for _, id := range after(ids, h.base) {
		f, err := h.fate(ctx, id)
		if err != nil {
			return err
		}
		if f != nil && !f.ours && !f.unusable {
			return &ConflictError{h.job, id}
		}
	}
	return nil
}

// prune deletes, of the checkpoints in the store, all but the newest and the savepoints. It fails silently but for the
// log: what it leaves behind is deleted after a later checkpoint.
func (h *history) prune(ctx context.Context, ids []int64) {
	if err := h.tryPrune(ctx, ids); err != nil && ctx.Err() == nil {
		h.log.WarnContext(ctx, "old checkpoints not deleted", "error", err)
	}
}

func (h *history) tryPrune(ctx context.Context, ids []int64) error {
	kept := 0
	for _, id := range slices.Backward(ids) {
		f, err := h.fate(ctx, id)
		switch {
		case err != nil:
			return err
		case f == nil || f.savepoint || f.unusable:
		case kept < h.keep:
			kept++
		default:
			if err := h.remove(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *history) remove(ctx context.Context, id int64) error {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := h.store.Delete(bounded, h.job, id); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, id)
	return nil
}

func (h *history) list(ctx context.Context) ([]int64, error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ids, err := h.store.List(bounded, h.job)
	return slices.DeleteFunc(ids, func(id int64) bool { return id >= maxID }), err
}

// maxID is more checkpoints than any job takes. What is in the store beyond is not of this package, and ids would run out
// after it.
const maxID = 1 << 62

// fate answers what is known of an id, and loads the checkpoint when that is nothing yet. nil: it is gone.
func (h *history) fate(ctx context.Context, id int64) (*fate, error) {
	h.mu.Lock()
	f := h.known[id]
	h.mu.Unlock()
	if f != nil {
		return f, nil
	}
	_, err := h.load(ctx, id)
	_, newer := errors.AsType[*FormatError](err)
	switch {
	case errors.Is(err, ErrNoCheckpoint):
		return nil, nil
	case newer:
		return &fate{savepoint: true}, nil // not ours, and not ours to delete
	case err != nil && !errors.Is(err, ErrDamaged):
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[id], nil
}

// load reads a checkpoint, and remembers what it is. ErrDamaged means that there is something that is none.
func (h *history) load(ctx context.Context, id int64) (*Checkpoint, error) {
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	c, _, err := ReadCheckpoint(bounded, h.store, h.job, id)
	if errors.Is(err, ErrDamaged) {
		h.log.WarnContext(ctx, "passed over an object in the checkpoint store", "checkpoint", id, "error", err)
		h.note(id, fate{unusable: true})
	}
	if err != nil {
		return nil, err
	}
	h.note(id, fate{ours: c.Run == h.run, savepoint: c.Savepoint})
	return c, nil
}

func (h *history) note(id int64, f fate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[id] = &f
}
