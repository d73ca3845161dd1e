package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/localbq"
)

// breakAt has the nth ReadRows call from now on answered with an error that nothing repairs.
func (l *local) breakAt(t testing.TB, nth int) {
	t.Helper()
	if err := l.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Method: "ReadRows", Nth: nth},
		Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INTERNAL", Message: "boom"}}}); err != nil {
		t.Fatal(err)
	}
}

// TestResumedFilesAreTheSame interrupts reads at each of their streams and goes on, and compares with a read that nobody
// interrupted: the same bytes, from one read session.
func TestResumedFilesAreTheSame(t *testing.T) {
	t.Parallel()
	for _, f := range export.Formats() {
		for _, target := range []string{"out." + string(f), "parts/*." + string(f)} {
			t.Run(string(f)+" "+target, func(t *testing.T) {
				t.Parallel()
				l := startLocal(t, 9)
				l.write(t, orders, docs(130)...)
				o := export.Options{Resume: true, Lanes: 3, SafeEvery: time.Nanosecond}.Small(20)
				if strings.Contains(target, "*") {
					o.FileBytes = 5000
				}
				whole := t.TempDir()
				l.mustExport(t, filepath.Join(whole, target), o)
				want := tree(t, whole)
				for nth := 1; ; nth++ {
					dir := t.TempDir()
					l.breakAt(t, nth)
					before := l.sessions(t)
					_, err := l.export(t.Context(), filepath.Join(dir, target), o)
					if err == nil {
						break
					}
					if !strings.Contains(err.Error(), "boom") {
						t.Fatal(err)
					}
					left := tree(t, dir)
					l.mustExport(t, filepath.Join(dir, target), o)
					if got := tree(t, dir); f == export.Avro { // its markers are the session's
						if len(got) != len(want) {
							t.Errorf("broken at call %d: there are %d files, want %d", nth, len(got), len(want))
						}
					} else if d := cmp.Diff(want, got); d != "" {
						t.Errorf("broken at call %d: %s", nth, d)
					}
					if n := l.sessions(t) - before; n != 1 && len(left) > 0 {
						t.Errorf("broken at call %d: %d read sessions", nth, n)
					}
				}
				if len(want) == 0 {
					t.Fatal("no files")
				}
			})
		}
	}
}

// tree is what files below a folder hold.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// interrupted is a read that ended in the middle, and the folder with what it left.
func interrupted(t *testing.T, l *local, dir, name string, o export.Options) {
	t.Helper()
	l.breakAt(t, 4)
	if _, err := l.export(t.Context(), filepath.Join(dir, name), o); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("%v", err)
	}
	if names := files(t, dir); len(names) != 2 || names[0] != name+".partial" || names[1] != name+".resume" {
		t.Fatalf("there are %v", names)
	}
}

// TestWhatWasTornIsCutOff: whatever the process had written behind the last mark, to the file or to the notes, is gone.
func TestWhatWasTornIsCutOff(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	l.write(t, orders, docs(150)...)
	o := export.Options{Resume: true, Lanes: 2, SafeEvery: time.Nanosecond}.Small(20)
	for _, f := range []export.Format{export.NDJSON, export.Parquet} {
		name := "out." + string(f)
		whole := t.TempDir()
		l.mustExport(t, filepath.Join(whole, name), o)
		dir := t.TempDir()
		interrupted(t, l, dir, name, o)
		path := filepath.Join(dir, name)
		data, notes := contents(t, path+".partial"), contents(t, path+".resume")
		// The notes were cut in the middle of each of their lines, and the file has more than any of them says.
		for cut := len(notes); cut > 0; cut -= 1 + len(notes)/20 {
			torn := t.TempDir()
			write(t, filepath.Join(torn, name+".partial"), append(slices.Clone(data), "torn"...))
			write(t, filepath.Join(torn, name+".resume"), notes[:cut])
			l.mustExport(t, filepath.Join(torn, name), o)
			if d := cmp.Diff(tree(t, whole), tree(t, torn)); d != "" {
				t.Fatalf("%s, notes cut at %d: %s", f, cut, d)
			}
		}
		// Bytes of the notes were damaged: what is before them counts.
		for at := 0; at < len(notes); at += 1 + len(notes)/10 {
			torn := t.TempDir()
			damaged := slices.Clone(notes)
			damaged[at] ^= 1
			write(t, filepath.Join(torn, name+".partial"), data)
			write(t, filepath.Join(torn, name+".resume"), damaged)
			l.mustExport(t, filepath.Join(torn, name), o)
			if d := cmp.Diff(tree(t, whole), tree(t, torn)); d != "" {
				t.Fatalf("%s, notes damaged at %d: %s", f, at, d)
			}
		}
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesThatShrankAreRefused: nobody can tell which rows are missing.
func TestFilesThatShrankAreRefused(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	l.write(t, orders, docs(400)...)
	o := export.Options{Resume: true, Lanes: 2, SafeEvery: time.Nanosecond}.Small(20)
	dir := t.TempDir()
	interrupted(t, l, dir, "a.ndjson", o)
	write(t, filepath.Join(dir, "a.ndjson.partial"), []byte("short"))
	_, err := l.export(t.Context(), filepath.Join(dir, "a.ndjson"), o)
	if !errors.Is(err, export.ErrNotes) || !strings.Contains(err.Error(), "has 5 bytes and had") {
		t.Errorf("%v", err)
	}
}

// TestWhatGoesOnIsTheSame: nobody goes on with another read by mistake, and nobody loses one by forgetting to ask for it.
func TestWhatGoesOnIsTheSame(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	l.write(t, orders, docs(400)...)
	o := export.Options{Resume: true, Lanes: 2, SafeEvery: time.Nanosecond}.Small(20)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.ndjson")
	interrupted(t, l, dir, "a.ndjson", o)

	plain := o
	plain.Resume = false
	_, err := l.export(t.Context(), path, plain)
	if u, ok := errors.AsType[*export.UnfinishedError](err); !ok || u.Rows == 0 || u.Expires.IsZero() || u.Notes != path+".resume" {
		t.Errorf("%v", err)
	}
	other := o
	other.Source.SelectedFields = []string{"id", "na`me"}
	other.Format = export.CSV
	_, err = l.export(t.Context(), path, other)
	changed, ok := errors.AsType[*export.ChangedError](err)
	if d := cmp.Diff([]export.Change{{Name: "Format", Was: "ndjson", Is: "csv"}, {Name: "SelectedFields", Was: "", Is: "id,na`me"}}, func() []export.Change {
		if ok {
			return changed.Changes
		}
		return nil
	}()); d != "" {
		t.Errorf("%v: %s", err, d)
	}
	if !strings.Contains(fmt.Sprint(err), "Format was \"ndjson\" and is \"csv\"; SelectedFields was not given and is \"id,na`me\"") {
		t.Errorf("%v", err)
	}
	x, err := export.Open(t.Context(), bigquery.FromTable(dst), path, l.options(o))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.export(t.Context(), path, o); !errors.Is(err, export.ErrBusy) {
		t.Errorf("two at once: %v", err)
	}
	r, err := x.Run(t.Context())
	if err := errors.Join(err, x.Close()); err != nil || r.Rows != 400 || r.Before == 0 || r.Before == 400 {
		t.Errorf("%+v, %v", r, err)
	}
	if r := l.mustExport(t, path, o); !r.Already {
		t.Errorf("a file that is complete: %+v", r)
	}
	if r := l.mustExport(t, path, plain); r.Already || r.Rows != 400 {
		t.Errorf("a file that is complete, read again: %+v", r)
	}
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
}

// TestInterruptsKeepWhatIsWritten: ending the context is no crash, so nothing that came is read again.
func TestInterruptsKeepWhatIsWritten(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	l.write(t, orders, docs(400)...)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.ndjson")
	o := export.Options{Resume: true, Lanes: 2, SafeEvery: time.Hour}.Small(20)
	if err := l.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Method: "ReadRows", Nth: 5}, Action: localbq.FaultAction{Barrier: true}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := l.export(ctx, path, o)
		ended <- err
	}()
	b, err := l.Faults().NextBarrier(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	b.Release()
	lines := int64(bytes.Count(contents(t, path+".partial"), []byte("\n")))
	if r := l.mustExport(t, path, o); r.Rows != 400 || r.Before != lines || lines == 0 {
		t.Errorf("%+v, %d rows were written", r, lines)
	}
}

// TestNothingIsLeftOfNothing: a read that has not begun leaves no files.
func TestNothingIsLeftOfNothing(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	for range 2 {
		_, err := l.export(t.Context(), path, export.Options{Resume: true})
		if _, ok := errors.AsType[*bigquery.PlanError](err); !ok {
			t.Errorf("no table: %v", err)
		}
	}
	l.write(t, orders, docs(3)...)
	l.breakAt(t, 1)
	if _, err := l.export(t.Context(), path, export.Options{}); err == nil {
		t.Error("want an error")
	}
	if names := files(t, dir); len(names) != 0 {
		t.Errorf("there are %v", names)
	}
}
