package killtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

const unit = 256 << 10 // of chunks of resumable uploads

// filling is n bytes that differ by seed.
func filling(seed byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i*7+i>>8) ^ seed
	}
	return out
}

var (
	small  = filling(1, 1000)
	second = filling(2, 2000)
	large  = filling(3, 2*unit+7)
)

// storageClient writes objects, each step once it knows that the one before is done. It is started again where the service
// was lost, and goes on.
func storageClient(ctx context.Context) error {
	c := &lake{ctx: ctx, base: "http://" + os.Getenv(rest), dir: os.Getenv(state)}
	for _, step := range []func() error{
		func() error { return c.send("POST", "/storage/v1/b?project=p", []byte(`{"name":"lake"}`), 409) },
		// A condition makes a repetition known: 412 is that it has been done before.
		func() error { return c.insert("simple", "&ifGenerationMatch=0", small, 412) },
		func() error { return c.holds("simple", small, second) },
		func() error { return c.insert("simple", "", second) },
		func() error { return c.holds("simple", second) },
		c.upload,
		func() error { return c.holds("large", large) },
		func() error {
			return c.send("POST", "/storage/v1/b/lake/o/both/compose", []byte(`{"sourceObjects":[{"name":"simple"},{"name":"large"}]}`))
		},
		func() error { return c.send("POST", "/storage/v1/b/lake/o/both/rewriteTo/b/lake/o/copy", []byte(`{}`)) },
		func() error { return c.holds("copy", append(slices.Clone(second), large...)) },
		func() error { return c.send("PATCH", "/storage/v1/b/lake/o/both", []byte(`{"metadata":{"k":"v"}}`)) },
		func() error { return c.send("DELETE", "/storage/v1/b/lake/o/copy", nil, 404) },
		func() error { return c.send("GET", "/storage/v1/b/lake/o/copy", nil, 404) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// lake is a bucket over HTTP, by hand: the official client would send again what has got lost.
type lake struct {
	ctx       context.Context
	base, dir string
}

func (c *lake) call(method, at string, body []byte, span string) (*http.Response, []byte, error) {
	q, err := http.NewRequestWithContext(c.ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if span != "" {
		q.Header.Set("Content-Range", span)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	return r, answer, err
}

// send makes a call that answers 2xx, or one of the other codes.
func (c *lake) send(method, path string, body []byte, also ...int) error {
	r, answer, err := c.call(method, c.base+path, body, "")
	if err == nil && r.StatusCode/100 != 2 && !slices.Contains(also, r.StatusCode) {
		err = fmt.Errorf("%s %s: %s: %s", method, path, r.Status, answer)
	}
	return err
}

func (c *lake) insert(name, more string, content []byte, also ...int) error {
	return c.send("POST", "/upload/storage/v1/b/lake/o?uploadType=media&name="+name+more, content, also...)
}

// holds reads an object that has to be one of some contents.
func (c *lake) holds(name string, contents ...[]byte) error {
	r, got, err := c.call("GET", c.base+"/storage/v1/b/lake/o/"+name+"?alt=media", nil, "")
	if err != nil || r.StatusCode == 200 && slices.ContainsFunc(contents, func(want []byte) bool { return bytes.Equal(got, want) }) {
		return err
	}
	return fmt.Errorf("object %s: %s and %d bytes that were not written", name, r.Status, len(got))
}

// upload is a resumable upload, whose session and acknowledged bytes are noted.
func (c *lake) upload() error {
	session, err := os.ReadFile(filepath.Join(c.dir, "session"))
	if errors.Is(err, os.ErrNotExist) {
		session, err = c.begin()
	}
	if err != nil {
		return err
	}
	for {
		acked, err := read(filepath.Join(c.dir, "acked"))
		if err != nil {
			return err
		}
		r, answer, err := c.call("PUT", string(session), nil, "bytes */*")
		if err != nil || r.StatusCode == 200 {
			return err
		}
		at, err := persisted(r, answer)
		if err != nil {
			return err
		}
		if at < acked {
			return fmt.Errorf("the upload has %d bytes, and %d were acknowledged", at, acked)
		}
		end, total := min(at+unit, len(large)), "*"
		if end == len(large) {
			total = strconv.Itoa(end)
		}
		r, answer, err = c.call("PUT", string(session), large[at:end], fmt.Sprintf("bytes %d-%d/%s", at, end-1, total))
		if err != nil || r.StatusCode == 200 {
			return err
		}
		if acked, err = persisted(r, answer); err != nil {
			return err
		}
		if err := write(filepath.Join(c.dir, "acked"), acked); err != nil {
			return err
		}
	}
}

func (c *lake) begin() ([]byte, error) {
	r, answer, err := c.call("POST", c.base+"/upload/storage/v1/b/lake/o?uploadType=resumable&name=large", []byte(`{}`), "")
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(r.Header.Get("Location"))
	if r.StatusCode != 200 || err != nil || at.Query().Get("upload_id") == "" {
		return nil, fmt.Errorf("beginning an upload: %s: %s", r.Status, answer)
	}
	session := []byte(at.String())
	return session, os.WriteFile(filepath.Join(c.dir, "session"), session, 0o644)
}

// persisted is how much of an upload an answer says is there.
func persisted(r *http.Response, answer []byte) (int, error) {
	if r.StatusCode != 308 {
		return 0, fmt.Errorf("the upload: %s: %s", r.Status, answer)
	}
	last, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=0-")
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(last)
	return n + 1, err
}

// TestStorage kills the service at every step of writing objects (LBQ-175, LBQ-176). What it has acknowledged is there, whole; what it has not is
// there whole or not at all; a resumable upload goes on where it was.
func TestStorage(t *testing.T) {
	killtest.ServerTest{
		Server: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
			return command("service", state+"="+dir, rest+"="+at.REST)
		},
		Client: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
			return command("storage", state+"="+dir, rest+"="+at.REST)
		},
		Check: func(t testing.TB, bq *localbq.Instance) {
			got, err := objects(bq)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]byte{"simple": second, "large": large, "both": append(slices.Clone(second), large...)}
			if !maps.EqualFunc(got, want, bytes.Equal) {
				for name, content := range got {
					t.Errorf("object %s has %d bytes, want %d", name, len(content), len(want[name]))
				}
			}
		},
		Methods: []string{"buckets.insert", "objects.insert", "gcs.upload.start", "gcs.upload.chunk", "objects.compose", "objects.rewrite", "objects.patch", "objects.delete"},
	}.Run(t)
}

func objects(bq *localbq.Instance) (map[string][]byte, error) {
	ctx := context.Background()
	c, err := storage.NewClient(ctx, bq.GCSClientOptions()...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	out := map[string][]byte{}
	it := c.Bucket("lake").Objects(ctx, nil)
	for {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		r, err := c.Bucket("lake").Object(o.Name).NewReader(ctx)
		if err != nil {
			return nil, err
		}
		out[o.Name], err = io.ReadAll(r) // the official client checks the checksum
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
}
