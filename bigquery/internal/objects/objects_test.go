package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/bigquery/internal/objects"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/localbq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a local Cloud Storage with the bucket "staged".
type place struct {
	*testing.T
	bq     *localbq.Instance
	client *storage.Client
	store  *objects.Store
}

func setup(t *testing.T) *place {
	t.Helper()
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := storage.NewClient(ctx, bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, bq: bq, client: client, store: objects.New(gcp.Connection{StorageEndpoint: bq.GCS()}, 10*time.Second)}
	t.Cleanup(func() {
		if err := errors.Join(p.store.Close(), client.Close(), bq.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := client.Bucket("staged").Create(ctx, "p", nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) faults(f ...localbq.Fault) {
	p.Helper()
	for i := range f {
		f[i].Match.Service = "gcs"
	}
	if err := p.bq.Faults().Add(f...); err != nil {
		p.Fatal(err)
	}
}

// put uploads in pieces, as blocks of a file come.
func (p *place) put(ctx context.Context, uri string, data []byte) error {
	p.Helper()
	o, err := p.store.Create(ctx, uri)
	if err != nil {
		p.Fatal(err)
	}
	for part := range slices.Chunk(data, 50_000) {
		n, err := o.Write(ctx, part)
		if err != nil {
			return err
		}
		if n != len(part) {
			p.Fatalf("%d bytes of %d are written, and no error", n, len(part))
		}
	}
	return o.Close(ctx)
}

// names lists what is in the bucket.
func (p *place) names() (names []string) {
	p.Helper()
	for it := p.client.Bucket("staged").Objects(context.Background(), nil); ; {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return names
		}
		if err != nil {
			p.Fatal(err)
		}
		names = append(names, o.Name)
	}
}

func (p *place) wants(name string, data []byte) {
	p.Helper()
	r, err := p.client.Bucket("staged").Object(name).NewReader(context.Background())
	if err != nil {
		p.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		p.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		p.Errorf("%s has %d bytes that are not the %d written", name, len(got), len(data))
	}
}

// calls are the calls that were made, each as often as it was.
func (p *place) calls() map[string]int {
	p.Helper()
	calls := map[string]int{}
	for r, err := range p.bq.Audit().Records() {
		if err != nil {
			p.Fatal(err)
		}
		calls[r.RPC]++
	}
	return calls
}

func noise(n int) []byte {
	b := make([]byte, n)
	c := rand.NewChaCha8([32]byte{1})
	_, _ = c.Read(b)
	return b
}

func TestObjects(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 4 << 20, 9<<20 + 7} {
		name := fmt.Sprintf("of %d ~ü/a.avro", size)
		if err := p.put(t.Context(), "gs://staged/"+name, noise(size)); err != nil {
			t.Fatal(err)
		}
		p.wants(name, noise(size))
	}
	calls := p.calls()
	if calls["objects.insert"] != 4 || calls["gcs.upload.start"] != 3 || calls["gcs.upload.chunk"] != 1+1+3 {
		t.Errorf("calls %v, want an object of up to 256 KiB in one, and 4 MiB at a time of others", calls)
	}
}

// TestUploadsUnderFaults: what fails in passing is sent again, and an upload that is cut off goes on where it was.
func TestUploadsUnderFaults(t *testing.T) {
	t.Parallel()
	large := noise(9 << 20)
	busy := localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}
	for name, c := range map[string]struct {
		data   []byte
		faults []localbq.Fault
	}{
		"a small one, busy":             {large[:1000], []localbq.Fault{{Match: localbq.FaultMatch{Method: "objects.insert"}, Action: busy}}},
		"a small one, answer lost":      {large[:1000], []localbq.Fault{{Match: localbq.FaultMatch{Method: "objects.insert"}, Action: localbq.FaultAction{LoseAck: true}}}},
		"a small one, connection reset": {large[:100_000], []localbq.Fault{{Match: localbq.FaultMatch{Method: "objects.insert"}, Action: localbq.FaultAction{Reset: true}}}},
		"start busy":                    {large, []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.start"}, Action: busy}}},
		"chunks busy": {large, []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 1}, Action: busy},
			{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 3}, Action: busy}}},
		"reset in the middle of a chunk": {large, []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 2},
			Action: localbq.FaultAction{ResetAfter: &localbq.FaultCut{Bytes: 1 << 20, From: "client"}}}}},
		"a chunk's answer lost":      {large, []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 2}, Action: localbq.FaultAction{LoseAck: true}}}},
		"the last one's answer lost": {large, []localbq.Fault{{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 3}, Action: localbq.FaultAction{LoseAck: true}}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := setup(t)
			p.faults(c.faults...)
			if err := p.put(t.Context(), "gs://staged/o", c.data); err != nil {
				t.Fatal(err)
			}
			p.bq.Faults().MustAllFire(t)
			p.wants("o", c.data)
		})
	}
}

// TestLostUploads: what cannot be mended ends the object, which does not come to be.
func TestLostUploads(t *testing.T) {
	t.Parallel()
	t.Run("the session is gone", func(t *testing.T) {
		p := setup(t)
		p.faults(localbq.Fault{Match: localbq.FaultMatch{Method: "gcs.upload.chunk", Nth: 2}, Count: localbq.FaultAlways,
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 410, Reason: "gone"}}})
		err := p.put(t.Context(), "gs://staged/o", noise(9<<20))
		if err == nil || !strings.Contains(err.Error(), "upload gs://staged/o: ") || !strings.Contains(err.Error(), "410") {
			t.Errorf("got %v", err)
		}
		if names := p.names(); names != nil {
			t.Errorf("there are %q", names)
		}
	})
	t.Run("no bucket", func(t *testing.T) {
		p := setup(t)
		for _, size := range []int{10, 1 << 20} {
			if err := p.put(t.Context(), "gs://nosuch/o", noise(size)); err == nil || !strings.Contains(err.Error(), "upload gs://nosuch/o: ") {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	})
	t.Run("busy for longer than the deadline", func(t *testing.T) {
		p := setup(t)
		store := objects.New(gcp.Connection{StorageEndpoint: p.bq.GCS()}, 300*time.Millisecond)
		defer func() { _ = store.Close() }()
		p.store, store = store, p.store
		p.faults(localbq.Fault{Count: localbq.FaultAlways, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}})
		err := p.put(t.Context(), "gs://staged/o", noise(10))
		if err == nil || !strings.Contains(err.Error(), "no success within 300ms") || !strings.Contains(err.Error(), "503") {
			t.Errorf("got %v", err)
		}
		for _, f := range p.store.Delete(t.Context(), slices.Values([]string{"gs://staged/o"})) {
			err = f.Err
		}
		if err == nil || !strings.Contains(err.Error(), "delete gs://staged/o: no success within 300ms") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("credentials that are not there", func(t *testing.T) {
		store := objects.New(gcp.Connection{RESTEndpoint: "127.0.0.1:1"}, time.Second)
		o, err := store.Create(t.Context(), "gs://staged/o")
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Close(t.Context()); !errors.Is(err, gcp.ErrEndpoint) {
			t.Errorf("got %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAbort(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1000, 1 << 20, 6 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := setup(t)
			o, err := p.store.Create(t.Context(), "gs://staged/o")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Write(t.Context(), noise(size)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(o.Abort(), o.Abort()); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Write(t.Context(), []byte("x")); err == nil {
				t.Error("an aborted object takes more")
			}
			if err := o.Close(t.Context()); err == nil {
				t.Error("an aborted object is closed")
			}
			if names := p.names(); names != nil {
				t.Errorf("there are %q", names)
			}
		})
	}
	t.Run("after Close it does nothing", func(t *testing.T) {
		p := setup(t)
		o, err := p.store.Create(t.Context(), "gs://staged/o")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(o.Close(t.Context()), o.Abort()); err != nil {
			t.Fatal(err)
		}
		p.wants("o", nil)
	})
}

// TestEndOfContexts: a call's context bounds that call, and an object outlives it.
func TestEndOfContexts(t *testing.T) {
	t.Parallel()
	p := setup(t)
	data := noise(6 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	o, err := p.store.Create(ctx, "gs://staged/o")
	if err == nil {
		_, err = o.Write(ctx, data[:5<<20])
	}
	cancel()
	if err == nil {
		_, err = o.Write(t.Context(), data[5<<20:])
	}
	if err == nil {
		err = o.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	p.wants("o", data)

	cause := errors.New("enough")
	p.faults(localbq.Fault{Match: localbq.FaultMatch{Method: "gcs.upload.chunk"}, Action: localbq.FaultAction{Barrier: true}})
	stuck, stop := context.WithCancelCause(t.Context())
	go func() {
		held, err := p.bq.Faults().NextBarrier(context.Background())
		stop(cause)
		if err == nil {
			held.Cut()
		}
	}()
	if err := p.put(stuck, "gs://staged/stuck", data); !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if diff := cmp.Diff([]string{"o"}, p.names()); diff != "" {
		t.Error(diff)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var uris []string
	for i := range 100 {
		uris = append(uris, fmt.Sprintf("gs://staged/o%d", i))
		if i%3 > 0 {
			if err := p.put(t.Context(), uris[i], []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	uris = append(uris, "gs://nosuch/o")
	p.faults(
		localbq.Fault{Match: localbq.FaultMatch{Method: "objects.delete", Object: "gs://staged/o1"}, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}},
		localbq.Fault{Match: localbq.FaultMatch{Method: "objects.delete", Object: "gs://staged/o2"}, Action: localbq.FaultAction{LoseAck: true}},
		localbq.Fault{Match: localbq.FaultMatch{Method: "objects.delete", Object: "gs://staged/o4"}, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "forbidden"}}})
	failed := p.store.Delete(t.Context(), slices.Values(uris))
	if len(failed) != 1 || failed[0].URI != "gs://staged/o4" || !strings.Contains(failed[0].Err.Error(), "403") {
		t.Errorf("failed %v, want o4", failed)
	}
	p.bq.Faults().MustAllFire(t)
	if diff := cmp.Diff([]string{"o4"}, p.names()); diff != "" {
		t.Error(diff)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if failed := p.store.Delete(ended, slices.Values(uris)); len(failed) != len(uris) || !errors.Is(failed[0].Err, context.Canceled) {
		t.Errorf("after the end of the context %d of %d failed", len(failed), len(uris))
	}
	if failed := p.store.Delete(t.Context(), slices.Values([]string{})); failed != nil {
		t.Error(failed)
	}
}

func TestHostileURIs(t *testing.T) {
	t.Parallel()
	store := objects.New(gcp.Connection{StorageEndpoint: "127.0.0.1:1"}, time.Second)
	for _, uri := range []string{"", "staged/o", "gs://", "gs://staged", "gs://staged/", "gs:///o", "s3://b/o", "gs://staged/a*", "gs://staged/a?", "gs://staged/a#1", "gs://staged/[a]"} {
		if _, err := store.Create(t.Context(), uri); err == nil || !strings.Contains(err.Error(), "expected gs://bucket/name") {
			t.Errorf("%q: %v", uri, err)
		}
		if failed := store.Delete(t.Context(), slices.Values([]string{uri})); len(failed) != 1 {
			t.Errorf("%q is deleted", uri)
		}
	}
}
