package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/engine/enginetest"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

func openStore(t enginetest.TB, url string) *engine.BucketStore {
	t.Helper()
	s, err := engine.OpenStore(t.Context(), url)
	if err != nil {
		t.Fatalf("OpenStore: %v", err)
	}
	return s
}

func TestFolderStore(t *testing.T) {
	enginetest.TestStore(t, enginetest.StoreHarness{CancelsNothing: true, New: func(t enginetest.TB) (engine.Store, func() engine.Store) {
		url := "file://" + filepath.Join(t.TempDir(), "not", "yet", "there")
		return openStore(t, url), func() engine.Store { return openStore(t, url) }
	}})
}

func TestMemoryStore(t *testing.T) {
	enginetest.TestStore(t, enginetest.StoreHarness{New: func(t enginetest.TB) (engine.Store, func() engine.Store) {
		return openStore(t, "mem://"), nil
	}})
}

func TestBucketStore(t *testing.T) {
	enginetest.TestStore(t, enginetest.StoreHarness{New: func(t enginetest.TB) (engine.Store, func() engine.Store) {
		bucket := memblob.OpenBucket(nil)
		return engine.NewBucketStore(bucket), func() engine.Store { return engine.NewBucketStore(bucket) }
	}})
}

// TestFolderIsABucket reads what a folder store wrote through a bucket in the same folder, as a tool may.
func TestFolderIsABucket(t *testing.T) {
	dir := t.TempDir()
	folder := openStore(t, "file://"+dir)
	for _, job := range append(enginetest.HostileNames, "job") {
		if err := folder.Put(t.Context(), job, 3, []byte(job)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := fileblob.OpenBucket(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket := engine.NewBucketStore(files)
	defer bucket.Close()
	for _, job := range append(enginetest.HostileNames, "job") {
		if got, err := bucket.Load(t.Context(), job, 3); err != nil || string(got) != job {
			t.Errorf("Load of %.40q gave %.40q, %v", job, got, err)
		}
	}
}

func TestRelativeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openStore(t, "file://.millrace/checkpoints")
	if err := s.Put(t.Context(), "github-events", 12, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(".millrace/checkpoints/github-events/0000000000000000012.checkpoint"); err != nil {
		t.Error(err)
	}
}

// TestFolderHoldsHostileNames looks for files outside of the folder, and for anything but checkpoints in it.
func TestFolderHoldsHostileNames(t *testing.T) {
	outer := t.TempDir()
	s := openStore(t, "file://"+filepath.Join(outer, "in"))
	for _, job := range enginetest.HostileNames {
		if err := s.Put(t.Context(), job, 1, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(outer, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(outer, path)
		inside := rel == "." || rel == "in" || strings.HasPrefix(rel, "in"+string(filepath.Separator))
		depth := strings.Count(rel, string(filepath.Separator))
		if !inside || depth > 2 || !d.IsDir() && filepath.Base(path) != "0000000000000000001.checkpoint" {
			t.Errorf("found %s", rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenStoreRefuses(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"checkpoints", "is no URL"},
		{"file://", "want the path of a folder"},
		{"file:///tmp/x?create_dir=true", `a folder takes no parameters, found "create_dir=true"`},
		{"file:///tmp/%zz", "invalid URL escape"},
		{"ftp://host/x", `no driver registered for "ftp"`},
	} {
		if _, err := engine.OpenStore(t.Context(), tc.url); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("OpenStore(%q): %v, want %q", tc.url, err, tc.want)
		}
	}
}

func TestFolderInTheWay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := openStore(t, "file://"+dir).Put(t.Context(), "job", 1, []byte("x"))
	if err == nil || errors.Is(err, engine.ErrCheckpointExists) || !strings.Contains(err.Error(), "a file is in the way") {
		t.Errorf("Put answered %v", err)
	}
}

// A store that lists and does not store must be found out before the input is read, or all of it would be written again for
// every restart.
func TestStoreThatCannotBeWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need privileges there
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "nowhere", "at-all"), filepath.Join(dir, "numbers")); err != nil {
		t.Fatal(err)
	}
	world := streamtest.NewWorld()
	r, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "numbers", Source: streamtest.Ranges{Splits: 1, Rows: 3},
		Sink: streamtest.Direct{World: world}}, engine.Options{Checkpoint: engine.Checkpointing{URL: "file://" + dir}})
	if err == nil || !strings.Contains(err.Error(), "store checkpoints in file://"+dir) {
		t.Errorf("error %v, want the store named", err)
	}
	if r.Restarts != 0 || len(world.Items()) != 0 {
		t.Errorf("%d restarts, %d rows were written first", r.Restarts, len(world.Items()))
	}
}

func TestProbeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, "file://"+dir)
	if err := store.Probe(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "job"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
