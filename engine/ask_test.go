package engine_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// asking is a source of one lane that notes what is asked of it.
type asking struct {
	streamtest.Ranges
	notes *notes
}

type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, args...))
}

// taken are the notes since the last call.
func (n *notes) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

func (s asking) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := s.Ranges.NewEnumerator(ctx, ec)
	return askedEnumerator{e, s.notes}, err
}

func (s asking) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[item], error) {
	r, err := s.Ranges.NewReader(ctx, rc)
	return askedReader{r, s.notes}, err
}

type askedEnumerator struct {
	stream.Enumerator
	notes *notes
}

func (e askedEnumerator) Next(lane int) (stream.Split, error) {
	e.notes.add("ask")
	return e.Enumerator.Next(lane)
}

func (e askedEnumerator) Return(lane int, splits []stream.Split) {
	for _, s := range splits {
		e.notes.add("return %s@%d", s.ID, s.Position)
	}
	e.Enumerator.Return(lane, splits)
}

type askedReader struct {
	stream.Reader[item]
	notes *notes
}

func (r askedReader) Open(ctx context.Context, s stream.Split) error {
	r.notes.add("open %s@%d", s.ID, s.Position)
	return r.Reader.Open(ctx, s)
}

func (r askedReader) Fetch(ctx context.Context, b *stream.Batch[item]) error {
	err := r.Reader.Fetch(ctx, b)
	if err == io.EOF {
		r.notes.add("end")
	}
	return err
}

// TestALaneAsksWhenItHasNone (SRC-28): a lane asks for one split when it starts, and for one when it has finished
// another. A split that was being read goes back to the enumerator first, at the checkpoint's row, and out again to
// whoever asks: the number of lanes may be another by then.
func TestALaneAsksWhenItHasNone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		n := &notes{}
		s.source = asking{numbers, n}
		s.stopAfter(25 * time.Millisecond)
		first := n.taken()
		if want := []string{"ask", "open range-0@0"}; !slices.Equal(first, want) {
			t.Errorf("the first run: %v, want %v", first, want)
		}
		at := s.checkpoints()[len(s.checkpoints())-1].Splits[0].Split.Position
		if at <= 0 || at >= 100 {
			t.Fatalf("the first run stopped at position %d, want one within the split", at)
		}
		s.finish()
		want := []string{fmt.Sprintf("return range-0@%d", at), "ask", fmt.Sprintf("open range-0@%d", at), "end", "ask", "open range-1@0", "end", "ask"}
		if diff := cmp.Diff(want, n.taken()); diff != "" {
			t.Errorf("the second run (-want +got):\n%s", diff)
		}
		s.sees(numbers.Items())
	})
}
