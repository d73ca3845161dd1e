package ownparts

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// book is the entries of each shard.
type book map[string][]string

func (b book) Page(ctx context.Context, shard string, from int64) ([]string, error) {
	all := b[shard]
	return all[from:min(from+2, int64(len(all)))], ctx.Err()
}

var letters = book{"a": {"a0", "a1", "a2"}, "b": {"b0"}, "c": {"c0", "c1", "c2", "c3"}}

func TestSource(t *testing.T) {
	streamtest.TestSource(t, streamtest.SourceHarness[string]{
		New: func(streamtest.TB) stream.Source[string] {
			return Source{Pages: letters, Shards: []string{"a", "b", "c"}}
		},
		Want: []string{"a0", "a1", "a2", "b0", "c0", "c1", "c2", "c3"},
		Text: func(r stream.Record[string]) string { return r.Value },
	})
}

// shelf is a ledger in memory.
type shelf struct {
	mu      sync.Mutex // guards entries
	entries []string
}

func (s *shelf) Append(_ context.Context, entries []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, entries...)
	return nil
}

func (s *shelf) numbers() (all []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.entries {
		n, _ := strconv.Atoi(entry)
		all = append(all, n)
	}
	return all
}

func TestSink(t *testing.T) {
	streamtest.TestSink(t, streamtest.SinkHarness[string]{
		Open: func(streamtest.TB) streamtest.SinkTarget[string] {
			ledger := &shelf{}
			return streamtest.SinkTarget[string]{
				Sink:    func(failures stream.FailurePolicy) stream.Sink[string] { return Sink{ledger, failures} },
				Record:  strconv.Itoa,
				Bad:     func(int) string { return "" },
				Visible: ledger.numbers,
			}
		},
	})
}

// Both run under the engine as any other connector does.
func Example() {
	ledger := &shelf{}
	result, err := engine.Run(context.Background(), engine.Job[string, string]{
		Name:   "entries",
		Source: Source{Pages: letters, Shards: []string{"a", "b", "c"}},
		Sink:   Sink{Ledger: ledger, Failures: stream.FailJob()},
	}, engine.Options{Lanes: 2})
	fmt.Println(result.Outcome, len(ledger.entries), err)
	// Output: finished 8 <nil>
}
