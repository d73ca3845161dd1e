package objects_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// setup is a store in memory with the bucket "lake".
func setup(t *testing.T) *objects.Store {
	t.Helper()
	s, err := objects.New(objects.Options{Clock: clock.NewManual(clock.Start)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.InsertBucket(objects.Bucket{Name: "lake", Project: "p"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s *objects.Store, name, content string) {
	t.Helper()
	w, err := s.Create(t.Context(), "lake", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s *objects.Store, name string, generation int64) string {
	t.Helper()
	r, err := s.Open(t.Context(), "lake", name, generation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func names(t *testing.T, s *objects.Store, prefix string) (out []string) {
	t.Helper()
	list, err := s.List(t.Context(), "lake", prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		out = append(out, o.Name)
	}
	return out
}

func TestObjects(t *testing.T) {
	t.Run("an object is listed and read as it was written", func(t *testing.T) {
		s := setup(t)
		write(t, s, "b/2", "two")
		write(t, s, "b/1", "one")
		write(t, s, "c", "")
		if got, want := names(t, s, "b/"), []string{"b/1", "b/2"}; !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
		if got := read(t, s, "b/2", 0); got != "two" {
			t.Errorf("read %q, want two", got)
		}
	})
	t.Run("an object is invisible until it is complete", func(t *testing.T) {
		s := setup(t)
		w, err := s.Create(t.Context(), "lake", "late")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "half")
		if got := names(t, s, ""); len(got) != 0 {
			t.Errorf("listed %q before Close", got)
		}
		w.Close()
		if got := names(t, s, ""); len(got) != 1 {
			t.Errorf("listed %q after Close, want one object", got)
		}
	})
	t.Run("nothing is published once the context is done", func(t *testing.T) {
		s := setup(t)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		w, err := s.Create(ctx, "lake", "never")
		if err != nil {
			t.Fatal(err)
		}
		cancel(why)
		if err := w.Close(); !errors.Is(err, why) {
			t.Errorf("Close: %v, want the cause", err)
		}
		if got := names(t, s, ""); len(got) != 0 {
			t.Errorf("listed %q", got)
		}
	})
	t.Run("a reader keeps the object it was opened on", func(t *testing.T) {
		s := setup(t)
		write(t, s, "x", "old")
		r, err := s.Open(t.Context(), "lake", "x", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		write(t, s, "x", "new, longer")
		text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if string(text) != "old" || err != nil {
			t.Errorf("read %q, %v, want old", text, err)
		}
		if _, err := s.Open(t.Context(), "lake", "x", r.Object().Generation); !refusal.Is(err, refusal.NotFound) {
			t.Errorf("opening the replaced generation: %v, want notFound", err)
		}
	})
	t.Run("names are refused that Cloud Storage does not take", func(t *testing.T) {
		s := setup(t)
		for _, name := range []string{"", ".", "..", "a\nb", "a\rb", "\xff", strings.Repeat("x", 1025), ".well-known/acme-challenge/x"} {
			if _, err := s.Create(t.Context(), "lake", name); refusal.Of(err) == nil {
				t.Errorf("%q: %v, want a refusal", name, err)
			}
		}
		for _, name := range []string{"../../etc/passwd", "a\x00b", strings.Repeat("/", 1024), "`'\"", "CON"} {
			write(t, s, name, name)
			if got := read(t, s, name, 0); got != name {
				t.Errorf("%q holds %q", name, got)
			}
		}
	})
	t.Run("buckets are refused by name", func(t *testing.T) {
		s := setup(t)
		for _, name := range []string{"ab", "UPPER", "-x-", "a..b", "10.0.0.1", "goog-x", "my-google", "a/b", strings.Repeat("x", 64), "lake\n"} {
			if _, err := s.InsertBucket(objects.Bucket{Name: name}); !refusal.Is(err, refusal.Invalid) {
				t.Errorf("%q: %v, want invalid", name, err)
			}
		}
		if _, err := s.InsertBucket(objects.Bucket{Name: "lake"}); !refusal.Is(err, refusal.Conflict) {
			t.Errorf("twice: %v, want conflict", err)
		}
	})
}
