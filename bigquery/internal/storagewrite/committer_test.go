package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// flushes is a flusher that answers from a script, the last answer for ever. "at N" answers another offset.
type flushes struct {
	mu       sync.Mutex // guards what follows
	answers  []string
	calls    []string
	released int
}

func (f *flushes) flushRows(_ context.Context, name string, offset int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, shortStream(name, offset))
	a := "ok"
	if len(f.answers) > 0 {
		a = pop(&f.answers)
	}
	if n, _ := fmt.Sscanf(a, "at %d", &offset); n == 1 {
		return offset, nil
	}
	if v := scripted(a); v != nil {
		return 0, v.err
	}
	return offset, nil
}

func (f *flushes) release() error { f.released++; return nil }

// committerOf is a committer over a script that does not wait.
func committerOf(f *flushes, never bool) (*Committer, *int) {
	sleeps := 0
	return &Committer{service: f, cfg: CommitterConfig{
		CreateNever: never,
		Recovery:    retry.Schedule{Initial: time.Second, Max: time.Second, Attempts: 3},
		Pacer: retry.Pacer{Sleep: func(ctx context.Context, _ time.Duration) error {
			sleeps++
			return ctx.Err()
		}},
		Log: slog.New(slog.DiscardHandler),
	}}, &sleeps
}

func promiseOf(name string, offset int64) stream.Committable {
	return promise{tableT.Path() + "/streams/" + name, offset, 2}.committable()
}

func TestCommitter(t *testing.T) {
	t.Parallel()
	t.Run("SW-127_one flush for each stream", func(t *testing.T) {
		f := &flushes{}
		c, _ := committerOf(f, false)
		if err := c.Commit(t.Context(), []stream.Committable{promiseOf("a", 1), promiseOf("b", 2)}); err != nil {
			t.Fatal(err)
		}
		if len(f.calls) != 2 {
			t.Error(f.calls)
		}
	})
	t.Run("SW-133_offsets of one stream add up", func(t *testing.T) {
		f := &flushes{}
		c, _ := committerOf(f, false)
		if err := c.Commit(t.Context(), []stream.Committable{promiseOf("a", 4), promiseOf("a", 9), promiseOf("a", 7)}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.calls, " "); got != "a@9" {
			t.Error(got)
		}
	})
	for name, c := range map[string]struct {
		answers []string
		never   bool
		calls   int
		sleeps  int
		fails   error  // nil for success, errAny for any
		says    string // what the error says
	}{
		"SW-128_detail":              {[]string{"exists"}, false, 1, 0, nil, ""},
		"SW-128_bare":                {[]string{"ALREADY_EXISTS"}, false, 1, 0, nil, ""},
		"SW-129_in passing":          {[]string{"UNAVAILABLE", "ok"}, false, 2, 1, nil, ""},
		"SW-129_always":              {[]string{"UNAVAILABLE"}, false, 3, 2, retry.ErrBudgetSpent, "attempts=3"},
		"SW-130_denied for a while":  {[]string{"PERMISSION_DENIED", "ok"}, false, 2, 1, nil, ""},
		"SW-130_denied, never":       {[]string{"PERMISSION_DENIED"}, true, 1, 0, errAny, "flush rows of p.d.t failed"},
		"SW-131_not found":           {[]string{"NOT_FOUND"}, false, 1, 0, errAny, "start the job from a checkpoint"},
		"SW-131_not found, never":    {[]string{"NOT_FOUND"}, true, 1, 0, errAny, ""},
		"SW-131_invalid":             {[]string{"INVALID_ARGUMENT"}, false, 1, 0, errAny, ""},
		"SW-131_beyond":              {[]string{"beyond"}, false, 1, 0, errAny, ""},
		"SW-131_beyond, bare":        {[]string{"OUT_OF_RANGE"}, false, 1, 0, errAny, ""},
		"SW-131_finalized":           {[]string{"finalized"}, false, 1, 0, errAny, ""},
		"SW-132_visible further off": {[]string{"at 40"}, false, 1, 0, ErrInconsistentStream, "40"},
		"no status":                  {[]string{"plain"}, false, 1, 0, errAny, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flushes{answers: c.answers}
			committer, sleeps := committerOf(f, c.never)
			err := committer.Commit(t.Context(), []stream.Committable{promiseOf("a", 41)})
			if (err == nil) != (c.fails == nil) || c.fails != nil && c.fails != errAny && !errors.Is(err, c.fails) {
				t.Errorf("error %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "transient") ||
				!strings.Contains(err.Error(), "at offset 41")) {
				t.Errorf("error %v", err)
			}
			if len(f.calls) != c.calls || *sleeps != c.sleeps {
				t.Errorf("%d calls, %d sleeps; want %d, %d", len(f.calls), *sleeps, c.calls, c.sleeps)
			}
		})
	}
	t.Run("SW-127_nothing to commit opens nothing", func(t *testing.T) {
		c := NewCommitter(CommitterConfig{Log: slog.New(slog.DiscardHandler)})
		if err := c.Commit(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if s := c.service.(*service); s.write != nil {
			t.Error("a client is open")
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("one stream that fails keeps no other back", func(t *testing.T) {
		f := &flushes{answers: []string{"INVALID_ARGUMENT", "ok"}}
		c, _ := committerOf(f, false)
		var cs []stream.Committable
		for i := range 20 {
			cs = append(cs, promiseOf(fmt.Sprintf("s%d", i), 1))
		}
		if err := c.Commit(t.Context(), cs); err == nil || len(f.calls) != 20 {
			t.Errorf("%d calls, error %v", len(f.calls), err)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errAny)
		c, _ := committerOf(&flushes{}, false)
		if err := c.Commit(ctx, []stream.Committable{promiseOf("a", 1)}); !errors.Is(err, errAny) {
			t.Error(err)
		}
	})
}

var errAny = errors.New("any")

func TestStates(t *testing.T) {
	t.Parallel()
	// The bytes of version 1, as checkpoints hold them: they are read for ever.
	t.Run("durable bytes", func(t *testing.T) {
		s := streamState{tableT, tableT.Path() + "/streams/s", 300, -7}
		const state = "S\x01(projects/p/datasets/d/tables/t/streams/s\xac\x02\x0d"
		if got := s.state(); string(got.Data) != state || got.Destination != "p.d.t" {
			t.Errorf("the state is %q of %s", got.Data, got.Destination)
		}
		if got, err := parseState(stream.State{Destination: "p.d.t", Data: []byte(state)}); err != nil || got != s {
			t.Errorf("read as %+v: %v", got, err)
		}
		p := promise{tableT.Path() + "/streams/s", 299, 70}
		const committable = "F\x01(projects/p/datasets/d/tables/t/streams/s\xab\x02\x8c\x01"
		if got := p.committable(); string(got.Data) != committable || got.Key != p.stream {
			t.Errorf("the promise is %q of %s", got.Data, got.Key)
		}
		if got, err := parsePromise(stream.Committable{Data: []byte(committable)}); err != nil || got != p {
			t.Errorf("read as %+v: %v", got, err)
		}
	})
	t.Run("round trip", rapid.MakeCheck(func(t *rapid.T) {
		s := streamState{tableT, tableT.Path() + "/streams/" + rapid.StringN(1, 30, -1).Draw(t, "name"),
			rapid.Int64Range(0, math.MaxInt64).Draw(t, "next"), rapid.Int64().Draw(t, "checkpoint")}
		if got, err := parseState(s.state()); err != nil || got != s {
			t.Fatalf("%+v became %+v: %v", s, got, err)
		}
		p := promise{tableT.Path() + "/streams/" + rapid.StringMatching("[A-Za-z0-9_-]{1,30}").Draw(t, "stream"),
			rapid.Int64Range(0, math.MaxInt64).Draw(t, "offset"), int(rapid.Int32().Draw(t, "lane"))}
		if got, err := parsePromise(p.committable()); err != nil || got != p {
			t.Fatalf("%+v became %+v: %v", p, got, err)
		}
	}))
	t.Run("damage is noticed and never panics", rapid.MakeCheck(func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "data")
		s, err := parseState(stream.State{Destination: "p.d.t", Data: data})
		if err == nil && !strings.HasPrefix(s.stream, tableT.Path()+"/streams/") {
			t.Fatalf("%+v", s)
		}
		if p, err := parsePromise(stream.Committable{Data: data}); err == nil && p.offset < 0 {
			t.Fatalf("%+v", p)
		}
	}))
	good := stateOf("s", 5, 3)
	for name, c := range map[string]struct {
		state stream.State
		says  string
	}{
		"SW-126_stream of another table": {stream.State{Destination: "p.d.u", Data: good.Data}, "not a stream of that table"},
		"SW-126_unknown version":         {stream.State{Destination: "p.d.t", Data: []byte{stateKind, 2, 0, 0, 0}}, "version 2"},
		"another kind":                   {stream.State{Destination: "p.d.t", Data: promiseOf("s", 5).Data}, "damaged"},
		"cut off":                        {stream.State{Destination: "p.d.t", Data: good.Data[:len(good.Data)-1]}, "damaged"},
		"too long":                       {stream.State{Destination: "p.d.t", Data: append(good.Data[:len(good.Data):len(good.Data)], 0)}, "damaged"},
		"no table":                       {stream.State{Destination: "p", Data: good.Data}, "p"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newWriter(t.Context(), Config{Buffered: true, States: []stream.State{c.state}, Failures: &handler{}, Ledger: &outcome.Ledger{},
				Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)}, func() remote { return &far{} })
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
		})
	}
	for name, c := range map[string]stream.Committable{
		"SW-126_promise of an unknown version":           {Data: []byte{promiseKind, 9, 0, 0, 0}},
		"SW-126_promise of no stream":                    promise{"s", 1, 1}.committable(),
		"SW-126_promise of a default stream's neighbour": promise{"projects/p/datasets/d/tables/t`;DROP/streams/x", 1, 1}.committable(),
		"empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flushes{}
			committer, _ := committerOf(f, false)
			if err := committer.Commit(t.Context(), []stream.Committable{promiseOf("a", 1), c}); err == nil || len(f.calls) != 0 {
				t.Errorf("error %v, calls %v", err, f.calls)
			}
		})
	}
}
