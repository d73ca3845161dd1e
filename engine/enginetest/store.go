package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/engine"
)

// StoreHarness says how to open a store.
type StoreHarness struct {
	// New makes an empty store, and answers how to open it again as another process would; nil where nothing outlives
	// the process.
	New func(t TB) (store engine.Store, again func() engine.Store)

	// CancelsNothing is for stores whose calls are too quick to be cancelled.
	CancelsNothing bool
}

// TB is the part of testing.TB that checks use, so that the tests of the suite can watch a check fail.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
	TempDir() string
}

// TestStore runs the suite.
func TestStore(t *testing.T, h StoreHarness) {
	for _, c := range storeChecks {
		t.Run(c.name, func(t *testing.T) { c.on(t, h) })
	}
}

// check is one named thing that a store must do.
type check struct {
	name string
	run  func(t TB, b bench)
}

func (c check) on(t TB, h StoreHarness) {
	store, again := h.New(t)
	c.run(t, bench{store, again, h})
}

var storeChecks = []check{
	{"gives_back_what_was_put", checkGivesBack},
	{"keeps_its_own_copy", checkOwnCopy},
	{"lists_ids_in_order", checkLists},
	{"refuses_an_id_that_is_taken", checkTaken},
	{"one_of_many_at_once_wins", checkRace},
	{"misses_what_is_not_there", checkMissing},
	{"deletes", checkDeletes},
	{"keeps_jobs_apart", checkJobsApart},
	{"takes_any_job_name", checkHostileNames},
	{"survives_the_process", checkSurvives},
	{"cancelled_put_publishes_nothing", checkCancelled},
	{"takes_large_checkpoints", checkLarge},
}

type bench struct {
	engine.Store
	again func() engine.Store
	h     StoreHarness
}

func (b bench) put(t TB, job string, id int64, data string) {
	t.Helper()
	if err := b.Put(t.Context(), job, id, []byte(data)); err != nil {
		t.Fatalf("Put %d of %.40q: %v", id, job, err)
	}
}

func (b bench) has(t TB, job string, id int64, want string) {
	t.Helper()
	got, err := b.Load(t.Context(), job, id)
	if err != nil || string(got) != want {
		t.Errorf("Load %d of %.40q gave %.40q, %v, want %.40q", id, job, got, err, want)
	}
}

func (b bench) lists(t TB, job string, want ...int64) {
	t.Helper()
	got, err := b.List(t.Context(), job)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("List of %.40q gave %v, %v, want %v", job, got, err, want)
	}
}

func (b bench) lacks(t TB, job string, id int64) {
	t.Helper()
	if data, err := b.Load(t.Context(), job, id); !errors.Is(err, engine.ErrNoCheckpoint) {
		t.Errorf("Load %d of %.40q gave %.40q, %v, want ErrNoCheckpoint", id, job, data, err)
	}
}

func checkGivesBack(t TB, b bench) {
	b.put(t, "job", 1, "one")
	b.put(t, "job", 2, "")
	b.put(t, "job", 3, "\x00\n\xff")
	b.has(t, "job", 1, "one")
	b.has(t, "job", 2, "")
	b.has(t, "job", 3, "\x00\n\xff")
}

func checkOwnCopy(t TB, b bench) {
	data := []byte("before")
	if err := b.Put(t.Context(), "job", 1, data); err != nil {
		t.Fatalf("%v", err)
	}
	copy(data, "AFTER!")
	b.has(t, "job", 1, "before")
	got, err := b.Load(t.Context(), "job", 1)
	if err != nil {
		t.Fatalf("%v", err)
	}
	copy(got, "AFTER!")
	b.has(t, "job", 1, "before")
}

func checkLists(t TB, b bench) {
	b.lists(t, "job")
	ids := []int64{9, 10, 100, 1, 1<<63 - 1, 2}
	for _, id := range ids {
		b.put(t, "job", id, "x")
	}
	slices.Sort(ids)
	b.lists(t, "job", ids...)
}

func checkTaken(t TB, b bench) {
	b.put(t, "job", 7, "first")
	if err := b.Put(t.Context(), "job", 7, []byte("second")); !errors.Is(err, engine.ErrCheckpointExists) {
		t.Errorf("Put of an id that is taken answered %v, want ErrCheckpointExists", err)
	}
	b.has(t, "job", 7, "first")
	if err := b.Put(t.Context(), "job", 7, []byte("first")); !errors.Is(err, engine.ErrCheckpointExists) {
		t.Errorf("Put of the same again answered %v, want ErrCheckpointExists", err)
	}
}

func checkRace(t TB, b bench) {
	const many = 8
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { errs[i] = b.Put(t.Context(), "job", 1, []byte(fmt.Sprint(i))) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, engine.ErrCheckpointExists):
			t.Errorf("one of %d puts of one id answered %v, want ErrCheckpointExists after one success", many, err)
		}
	}
	b.has(t, "job", 1, fmt.Sprint(won))
}

func checkMissing(t TB, b bench) {
	b.lacks(t, "job", 1)
	b.put(t, "job", 2, "x")
	b.lacks(t, "job", 1)
	b.lacks(t, "other", 2)
}

func checkDeletes(t TB, b bench) {
	for id := range int64(4) {
		b.put(t, "job", id+1, "x")
	}
	for range 2 { // what is gone may be deleted
		if err := b.Delete(t.Context(), "job", 2); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if err := b.Delete(t.Context(), "nobody", 2); err != nil {
		t.Errorf("Delete of a job without checkpoints: %v", err)
	}
	b.lists(t, "job", 1, 3, 4)
	b.lacks(t, "job", 2)
	b.put(t, "job", 2, "again")
	b.has(t, "job", 2, "again")
}

func checkJobsApart(t TB, b bench) {
	b.put(t, "job", 1, "short")
	b.put(t, "job-2", 1, "long")
	b.put(t, "job-2", 2, "long")
	b.has(t, "job", 1, "short")
	b.has(t, "job-2", 1, "long")
	b.lists(t, "job", 1)
	if err := b.Delete(t.Context(), "job", 1); err != nil {
		t.Fatalf("%v", err)
	}
	b.lists(t, "job")
	b.lists(t, "job-2", 1, 2)
}

// HostileNames are names of jobs that try to be something else.
var HostileNames = []string{
	"../job", "..", ".", "/", "/etc/passwd", "a/b", "a/../b", "a\\b", "job/0000000000000000001.checkpoint",
	"job\x00", "job\n", "job\r\n", " job", "job ", "JOB", "Job", "jOb", "-job", "~job", "job~", "job*", "job?", "[job]", "%2e%2e", "job%2F",
	"jöb", "jo\u0308b", "工作", "\xff\xfe", "job:1", "con", "nul", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("b", 1<<20),
	strings.Repeat("b", 1<<20) + "c", strings.Repeat("../", 1000),
}

func checkHostileNames(t TB, b bench) {
	names := append([]string{"job", "job-2"}, HostileNames...)
	for i, name := range names {
		b.put(t, name, 1, fmt.Sprint(i))
		b.put(t, name, int64(i+2), "x")
	}
	for i, name := range names {
		b.has(t, name, 1, fmt.Sprint(i))
		b.lists(t, name, 1, int64(i+2))
	}
}

func checkSurvives(t TB, b bench) {
	if b.again == nil {
		return
	}
	b.put(t, "job", 1, "one")
	b.put(t, "JOB", 5, "five")
	other := bench{b.again(), b.again, b.h}
	other.has(t, "job", 1, "one")
	other.lists(t, "JOB", 5)
	if err := other.Put(t.Context(), "job", 1, []byte("two")); !errors.Is(err, engine.ErrCheckpointExists) {
		t.Errorf("Put of an id that another process took answered %v, want ErrCheckpointExists", err)
	}
	if err := other.Delete(t.Context(), "job", 1); err != nil {
		t.Fatalf("%v", err)
	}
	b.lacks(t, "job", 1)
}

func checkCancelled(t TB, b bench) {
	if b.h.CancelsNothing {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Put(ctx, "job", 1, []byte("x")); err == nil {
		t.Errorf("a cancelled Put answered no error")
	}
	b.lists(t, "job")
}

func checkLarge(t TB, b bench) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	b.put(t, "job", 1, string(data))
	b.has(t, "job", 1, string(data))
}
