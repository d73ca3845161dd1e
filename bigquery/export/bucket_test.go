package export_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/localbq"
)

// lake is a bucket of the local service.
func (l *local) lake(t *testing.T, name string) *storage.BucketHandle {
	t.Helper()
	c, err := storage.NewClient(t.Context(), l.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b := c.Bucket(name)
	if err := b.Create(t.Context(), "p", nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// objects are what a bucket holds.
func objects(t *testing.T, b *storage.BucketHandle) map[string]string {
	t.Helper()
	held := map[string]string{}
	all := b.Objects(t.Context(), nil)
	for {
		o, err := all.Next()
		if errors.Is(err, iterator.Done) {
			return held
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.Object(o.Name).NewReader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		held[o.Name] = string(data)
	}
}

// TestObjects: reads into a bucket go on behind the last object that is complete, and end as if nobody had interrupted them.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, f := range []export.Format{export.NDJSON, export.Parquet, export.Arrow} {
		for _, name := range []string{"deep/out." + string(f), "deep/part-*." + string(f), "folder/"} {
			t.Run(string(f)+" "+name, func(t *testing.T) {
				t.Parallel()
				l := startLocal(t, 9)
				l.write(t, orders, docs(200)...)
				o := export.Options{Format: f, Resume: true, Lanes: 3, SafeEvery: time.Nanosecond}.Small(20)
				if !strings.Contains(name, "out") {
					o.FileBytes = 6000
				}
				whole := l.lake(t, "whole")
				r := l.mustExport(t, "gs://whole/"+name, o)
				want := objects(t, whole)
				if len(want) != r.Files || r.Rows != 200 {
					t.Fatalf("%+v, %d objects", r, len(want))
				}
				for i, nth := range []int{1, 4, 7} {
					bucket := []string{"first", "second", "third"}[i]
					b := l.lake(t, bucket)
					l.breakAt(t, nth)
					if _, err := l.export(t.Context(), "gs://"+bucket+"/"+name, o); err == nil || !strings.Contains(err.Error(), "boom") {
						t.Fatalf("%v", err)
					}
					for left := range objects(t, b) {
						if _, complete := want[left]; !complete && !strings.HasSuffix(left, ".resume") {
							t.Errorf("there is %s", left)
						}
					}
					before := l.sessions(t)
					l.mustExport(t, "gs://"+bucket+"/"+name, o)
					if d := cmp.Diff(want, objects(t, b)); d != "" {
						t.Errorf("broken at call %d: %s", nth, d)
					}
					if l.sessions(t) != before {
						t.Errorf("broken at call %d: another session", nth)
					}
					if r := l.mustExport(t, "gs://"+bucket+"/"+name, o); !r.Already {
						t.Errorf("complete, and %+v", r)
					}
				}
			})
		}
	}
}

func TestObjectsThatCannotBe(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	l.write(t, orders, docs(60)...)
	_, err := l.export(t.Context(), "gs://nowhere/a.ndjson", export.Options{})
	if _, ok := errors.AsType[*export.InvalidError](err); !ok || !errors.Is(err, export.ErrPlace) || !strings.Contains(err.Error(), "gs://nowhere/a.ndjson.resume") {
		t.Errorf("no bucket: %v", err)
	}
	if n := l.sessions(t); n != 0 {
		t.Errorf("%d read sessions", n)
	}
	b := l.lake(t, "lake")
	// Two at once: who comes second to write the notes gives up.
	o := l.options(export.Options{Resume: true}.Small(20))
	first, err := export.Open(t.Context(), bigquery.FromTable(dst), "gs://lake/a.ndjson", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.export(t.Context(), "gs://lake/a.ndjson", o); err != nil {
		t.Errorf("the second: %v", err)
	}
	_, err = first.Run(t.Context())
	if err = errors.Join(err, first.Close()); !errors.Is(err, export.ErrBusy) {
		t.Errorf("the first: %v", err)
	}
	if names := objects(t, b); len(names) != 1 || strings.Count(names["a.ndjson"], "\n") != 60 {
		t.Errorf("there are %d objects", len(names))
	}
	// What an upload ends with is an error of the read.
	if err := l.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Service: "gcs", Object: "gs://lake/b.ndjson"}, Count: localbq.FaultAlways,
		Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "forbidden", Message: "no"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.export(t.Context(), "gs://lake/b.ndjson", export.Options{}); err == nil || !strings.Contains(err.Error(), "gs://lake/b.ndjson") {
		t.Errorf("a denied upload: %v", err)
	}
	if names := objects(t, b); len(names) > 2 {
		t.Errorf("there are %d objects", len(names))
	}
}

// TestTargets: what cannot be a place is refused before anything is read or made.
func TestTargets(t *testing.T) {
	t.Parallel()
	l := startLocal(t, 9)
	dir := t.TempDir()
	for name, want := range map[string]string{
		"":                       "name a file or a folder",
		"a\x00b":                 "no NUL",
		"gs://":                  "expected gs://bucket/name",
		"gs://b":                 "expected gs://bucket/name",
		"gs:///x":                "expected gs://bucket/name",
		"gs://a b/x":             "expected gs://bucket/name",
		"gs://b/x\ny":            "no line ends",
		"gs://b/*/x.ndjson":      "goes into its name, not into a folder's",
		"a*b*.csv":               "there are 2",
		dir + "/x.parquet.gz":    "ends with .gz, and parquet is packed inside",
		dir + "/none/x.ndjson":   "no such file or directory",
		"/dev/null/x.ndjson":     "not a directory",
		"/dev/null":              "is no file",
		dir + "/a/../../../*/..": "not into a folder's",
	} {
		_, err := l.export(t.Context(), name, export.Options{})
		if _, ok := errors.AsType[*export.InvalidError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if names := files(t, dir); len(names) != 0 || l.sessions(t) != 0 {
		t.Errorf("there are %v, %d sessions", names, l.sessions(t))
	}
	// Everything else is a name, as it is.
	l.write(t, orders, docs(60)...)
	for _, name := range []string{"line\nend.ndjson", "-x `a` \"b\" 'c'; $(d).ndjson", "..ndjson", "\xff.ndjson", "part-*-\n.ndjson"} {
		l.mustExport(t, dir+"/"+name, export.Options{})
	}
	want := []string{"line\nend.ndjson", "-x `a` \"b\" 'c'; $(d).ndjson", "..ndjson", "\xff.ndjson", "part-000000-\n.ndjson"}
	slices.Sort(want)
	if d := cmp.Diff(want, files(t, dir)); d != "" {
		t.Error(d)
	}
}
