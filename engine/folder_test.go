package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderOf(t *testing.T) {
	for in, want := range map[string]string{
		"/var/lib/millrace":      "/var/lib/millrace",
		".millrace/checkpoints":  ".millrace/checkpoints",
		"./here":                 "here",
		"../there/":              "../there",
		"localhost/var/lib":      "/var/lib",
		"localhost":              "localhost",
		"my%20dir/my dir":        "my dir/my dir",
		"under_score/checkpoint": "under_score/checkpoint",
	} {
		if got, err := folderOf(in); err != nil || got != filepath.FromSlash(want) {
			t.Errorf("folderOf(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

// TestFolderWithoutLinks is for file systems that have none.
func TestFolderWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	s := &BucketStore{folder{dir, func(string, string) error { return errors.New("operation not supported") }}, dir}
	if err := s.Put(t.Context(), "job", 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "job", 1, []byte("two")); !errors.Is(err, ErrCheckpointExists) {
		t.Errorf("Put of an id that is taken: %v", err)
	}
	if got, err := s.Load(t.Context(), "job", 1); err != nil || string(got) != "one" {
		t.Errorf("Load gave %q, %v", got, err)
	}
}

// TestFolderForgetsTornFiles has a process killed before it linked its file.
func TestFolderForgetsTornFiles(t *testing.T) {
	dir := t.TempDir()
	s := &BucketStore{newFolder(dir), dir}
	for id := range int64(2) {
		if err := s.Put(t.Context(), "job", id+1, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	torn := filepath.Join(dir, "job", tempName(objectName(2), "LEFT"))
	if err := os.WriteFile(torn, []byte("to"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.List(t.Context(), "job"); err != nil || len(ids) != 2 {
		t.Errorf("List gave %v, %v", ids, err)
	}
	if err := s.Delete(t.Context(), "job", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(torn); err != nil {
		t.Errorf("deleting checkpoint 1 deleted what was left of 2: %v", err)
	}
	if err := s.Delete(t.Context(), "job", 2); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "job"))
	if err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
