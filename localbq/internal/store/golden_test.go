package store

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the golden folder of the current format anew")

// TestGolden opens a folder that format 1 wrote: a checkpoint with data, and a log behind it. It must open for ever.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "format-1")
	if *rewrite {
		writeGolden(t, golden)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(golden + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
	if got := describe(t, s); got != string(want) {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if r := s.Recovery(); r.Checkpoint == 0 || r.Changes == 0 {
		t.Errorf("%+v: want something of a checkpoint and something of a log", r)
	}
	closeStore(t, s)
}

func writeGolden(t *testing.T, golden string) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
	fill(t, s)
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	tab := makeTable(t, s, dataset.Table("later"), &schema.Definition{Schema: numberedSchema})
	if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(0, 3)), Note: []byte("note")}); err != nil {
		t.Fatal(err)
	}
	text := describe(t, s)
	abandon(t, s)
	if err := os.RemoveAll(golden); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(golden, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden+".txt", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzRows shows that no bytes of a frame make the replay of rows panic.
func FuzzRows(f *testing.F) {
	r := rowsRecord{instance: 1, version: 2, count: 3, note: []byte("note"), batches: appendBatch(nil, numbered(0, 3)), batchCount: 1}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := parseRows(payload)
		if err == nil {
			_, _ = r.decode(numberedSchema.Arrow())
		}
	})
}
