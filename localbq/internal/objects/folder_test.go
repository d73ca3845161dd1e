package objects_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
)

// TestAbandonedFolder leaves a store as a killed process does, in the middle of things, and opens its folder again.
func TestAbandonedFolder(t *testing.T) {
	dir := t.TempDir()
	open := func() *objects.Store {
		s, err := objects.New(objects.Options{Clock: clock.NewManual(clock.Start), Dir: dir, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.InsertBucket(objects.Bucket{Name: "lake", Project: "p"}); err != nil {
		t.Fatal(err)
	}
	write(t, s, "kept", "kept")
	write(t, s, "replaced", "old")
	write(t, s, "replaced", "new")
	write(t, s, "deleted", "")
	deleted, err := s.Get("lake", "deleted", 0, objects.Conditions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete("lake", "deleted", 0, objects.Conditions{}); err != nil {
		t.Fatal(err)
	}
	half, err := s.Create(t.Context(), "lake", "half")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(half, "half")
	if err := os.WriteFile(filepath.Join(dir, "uploads", "torn.json.next"), []byte(`{"id`), 0o644); err != nil {
		t.Fatal(err)
	}

	s = open()
	defer s.Close()
	if got, want := names(t, s, ""), []string{"kept", "replaced"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if got := read(t, s, "replaced", 0); got != "new" {
		t.Errorf("replaced holds %q, want new", got)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "data")); err != nil || len(files) != 2 {
		t.Errorf("%d files of bytes, %v, want those of two objects", len(files), err)
	}
	write(t, s, "deleted", "again")
	again, err := s.Get("lake", "deleted", 0, objects.Conditions{})
	if err != nil || again.Generation <= deleted.Generation {
		t.Errorf("generation %d after %d was deleted, %v", again.Generation, deleted.Generation, err)
	}
}
