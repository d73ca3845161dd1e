package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// abandon leaves a store as a killed process does, but for the lock, which the system would give back.
func abandon(t *testing.T, s *Store) {
	t.Helper()
	close(s.stop)
	s.tending.Wait()
	if err := s.log.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill does one of everything to a store.
func fill(t *testing.T, s *Store) {
	t.Helper()
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema, Description: "first"})
	put(t, tab, numbered(0, 3))
	if _, err := s.UpdateTable(table, "", func(d *schema.Definition) error {
		d.Description = "second"
		d.Schema.Fields = append(d.Schema.Fields, &schema.Field{Name: "more", Type: schema.Int64, Mode: schema.Repeated})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	put(t, tab, fromJSON(t, tab.Info().Schema, `[{"n":3,"s":"x","more":[1,2]}]`))
	gone := makeTable(t, s, dataset.Table("gone"), &schema.Definition{Schema: numberedSchema})
	put(t, gone, numbered(0, 3))
	if err := s.DeleteTable(gone.Ref()); err != nil {
		t.Fatal(err)
	}
	counted := makeTable(t, s, dataset.Table("counted"), &schema.Definition{Schema: numberedSchema})
	if err := s.SetMode(counted.Ref(), ModeValidate); err != nil {
		t.Fatal(err)
	}
	if _, err := counted.Write(Rows{Info: counted.Info(), Count: 11}); err != nil {
		t.Fatal(err)
	}
	replaced := makeTable(t, s, dataset.Table("replaced"), &schema.Definition{Schema: columns("x", schema.Date)})
	if _, err := replaced.Write(Rows{Truncate: true, Definition: &schema.Definition{Schema: numberedSchema}, Batches: list(numbered(0, 2))}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateDataset(dataset, "", func(o *DatasetOptions) error { o.Description = "here"; return nil }); err != nil {
		t.Fatal(err)
	}
	fillStreams(t, s)
}

// describe is everything a store holds, as text.
func describe(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	for _, p := range s.Projects() {
		for _, d := range s.Datasets(p) {
			fmt.Fprintf(&out, "dataset %s etag %s %q created %v\n", d.Ref, d.ETag, d.Description, d.Created.UnixMicro())
			tables, err := s.Tables(d.Ref)
			if err != nil {
				t.Fatal(err)
			}
			for _, tab := range tables {
				st := tab.Stats()
				fmt.Fprintf(&out, "table %s instance %d mode %s rows %d bytes %d modified %d\n",
					tab.Ref(), tab.Instance(), tab.Mode(), st.Rows, st.Bytes, st.Modified.UnixMicro())
				for _, i := range tab.Infos() {
					fmt.Fprintf(&out, "  definition %d version %d etag %s %q change {Adds:%t Relaxes:%t Texts:%t}: %v\n", i.Number, i.Version, i.ETag, i.Description, i.Change.Adds, i.Change.Relaxes, i.Change.Texts, i.Schema.Arrow())
				}
				if tab.Mode() == ModeStore {
					snapshot, err := tab.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					for _, part := range snapshot.Parts() {
						fmt.Fprintf(&out, "  rows from %d: %s\n", part.First, toJSON(t, part.Batch))
					}
					for _, run := range tab.Ingested(0, st.Rows+100) {
						if run.At != run.Version {
							fmt.Fprintf(&out, "  %d rows from %d ingested at %d\n", run.Count, run.First, run.At)
						}
					}
				}
				describeStreams(t, &out, tab)
			}
		}
	}
	return out.String()
}

func TestFolder(t *testing.T) {
	options := func(t *testing.T) Options { return Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)} }
	for _, how := range []struct {
		name string
		end  func(*testing.T, *Store)
	}{{"closed", closeStore}, {"killed", abandon}} {
		t.Run("everything is there after being "+how.name+", again and again", func(t *testing.T) {
			o := options(t)
			s := open(t, o)
			fill(t, s)
			want := describe(t, s)
			for round := range 3 {
				version := s.Version()
				how.end(t, s)
				s = open(t, o)
				if got := describe(t, s); got != want {
					t.Fatalf("round %d: got\n%s, want\n%s", round, got, want)
				}
				if s.Version() != version {
					t.Errorf("round %d: version %d, want %d", round, s.Version(), version)
				}
			}
			tab, err := s.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			w := put(t, tab, fromJSON(t, tab.Info().Schema, `[{"n":4,"s":null,"more":[]}]`))
			if w.First != 4 || w.After <= w.Before {
				t.Errorf("the next row: %+v, want id 4 and a later version", w)
			}
			closeStore(t, s)
		})
	}
	t.Run("rows of many checkpoints", func(t *testing.T) {
		o := options(t)
		s := open(t, o)
		makeDataset(t, s)
		makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		total := 0
		for round := range 14 {
			tab, err := s.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				put(t, tab, numbered(total, 1+round*700))
				total += 1 + round*700
			}
			if err := s.checkpoint(); err != nil {
				t.Fatal(err)
			}
			if round%4 == 0 {
				abandon(t, s)
				s = open(t, o)
			}
		}
		tab, err := s.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(total)) {
			t.Errorf("%d rows of %d, or in another order", len(got), total)
		}
		if r := s.Recovery(); r.Checkpoint == 0 {
			t.Errorf("nothing was read from a checkpoint: %+v", r)
		}
		closeStore(t, s)
	})
	t.Run("files that nothing leads to go away", func(t *testing.T) {
		o := options(t)
		s := open(t, o)
		fill(t, s)
		for range 3 {
			if err := s.DeleteDataset(dataset, true); err != nil {
				t.Fatal(err)
			}
			fill(t, s)
			if err := s.checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, s)
		var names []string
		entries, err := os.ReadDir(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		// The last data file with rows is the third checkpoint's: Close found nothing new.
		if want := []string{"LOCK", "MANIFEST", "checkpoint-000004", "data-000003", "log-000005"}; !slices.Equal(names, want) {
			t.Errorf("files %v, want %v", names, want)
		}
	})
	t.Run("the log is checkpointed by itself when it has grown", func(t *testing.T) {
		o := options(t)
		o.CheckpointBytes = 4096
		trimmed := make(chan struct{}, 1000)
		o.Trimming = func() error { trimmed <- struct{}{}; return nil }
		s := open(t, o)
		makeDataset(t, s)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		put(t, tab, numbered(0, 1000))
		<-trimmed
		closeStore(t, s)
	})
	t.Run("a folder in use is refused by name and process", func(t *testing.T) {
		o := options(t)
		s := open(t, o)
		_, err := Open(o)
		if err == nil || !strings.Contains(err.Error(), o.Dir) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Errorf("got %v, want an error naming %s and process %d", err, o.Dir, os.Getpid())
		}
		closeStore(t, s)
		closeStore(t, open(t, o))
	})
	t.Run("a folder of a later format is refused", func(t *testing.T) {
		o := options(t)
		if err := os.WriteFile(filepath.Join(o.Dir, manifestName), []byte(`{"format":5}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "format 5") {
			t.Errorf("got %v", err)
		}
	})
}

// TestTornLog cuts the log around the end of every frame and at points between: whatever a killed process leaves is whole
// changes from the front.
func TestTornLog(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	type state struct {
		size int64
		rows int
	}
	states := []state{{s.log.size, 0}}
	for i := range 4 {
		put(t, tab, numbered(2*i, 2))
		states = append(states, state{s.log.size, 2 * (i + 1)})
	}
	abandon(t, s)
	whole, err := os.ReadFile(filepath.Join(o.Dir, segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range cuts(states[0].size, int64(len(whole)), func(cut int64) bool {
		return slices.ContainsFunc(states, func(st state) bool { return cut >= st.size-1 && cut <= st.size+headerBytes })
	}) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, st := range states {
			if st.size <= cut {
				want = st.rows
			}
		}
		again := open(t, Options{Dir: dir, Clock: o.Clock})
		tab, err := again.Table(table)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(want)) {
			t.Fatalf("cut at %d of %d: rows %v, want %d", cut, len(whole), got, want)
		}
		put(t, tab, numbered(want, 1)) // and it goes on
		abandon(t, again)
		once := open(t, Options{Dir: dir, Clock: o.Clock})
		tab, _ = once.Table(table)
		if got := numbers(t, tab, 0); !slices.Equal(got, upTo(want+1)) {
			t.Fatalf("cut at %d, gone on: rows %v, want %d", cut, got, want+1)
		}
		abandon(t, once)
	}
}

// cuts are the points from low to high that near picks, and every 61st.
func cuts(low, high int64, near func(int64) bool) (out []int64) {
	for cut := low; cut <= high; cut++ {
		if near(cut) || cut%61 == 0 {
			out = append(out, cut)
		}
	}
	return out
}

func TestDamagedLog(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	fill(t, s)
	abandon(t, s)
	s = open(t, o) // a second segment
	fill2 := makeTable(t, s, dataset.Table("t2"), &schema.Definition{Schema: numberedSchema})
	put(t, fill2, numbered(0, 1))
	abandon(t, s)
	path := filepath.Join(o.Dir, segmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "is damaged at byte") || !strings.Contains(err.Error(), segmentName(2)) {
		t.Errorf("got %v, want the damaged byte and the segment that follows", err)
	}
}

// TestDamagedFiles changes bytes all over a folder's files, cuts each file all over, and takes each away. What opens has
// everything, but for the end of the last segment, where a cut is what a killed process leaves; what does not open names a
// file.
func TestDamagedFiles(t *testing.T) {
	t.Parallel() // most of its time is the disk's
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	put(t, tab, numbered(0, 2))
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	for i := 2; i < 8; i += 2 { // three segments, each of one write
		put(t, tab, numbered(i, 2))
		abandon(t, s)
		s = open(t, o)
		tab, _ = s.Table(table)
	}
	put(t, tab, numbered(8, 2))
	abandon(t, s)
	names, err := filepath.Glob(filepath.Join(o.Dir, "*-0*"))
	if err != nil {
		t.Fatal(err)
	}
	last := names[len(names)-1]
	if filepath.Base(last) != segmentName(5) {
		t.Fatalf("the last of %v is no segment", names)
	}
	for _, path := range append(names, filepath.Join(o.Dir, manifestName)) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := damagedFile{options: o, path: path, whole: whole, last: path == last}
		for i := 0; i < len(whole); i += 1 + len(whole)/100 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1 << (i % 8)
			f.check(t, fmt.Sprintf("byte %d changed", i), changed)
			f.check(t, fmt.Sprintf("cut at byte %d", i), whole[:i])
		}
		f.check(t, "taken away", nil)
	}
}

type damagedFile struct {
	options Options
	path    string
	whole   []byte
	last    bool
}

// check opens the folder with another content of the file, nil takes it away, and puts everything back.
func (f damagedFile) check(t *testing.T, what string, content []byte) {
	t.Helper()
	o := f.options
	err := os.WriteFile(f.path, content, 0o644)
	if content == nil {
		err = os.Remove(f.path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		// An open cuts the last segment, and begins one more.
		if err := errors.Join(os.WriteFile(f.path, f.whole, 0o644), os.RemoveAll(filepath.Join(o.Dir, segmentName(6)))); err != nil {
			t.Fatal(err)
		}
	}()
	s, err := Open(o)
	if err != nil {
		if !strings.Contains(err.Error(), o.Dir) {
			t.Errorf("%s, %s: error %v names no file", filepath.Base(f.path), what, err)
		}
		return
	}
	defer abandon(t, s)
	tab, err := s.Table(table)
	if err != nil {
		t.Fatalf("%s, %s: %v", filepath.Base(f.path), what, err)
	}
	got, want := numbers(t, tab, 0), upTo(10)
	if cut := f.last && len(content) < len(f.whole); cut {
		want = upTo(8)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s, %s: opened with the rows %v", filepath.Base(f.path), what, got)
	}
}

// TestSegmentKilledAtBirth opens a folder whose last segment a killed process had only begun, again and again.
func TestSegmentKilledAtBirth(t *testing.T) {
	t.Parallel() // most of its time is the disk's
	for cut := range int64(magicBytes) {
		o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
		s := open(t, o)
		makeDataset(t, s)
		tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		put(t, tab, numbered(0, 2))
		abandon(t, s)
		abandon(t, open(t, o))
		if err := os.Truncate(filepath.Join(o.Dir, segmentName(2)), cut); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			s, err := Open(o)
			if err != nil {
				t.Fatalf("cut at byte %d, opened for the %d. time: %v", cut, i+1, err)
			}
			tab, err := s.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			put(t, tab, numbered(2+i, 1))
			if got := numbers(t, tab, 0); !slices.Equal(got, upTo(3+i)) {
				t.Errorf("cut at byte %d: rows %v", cut, got)
			}
			abandon(t, s)
		}
	}
}

// TestLogFails shows that a store whose log cannot be written acknowledges nothing more and shows nothing of what failed.
func TestLogFails(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	put(t, tab, numbered(0, 1))
	if err := s.log.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(1, 1))}); err == nil || refusal.Of(err) != nil {
			t.Errorf("got %v, want the log's own error", err)
		}
	}
	if got := numbers(t, tab, 0); !slices.Equal(got, upTo(1)) {
		t.Errorf("rows %v", got)
	}
	close(s.stop)
	s.tending.Wait()
	_ = s.lock.Close()
}

func TestRecoveredNotes(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	wrote, err := tab.Write(Rows{Info: tab.Info(), Batches: list(numbered(0, 2)), Note: []byte("a note")})
	if err != nil {
		t.Fatal(err)
	}
	abandon(t, s)
	var notes int
	o.Recovered = func(note []byte, tab *Table, w Written) error {
		notes++
		if !bytes.Equal(note, []byte("a note")) || tab.Ref() != table || !reflect.DeepEqual(w, wrote) {
			t.Errorf("note %q of %s: %+v, want %+v", note, tab.Ref(), w, wrote)
		}
		return nil
	}
	closeStore(t, open(t, o))
	closeStore(t, open(t, o)) // the checkpoint of the first Close holds the rows, and nothing is replayed
	if notes != 1 {
		t.Errorf("%d notes, want 1", notes)
	}
}
