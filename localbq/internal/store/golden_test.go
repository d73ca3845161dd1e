package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the golden folder of the current format anew")

// TestGolden opens folders that each format wrote: a checkpoint with data, and a log behind it. They must open for ever.
func TestGolden(t *testing.T) {
	for format := 1; format <= manifestFormat; format++ {
		t.Run(fmt.Sprint("format ", format), func(t *testing.T) {
			golden := filepath.Join("testdata", fmt.Sprint("format-", format))
			if *rewrite && format == manifestFormat {
				writeGolden(t, golden)
			}
			openGolden(t, golden, format)
		})
	}
}

func openGolden(t *testing.T, golden string, format int) {
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
	if m, _, err := readManifest(dir); err != nil || m.Format != manifestFormat {
		t.Errorf("an opened folder is of format %d, %v: an older version must refuse it", m.Format, err)
	}
	if format >= 2 {
		goldenChanges(t, s)
	}
	if format >= 4 {
		goldenColumns(t, s)
	}
	closeStore(t, s)
}

func writeGolden(t *testing.T, golden string) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
	fill(t, s)
	changed := makeTable(t, s, dataset.Table("changed"), keyed(0))
	plain(t, changed, mutation{id: 2, v: "plain"})
	mutate(t, changed, mutation{1, "one", "A"}, mutation{1, "late", "9"}, mutation{4, "", "FFFFFFFFFFFFFFFF/1"})
	if err := changed.Apply(); err != nil {
		t.Fatal(err)
	}
	stream, err := changed.CreateStream(Buffered, [27]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	rows := mutations(t, changed, []mutation{{id: 7, v: "hidden"}})
	rows.Changes, rows.Stream = nil, stream
	if _, err := changed.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	tab := makeTable(t, s, dataset.Table("later"), &schema.Definition{Schema: numberedSchema})
	if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(0, 3)), Note: []byte("note")}); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(3, 1)), Ingested: []int64{1}}); err != nil {
		t.Fatal(err)
	}
	mutate(t, changed, mutation{2, "two", "B"}, mutation{3, "", "B"})
	stream = makeStream(t, tab, Buffered)
	appendTo(t, stream, 0, 4)
	if _, err := stream.Flush(1, nil, nil); err != nil {
		t.Fatal(err)
	}
	altered := makeTable(t, s, dataset.Table("altered"), &schema.Definition{Schema: columns("a", schema.Int64, "s", schema.String)})
	put(t, altered, fromJSON(t, altered.Info().Schema, `[{"a":1,"s":"dropped"}]`))
	for _, names := range [][]any{{"a", schema.Int64}, {"a", schema.Int64, "s", schema.String}} {
		if _, err := s.AlterTable(altered.Ref(), func(d *schema.Definition) error {
			next := columns(names...)
			copy(next.Fields, d.Schema.Fields[:1])
			d.Schema = next
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	made := dataset.Table("made")
	if _, _, err := s.MakeTable(made, &schema.Definition{Schema: numberedSchema.Clone()}, Rows{Batches: list(numbered(0, 3))}); err != nil {
		t.Fatal(err)
	}
	if err := s.RenameTable(made, "renamed"); err != nil {
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

// goldenChanges holds what the folder knows of changes: their order, what the base lacks, and rows of a stream.
func goldenChanges(t *testing.T, s *Store) {
	changed, err := s.Table(dataset.Table("changed"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "base", base(t, changed), "1=one", "2=plain")
	mutate(t, changed, mutation{1, "too late", "9"}, mutation{2, "too late", "A"}, mutation{3, "too late", "A"}, mutation{4, "too late", "FFFFFFFFFFFFFFFF"})
	same(t, "after late changes", merged(t, changed), "1=one", "2=two")
	var streams []*Stream
	for _, stream := range changed.streams {
		streams = append(streams, stream)
	}
	if len(streams) != 1 {
		t.Fatalf("%d streams", len(streams))
	}
	if _, err := streams[0].Flush(0, nil, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "after a flush", merged(t, changed), "1=one", "2=two", "7=hidden")
}

// goldenColumns holds that a column of the name of one that was dropped does not have its values, and that a table that was made
// with rows and renamed has them.
func goldenColumns(t *testing.T, s *Store) {
	altered, err := s.Table(dataset.Table("altered"))
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := altered.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if got := toJSON(t, snapshot.Parts()[0].Batch); got != `{"a":1,"s":null}` {
		t.Errorf("the altered table holds %s", got)
	}
	renamed, err := s.Table(dataset.Table("renamed"))
	if err != nil || len(numbers(t, renamed, 0)) != 3 {
		t.Errorf("the renamed table: %v", err)
	}
}

// FuzzRows shows that no bytes of a frame make the replay of rows panic.
func FuzzRows(f *testing.F) {
	r := rowsRecord{instance: 1, version: 2, count: 3, note: []byte("note"), batches: appendBatch(nil, numbered(0, 3)), batchCount: 1}
	f.Add(r.append(nil))
	r.stream, r.offset = 4, 5
	f.Add(r.append(nil))
	r.stream, r.ingested = 0, []int64{7}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		hostile.Proportional(t, len(payload), 256, 1<<16, func() {
			r, err := parseRows(payload)
			if err == nil {
				_, _ = r.decode(numberedSchema.Arrow())
			}
		})
	})
}

// FuzzChanges shows that no bytes make the replay of changes panic.
func FuzzChanges(f *testing.F) {
	f.Add(appendChanges(nil, []cdc.Change{{Delete: true}, {}}, 7))
	f.Add([]byte("\x04\x01\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		hostile.Proportional(t, len(payload), 512, 1<<16, func() {
			_, _, rows, err := parseChanges(payload)
			if err == nil {
				_, _ = parseRows(rows)
			}
		})
	})
}
