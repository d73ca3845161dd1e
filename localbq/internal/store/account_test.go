package store

import (
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// TestAccount holds the order that keeps accounts whole: commit, account, checkpoint. A checkpoint between the first two would
// make the log forget the note of a write that nobody has written down yet, and a kill would then lose its account for good.
func TestAccount(t *testing.T) {
	t.Run("no checkpoint begins between a commit and its account", func(t *testing.T) {
		var told []string
		var s *Store
		account := func(what string) Account {
			return func(w Written) {
				told = append(told, what)
				if s.committing.TryLock() {
					s.committing.Unlock()
					t.Errorf("%s: a checkpoint could have begun before the account", what)
				}
				if s.Version() < w.After {
					t.Errorf("%s: accounted for before it was visible", what)
				}
			}
		}
		s = open(t, Options{Dir: t.TempDir(), Wrote: func(_ *Table, w Written) { account("write")(w) }})
		makeDataset(t, s)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(0, 1))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(1, 1)), Account: account("append")}); err != nil {
			t.Fatal(err)
		}
		buffered, err := tab.CreateStream(Buffered, [27]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		pending, err := tab.CreateStream(Pending, [27]byte{2})
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []*Stream{buffered, pending} {
			if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(0, 1)), Stream: stream, Account: account("hidden")}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := buffered.Flush(0, nil, account("flush")); err != nil {
			t.Fatal(err)
		}
		if _, err := pending.Finalize(); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.CommitStreams([]string{pending.ID()}, nil, account("commit")); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		if len(told) != 6 {
			t.Errorf("told of %v", told)
		}
	})
	t.Run("accounts of a killed process are written down or in the log", func(t *testing.T) {
		var mu sync.Mutex // guards the books
		book, durable := map[int64]bool{}, map[int64]bool{}
		wrote := func(_ *Table, w Written) {
			mu.Lock()
			defer mu.Unlock()
			book[w.After] = true
		}
		trimming := func() error {
			mu.Lock()
			defer mu.Unlock()
			for v := range book {
				durable[v] = true
			}
			return nil
		}
		dir := t.TempDir()
		s := open(t, Options{Dir: dir, Sync: SyncAlways, CheckpointBytes: 4 << 10, Wrote: wrote, Trimming: trimming})
		makeDataset(t, s)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		var acked []int64
		var writers sync.WaitGroup
		for g := range 4 {
			writers.Go(func() {
				for i := range 60 {
					w, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(100*g+i, 1))})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					acked = append(acked, w.After)
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		abandon(t, s)
		closeStore(t, open(t, Options{Dir: dir, Recovered: func(_ []byte, _ *Table, w Written) error {
			durable[w.After] = true
			return nil
		}}))
		for _, v := range acked {
			if !durable[v] {
				t.Errorf("the write at version %d is in no book", v)
			}
		}
	})
}
