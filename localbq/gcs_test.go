package localbq_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gcs "cloud.google.com/go/storage"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq"
)

// bucket is the official client at a bucket "lake", unmodified.
func bucket(t testing.TB, bq *localbq.Instance) (*gcs.Client, *gcs.BucketHandle) {
	t.Helper()
	c, err := gcs.NewClient(context.Background(), bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b := c.Bucket("lake")
	if err := b.Create(context.Background(), bq.Project(), nil); err != nil {
		t.Fatal(err)
	}
	return c, b
}

// put uploads in chunks of 256 KiB, with retries of everything.
func put(t testing.TB, o *gcs.ObjectHandle, content []byte) *gcs.ObjectAttrs {
	t.Helper()
	w := o.Retryer(gcs.WithPolicy(gcs.RetryAlways)).NewWriter(context.Background())
	w.ChunkSize = 256 << 10
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Attrs()
}

func get(t testing.TB, o *gcs.ObjectHandle) []byte {
	t.Helper()
	r, err := o.NewReader(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func wantBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes beginning %.40q, want %d beginning %.40q", len(got), got, len(want), want)
	}
}

// content is n bytes no two stretches of which are equal.
func content(n int) []byte {
	counted.Lock()
	defer counted.Unlock()
	for len(counted.text) < n {
		counted.text = append(strconv.AppendInt(counted.text, counted.next, 10), ',')
		counted.next++
	}
	return bytes.Clone(counted.text[:n])
}

// counted is what content has come to so far.
var counted struct {
	sync.Mutex
	text []byte
	next int64
}

func httpCode(err error) int {
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code
	}
	return 0
}

func TestStorageClient(t *testing.T) {
	ctx := context.Background()
	bq := start(t, localbq.Config{})
	client, lake := bucket(t, bq)

	t.Run("buckets", func(t *testing.T) {
		attrs, err := lake.Attrs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if attrs.Location != "US" || attrs.LocationType != "multi-region" || attrs.StorageClass != "STANDARD" {
			t.Errorf("made with defaults: %s, %s, %s", attrs.Location, attrs.LocationType, attrs.StorageClass)
		}
		rule := gcs.LifecycleRule{Action: gcs.LifecycleAction{Type: gcs.DeleteAction}, Condition: gcs.LifecycleCondition{AgeInDays: 3, MatchesPrefix: []string{"tmp/"}}}
		if err := client.Bucket("aged").Create(ctx, bq.Project(), &gcs.BucketAttrs{Location: "europe-west1", Labels: map[string]string{"team": "ice"},
			Lifecycle: gcs.Lifecycle{Rules: []gcs.LifecycleRule{rule}}}); err != nil {
			t.Fatal(err)
		}
		attrs, err = client.Bucket("aged").Attrs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if attrs.Location != "EUROPE-WEST1" || attrs.LocationType != "region" || attrs.Labels["team"] != "ice" {
			t.Errorf("made with attributes: %+v", attrs)
		}
		if diff := cmp.Diff([]gcs.LifecycleRule{rule}, attrs.Lifecycle.Rules); diff != "" {
			t.Errorf("lifecycle (-want +got):\n%s", diff)
		}
		var names []string
		for it := client.Buckets(ctx, bq.Project()); ; {
			b, err := it.Next()
			if err == iterator.Done {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, b.Name)
		}
		if want := []string{"aged", "lake"}; !slices.Equal(names, want) {
			t.Errorf("listed %q, want %q", names, want)
		}
		if err := lake.Create(ctx, bq.Project(), nil); httpCode(err) != 409 {
			t.Errorf("made twice: %v, want 409", err)
		}
		if err := client.Bucket("aged").Delete(ctx); err != nil {
			t.Error(err)
		}
		if _, err := client.Bucket("aged").Attrs(ctx); !errors.Is(err, gcs.ErrBucketNotExist) {
			t.Errorf("deleted: %v, want ErrBucketNotExist", err)
		}
		put(t, lake.Object("here"), nil)
		if err := lake.Delete(ctx); httpCode(err) != 409 {
			t.Errorf("not empty: %v, want 409", err)
		}
	})
	t.Run("an object in one request and in chunks, with its checksums and attributes", func(t *testing.T) {
		for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, 1<<20 + 77} {
			want := content(size)
			o := lake.Object(fmt.Sprintf("size/%d", size))
			w := o.NewWriter(ctx)
			w.ChunkSize = 256 << 10
			w.ContentType, w.Metadata = "text/csv", map[string]string{"Origin": "ünit \"test\""}
			if _, err := w.Write(want); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			wantBytes(t, get(t, o), want)
			attrs, err := o.Attrs(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if attrs.Size != int64(size) || attrs.ContentType != "text/csv" || attrs.Metadata["Origin"] != "ünit \"test\"" || len(attrs.MD5) != 16 ||
				attrs.Generation != w.Attrs().Generation || attrs.Metageneration != 1 {
				t.Errorf("%d bytes: attributes %+v", size, attrs)
			}
		}
	})
	t.Run("declared checksums are checked", func(t *testing.T) {
		w := lake.Object("sum").NewWriter(ctx)
		w.CRC32C, w.SendCRC32C = 12345, true
		io.WriteString(w, "content")
		if err := w.Close(); httpCode(err) != 400 {
			t.Errorf("wrong crc32c: %v, want 400", err)
		}
		w = lake.Object("sum").NewWriter(ctx)
		w.MD5 = make([]byte, 16)
		io.WriteString(w, "content")
		if err := w.Close(); httpCode(err) != 400 {
			t.Errorf("wrong md5: %v, want 400", err)
		}
		w = lake.Object("sum").NewWriter(ctx)
		w.MD5, w.ChunkSize = make([]byte, 16), 256<<10
		w.Write(content(600 << 10))
		if err := w.Close(); httpCode(err) != 400 {
			t.Errorf("wrong md5 of a resumable upload: %v, want 400", err)
		}
		if _, err := lake.Object("sum").Attrs(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("after refusals: %v, want ErrObjectNotExist", err)
		}
	})
	t.Run("ranges and generations", func(t *testing.T) {
		o := lake.Object("ranges")
		first := put(t, o, []byte("0123456789"))
		for _, c := range []struct {
			offset, length int64
			want           string
		}{{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {8, 100, "89"}, {-3, -1, "789"}, {0, 0, ""}} {
			r, err := o.NewRangeReader(ctx, c.offset, c.length)
			if err != nil {
				t.Fatalf("range %d+%d: %v", c.offset, c.length, err)
			}
			got, err := io.ReadAll(r)
			r.Close()
			if err != nil || string(got) != c.want {
				t.Errorf("range %d+%d: %q, %v, want %q", c.offset, c.length, got, err, c.want)
			}
		}
		if _, err := o.NewRangeReader(ctx, 10, 1); httpCode(err) != 416 {
			t.Errorf("behind the end: %v, want 416", err)
		}
		second := put(t, o, []byte("new"))
		if second.Generation <= first.Generation {
			t.Errorf("generation %d after %d", second.Generation, first.Generation)
		}
		wantBytes(t, get(t, o.Generation(second.Generation)), []byte("new"))
		if _, err := o.Generation(first.Generation).NewReader(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("the generation replaced: %v, want ErrObjectNotExist", err)
		}
	})
	t.Run("the JSON API reads as the XML API does", func(t *testing.T) {
		c, err := gcs.NewClient(ctx, append(bq.GCSClientOptions(), gcs.WithJSONReads())...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o := c.Bucket("lake").Object("json/reads")
		put(t, o, []byte("0123456789"))
		wantBytes(t, get(t, o), []byte("0123456789"))
		if _, err := c.Bucket("lake").Object("none").NewReader(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("absent: %v, want ErrObjectNotExist", err)
		}
	})
	t.Run("LBQ-174 preconditions", func(t *testing.T) {
		o := lake.Object("once")
		once := func() error {
			w := o.If(gcs.Conditions{DoesNotExist: true}).NewWriter(ctx)
			io.WriteString(w, "x")
			return w.Close()
		}
		if err := once(); err != nil {
			t.Fatal(err)
		}
		err := once()
		if httpCode(err) != 412 || !strings.Contains(err.Error(), "conditionNotMet") {
			t.Errorf("the second time: %v, want 412 conditionNotMet", err)
		}
		attrs, err := o.Attrs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wrong := gcs.Conditions{GenerationMatch: attrs.Generation + 1}
		for what, err := range map[string]error{
			"delete":  o.If(wrong).Delete(ctx),
			"patch":   second(o.If(wrong).Update(ctx, gcs.ObjectAttrsToUpdate{ContentType: "x/y"})),
			"copy":    second(o.If(wrong).CopierFrom(lake.Object("here")).Run(ctx)),
			"source":  second(lake.Object("copy").CopierFrom(o.If(wrong)).Run(ctx)),
			"compose": second(o.If(wrong).ComposerFrom(lake.Object("here")).Run(ctx)),
			"get":     second(o.If(wrong).Attrs(ctx)),
			"read":    second(o.If(wrong).NewReader(ctx)),
			"meta":    second(o.If(gcs.Conditions{MetagenerationMatch: 7}).Attrs(ctx)),
		} {
			if httpCode(err) != 412 {
				t.Errorf("%s: %v, want 412", what, err)
			}
		}
		if err := second(o.If(gcs.Conditions{GenerationNotMatch: attrs.Generation}).Attrs(ctx)); httpCode(err) != 304 {
			t.Errorf("get unless changed: %v, want 304", err)
		}
		if err := o.If(gcs.Conditions{GenerationMatch: attrs.Generation}).Delete(ctx); err != nil {
			t.Error(err)
		}
		if err := o.Delete(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("deleted twice: %v, want ErrObjectNotExist", err)
		}
	})
	t.Run("attributes are patched", func(t *testing.T) {
		o := lake.Object("patched")
		made := put(t, o, []byte("x"))
		attrs, err := o.Update(ctx, gcs.ObjectAttrsToUpdate{ContentType: "a/b", CacheControl: "no-store", Metadata: map[string]string{"k": "v", "l": "w"}})
		if err != nil {
			t.Fatal(err)
		}
		if attrs.Metageneration != 2 || attrs.Generation != made.Generation || attrs.ContentType != "a/b" || attrs.CacheControl != "no-store" || attrs.Metadata["k"] != "v" {
			t.Errorf("patched: %+v", attrs)
		}
		attrs, err = o.Update(ctx, gcs.ObjectAttrsToUpdate{ContentType: "", Metadata: map[string]string{}})
		if err != nil {
			t.Fatal(err)
		}
		if attrs.ContentType != "" || len(attrs.Metadata) != 0 || attrs.CacheControl != "no-store" {
			t.Errorf("cleared: %+v", attrs)
		}
		wantBytes(t, get(t, o), []byte("x"))
	})
	t.Run("copies and compositions", func(t *testing.T) {
		from := put(t, lake.Object("part/1"), []byte("one,"))
		put(t, lake.Object("part/2"), []byte("two"))
		copied, err := lake.Object("copied").CopierFrom(lake.Object("part/1")).Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if copied.CRC32C != from.CRC32C || copied.ContentType != from.ContentType || !bytes.Equal(copied.MD5, from.MD5) {
			t.Errorf("copied %+v of %+v", copied, from)
		}
		joined := lake.Object("joined")
		c := joined.ComposerFrom(lake.Object("part/1"), lake.Object("part/2"), lake.Object("part/1"))
		c.ContentType = "text/plain"
		attrs, err := c.Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if attrs.ComponentCount != 3 || len(attrs.MD5) != 0 || attrs.ContentType != "text/plain" {
			t.Errorf("composed %+v", attrs)
		}
		wantBytes(t, get(t, joined), []byte("one,twoone,"))
		if err := second(joined.ComposerFrom(lake.Object("part/1"), lake.Object("none")).Run(ctx)); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("of an object that is not there: %v", err)
		}
	})
	t.Run("listings", func(t *testing.T) {
		dir := client.Bucket("listed")
		if err := dir.Create(ctx, bq.Project(), nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "a/1", "a/2", "b/1", "b/c/1", "c"} {
			put(t, dir.Object(name), nil)
		}
		for _, c := range []struct {
			query gcs.Query
			want  []string
		}{
			{gcs.Query{}, []string{"a", "a/1", "a/2", "b/1", "b/c/1", "c"}},
			{gcs.Query{Prefix: "a"}, []string{"a", "a/1", "a/2"}},
			{gcs.Query{Delimiter: "/"}, []string{"a", "a/>", "b/>", "c"}},
			{gcs.Query{Prefix: "b/", Delimiter: "/"}, []string{"b/1", "b/c/>"}},
			{gcs.Query{StartOffset: "a/2", EndOffset: "c"}, []string{"a/2", "b/1", "b/c/1"}},
			{gcs.Query{StartOffset: "a/2", Delimiter: "/"}, []string{"a/>", "b/>", "c"}},
			{gcs.Query{Prefix: "none"}, nil},
		} {
			for _, pageSize := range []int{1, 2, 1000} {
				if got := list(t, dir, c.query, pageSize); !slices.Equal(got, c.want) {
					t.Errorf("%+v by %d: %q, want %q", c.query, pageSize, got, c.want)
				}
			}
		}
		if _, err := client.Bucket("nowhere").Objects(ctx, nil).Next(); !errors.Is(err, gcs.ErrBucketNotExist) {
			t.Errorf("of no bucket: %v", err)
		}
	})
	t.Run("names as hostile as they come", func(t *testing.T) {
		for _, name := range []string{"../../etc/passwd", "a//b", "/", "..a", "q?x=1&y#z", "per%2Fcent", "tab\tnul\x00bell\a", "sp ace+plus", "`'\"<>", "ünï/日本",
			strings.Repeat("n", 1024), "o/o/compose", "x/rewriteTo/b/y/o/z"} {
			o := lake.Object(name)
			if got := put(t, o, []byte(name)); got.Name != name {
				t.Errorf("%q was made as %q", name, got.Name)
			}
			wantBytes(t, get(t, o), []byte(name))
			if _, err := o.Attrs(ctx); err != nil {
				t.Errorf("%q: %v", name, err)
			}
			if got := list(t, lake, gcs.Query{Prefix: name}, 1000); !slices.Contains(got, name) {
				t.Errorf("%q is not listed: %q", name, got)
			}
			if err := o.Delete(ctx); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		for _, name := range []string{".", "..", "a\nb", "a\rb", strings.Repeat("n", 1025)} {
			w := lake.Object(name).NewWriter(ctx)
			if err := w.Close(); httpCode(err) != 400 {
				t.Errorf("%q: %v, want 400", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// list is a listing, folded names with a ">" behind them, in one order.
func list(t testing.TB, b *gcs.BucketHandle, q gcs.Query, pageSize int) (names []string) {
	t.Helper()
	it := b.Objects(context.Background(), &q)
	it.PageInfo().MaxSize = pageSize
	for {
		o, err := it.Next()
		if err == iterator.Done {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Prefix != "" {
			names = append(names, o.Prefix+">")
			continue
		}
		names = append(names, o.Name)
	}
}

func TestStorageUploadsUnderFaults(t *testing.T) {
	want := content(1<<20 + 5)
	chunk := func(f localbq.Fault) localbq.Fault {
		f.Match.Service, f.Match.Method, f.Count = "gcs", "gcs.upload.chunk", cmpOr(f.Count, 1)
		return f
	}
	for name, faults := range map[string][]localbq.Fault{
		"LBQ-175 a chunk whose answer is lost": {chunk(localbq.Fault{Match: localbq.FaultMatch{Nth: 2}, Action: localbq.FaultAction{LoseAck: true}})},
		"the last chunk's answer is lost":      {chunk(localbq.Fault{Match: localbq.FaultMatch{Nth: 5}, Action: localbq.FaultAction{LoseAck: true}})},
		"every second answer is lost": {chunk(localbq.Fault{Match: localbq.FaultMatch{Every: 2}, Count: localbq.FaultAlways,
			Action: localbq.FaultAction{LoseAck: true}})},
		"a chunk is refused in passing": {chunk(localbq.Fault{Match: localbq.FaultMatch{Nth: 3},
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}})},
		"a chunk never arrives": {chunk(localbq.Fault{Match: localbq.FaultMatch{Nth: 2}, Action: localbq.FaultAction{Reset: true}})},
		"the start is lost":     {{Match: localbq.FaultMatch{Service: "gcs", Method: "gcs.upload.start"}, Action: localbq.FaultAction{LoseAck: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			bq := start(t, localbq.Config{})
			_, lake := bucket(t, bq)
			if err := bq.Faults().Add(faults...); err != nil {
				t.Fatal(err)
			}
			attrs := put(t, lake.Object("exact"), want)
			bq.Faults().MustAllFire(t)
			wantBytes(t, get(t, lake.Object("exact")), want)
			again, err := lake.Object("exact").Attrs(context.Background())
			if err != nil || again.Generation != attrs.Generation {
				t.Errorf("generation %d is there, %v, and %d was answered", again.Generation, err, attrs.Generation)
			}
		})
	}
	t.Run("one object matches by name", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		_, lake := bucket(t, bq)
		if err := bq.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Object: "gs://lake/bad"}, Count: localbq.FaultAlways,
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 400, Reason: "invalid"}}}); err != nil {
			t.Fatal(err)
		}
		put(t, lake.Object("good"), want)
		w := lake.Object("bad").NewWriter(context.Background())
		if err := w.Close(); httpCode(err) != 400 {
			t.Errorf("got %v, want 400", err)
		}
	})
	t.Run("the audit log has every call with its object and its fate", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		_, lake := bucket(t, bq)
		if err := bq.Faults().Add(faults175...); err != nil {
			t.Fatal(err)
		}
		put(t, lake.Object("seen"), content(600<<10))
		var got []string
		for r, err := range bq.Audit().Records() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s %s %s", r.RPC, r.Object, r.Code, r.Fate))
		}
		want := []string{
			"buckets.insert  200 sent",
			"gcs.upload.start gs://lake/seen 200 sent",
			"gcs.upload.chunk gs://lake/seen  withheld",
			"gcs.upload.chunk gs://lake/seen 200 sent",
			"gcs.upload.chunk gs://lake/seen 200 sent",
			"gcs.upload.chunk gs://lake/seen 200 sent",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("audit log (-want +got):\n%s", diff)
		}
	})
}

var faults175 = []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.chunk"}, Action: localbq.FaultAction{LoseAck: true}}}

func cmpOr(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

func TestStorageByTheClock(t *testing.T) {
	ctx := context.Background()
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Clock: clock})
	client, lake := bucket(t, bq)
	t.Run("a lifecycle rule deletes by age", func(t *testing.T) {
		aged := client.Bucket("aged")
		if err := aged.Create(ctx, bq.Project(), &gcs.BucketAttrs{Lifecycle: gcs.Lifecycle{Rules: []gcs.LifecycleRule{{
			Action: gcs.LifecycleAction{Type: gcs.DeleteAction}, Condition: gcs.LifecycleCondition{AgeInDays: 2, MatchesPrefix: []string{"tmp/"}},
		}}}}); err != nil {
			t.Fatal(err)
		}
		put(t, aged.Object("tmp/1"), nil)
		put(t, aged.Object("kept"), nil)
		clock.Advance(24 * time.Hour)
		put(t, aged.Object("tmp/2"), nil)
		for _, step := range []struct {
			by   time.Duration
			want []string
		}{
			{24*time.Hour - time.Second, []string{"kept", "tmp/1", "tmp/2"}},
			{time.Second, []string{"kept", "tmp/2"}},
			{48 * time.Hour, []string{"kept"}},
		} {
			clock.Advance(step.by)
			if got := list(t, aged, gcs.Query{}, 100); !slices.Equal(got, step.want) {
				t.Errorf("after another %v: %q, want %q", step.by, got, step.want)
			}
		}
	})
	t.Run("an upload lasts seven days", func(t *testing.T) {
		session := begin(t, bq, "slow")
		clock.Advance(7*24*time.Hour - time.Second)
		session.wants("bytes */*", "", 308, "")
		clock.Advance(time.Second)
		session.wants("bytes */*", "", 410, "")
		session.wants("bytes 0-0/1", "x", 410, "")
		if _, err := lake.Object("slow").Attrs(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("got %v, want ErrObjectNotExist", err)
		}
	})
}

// resumable is a resumable upload by hand.
type resumable struct {
	t   testing.TB
	url string
}

func begin(t testing.TB, bq *localbq.Instance, name string) resumable {
	t.Helper()
	r, err := http.Post("http://"+bq.GCS()+"/upload/storage/v1/b/lake/o?uploadType=resumable&name="+name, "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 200 || r.Header.Get("Location") == "" {
		t.Fatalf("start: %s, Location %q", r.Status, r.Header.Get("Location"))
	}
	return resumable{t, r.Header.Get("Location")}
}

// wants puts a body with a Content-Range and compares the answer's code and Range. It returns the body of the answer.
func (s resumable) wants(span, body string, code int, persisted string) string {
	s.t.Helper()
	q, err := http.NewRequest("PUT", s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if span != "" {
		q.Header.Set("Content-Range", span)
	}
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.StatusCode != code || r.Header.Get("Range") != persisted {
		s.t.Errorf("%s: %s, Range %q, want %d, %q: %s", span, r.Status, r.Header.Get("Range"), code, persisted, text)
	}
	return string(text)
}

// Java's client packs what it sends.
func TestStoragePackedRequests(t *testing.T) {
	bq := start(t, localbq.Config{})
	_, b := bucket(t, bq)
	body := "--x\r\nContent-Type: application/json\r\n\r\n{\"name\": \"o\"}\r\n--x\r\nContent-Type: text/plain\r\n\r\ncontent\r\n--x--\r\n"
	for packed, code := range map[string]int{zip(t, body): http.StatusOK, body: http.StatusBadRequest} {
		r, err := http.NewRequest("POST", "http://"+bq.GCS()+"/upload/storage/v1/b/"+b.BucketName()+"/o?uploadType=multipart", strings.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/related; boundary=x")
		r.Header.Set("Content-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != code {
			t.Errorf("got %s, want %d", answer.Status, code)
		}
	}
	wantBytes(t, get(t, b.Object("o")), []byte("content"))
}

func zip(t *testing.T, text string) string {
	var out strings.Builder
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
