package localbq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	gcs "cloud.google.com/go/storage"

	"github.com/millrace-dev/millrace/localbq"
)

const chunkBytes = 256 << 10

func TestStorageResumable(t *testing.T) {
	ctx := context.Background()
	bq := start(t, localbq.Config{})
	_, lake := bucket(t, bq)
	all := string(content(2*chunkBytes + 7))
	span := func(first, last int) string { return fmt.Sprintf("bytes %d-%d/*", first, last-1) }
	const one, two = "bytes=0-262143", "bytes=0-524287"
	last := fmt.Sprintf("bytes %d-%d/%d", 2*chunkBytes, len(all)-1, len(all))

	t.Run("LBQ-176 a status query mid-upload leaves the upload open", func(t *testing.T) {
		s := begin(t, bq, "asked")
		s.wants("bytes */*", "", 308, "")
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		s.wants("bytes */*", "", 308, one)
		s.wants(fmt.Sprintf("bytes */%d", len(all)), "", 308, one)
		if _, err := lake.Object("asked").Attrs(ctx); !errors.Is(err, gcs.ErrObjectNotExist) {
			t.Errorf("mid-upload: %v, want ErrObjectNotExist", err)
		}
		s.wants(span(chunkBytes, 2*chunkBytes), all[chunkBytes:2*chunkBytes], 308, two)
		done := s.wants(last, all[2*chunkBytes:], 200, "")
		wantBytes(t, get(t, lake.Object("asked")), []byte(all))
		if again := s.wants("bytes */*", "", 200, ""); again != done || !strings.Contains(done, `"storage#object"`) {
			t.Errorf("a complete upload answers\n%s, and was answered\n%s", again, done)
		}
		s.wants(last, all[2*chunkBytes:], 200, "")
	})
	t.Run("LBQ-175 a chunk resent after a lost 308 is stored once, by its position", func(t *testing.T) {
		s := begin(t, bq, "resent")
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		s.wants(span(0, 2*chunkBytes), all[:2*chunkBytes], 308, two)
		s.wants(fmt.Sprintf("bytes 0-%d/%d", len(all)-1, len(all)), all, 200, "")
		wantBytes(t, get(t, lake.Object("resent")), []byte(all))
	})
	t.Run("a chunk ahead of the end is answered with what is there", func(t *testing.T) {
		s := begin(t, bq, "ahead")
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		s.wants(last, all[2*chunkBytes:], 308, one)
		s.wants("bytes */*", "", 308, one)
	})
	t.Run("chunks but the last are multiples of 256 KiB", func(t *testing.T) {
		s := begin(t, bq, "short")
		s.wants(span(0, 1000), all[:1000], 400, "")
		s.wants(span(0, chunkBytes+1), all[:chunkBytes+1], 400, "")
		s.wants("bytes 0-9/5", all[:10], 400, "")
		s.wants("bytes 0-9/*x", all[:10], 400, "")
		s.wants("bytes 0-999/*", all[:10], 400, "")
		s.wants("bytes */*", "", 308, "")
	})
	t.Run("an upload in one request, and of nothing", func(t *testing.T) {
		begin(t, bq, "whole").wants("", all, 200, "")
		wantBytes(t, get(t, lake.Object("whole")), []byte(all))
		begin(t, bq, "nothing").wants("bytes */0", "", 200, "")
		wantBytes(t, get(t, lake.Object("nothing")), nil)
	})
	t.Run("X-GUploader-No-308 has 200 for 308", func(t *testing.T) {
		s := begin(t, bq, "masked")
		q, err := http.NewRequest("PUT", s.url, strings.NewReader(all[:chunkBytes]))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Range", span(0, chunkBytes))
		q.Header.Set("X-GUploader-No-308", "yes")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != 200 || r.Header.Get("X-Http-Status-Code-Override") != "308" || r.Header.Get("Range") != one {
			t.Errorf("got %s, %v", r.Status, r.Header)
		}
	})
	t.Run("preconditions are checked at completion", func(t *testing.T) {
		s := begin(t, bq, "raced&ifGenerationMatch=0")
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		put(t, lake.Object("raced"), []byte("first"))
		whole := fmt.Sprintf("bytes %d-%d/%d", chunkBytes, len(all)-1, len(all))
		s.wants(whole, all[chunkBytes:], 412, "")
		s.wants(whole, all[chunkBytes:], 412, "")
		wantBytes(t, get(t, lake.Object("raced")), []byte("first"))
	})
	t.Run("DELETE answers 499 and ends the upload", func(t *testing.T) {
		s := begin(t, bq, "cancelled")
		s.wants(span(0, chunkBytes), all[:chunkBytes], 308, one)
		q, err := http.NewRequest("DELETE", s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != 499 {
			t.Errorf("got %s, want 499", r.Status)
		}
		s.wants("bytes */*", "", 410, "")
		s.url = strings.Replace(s.url, "upload_id=", "upload_id=no", 1)
		s.wants("bytes */*", "", 404, "")
	})
	t.Run("of a chunk that breaks off, whole units are kept", func(t *testing.T) {
		s := begin(t, bq, "broken")
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", bq.GCS())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nContent-Range: bytes 0-%d/*\r\n\r\n%s", u.RequestURI(), 2*chunkBytes, 2*chunkBytes-1, all[:chunkBytes+99])
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, bufio.NewReader(conn)) // until the service has given up
		conn.Close()
		s.wants("bytes */*", "", 308, one)
		s.wants(fmt.Sprintf("bytes %d-%d/%d", chunkBytes, len(all)-1, len(all)), all[chunkBytes:], 200, "")
		wantBytes(t, get(t, lake.Object("broken")), []byte(all))
	})
}

// TestStorageSurvives closes and opens a folder: buckets, objects and uploads go on.
func TestStorageSurvives(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	all := string(content(chunkBytes + 7))
	open := func() (*localbq.Instance, *gcs.Client) {
		bq, err := localbq.Start(ctx, localbq.Config{Dir: dir, Sync: localbq.SyncAlways})
		if err != nil {
			t.Fatal(err)
		}
		c, err := gcs.NewClient(ctx, bq.GCSClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		return bq, c
	}
	shut := func(bq *localbq.Instance, c *gcs.Client) {
		if err := errors.Join(c.Close(), bq.Close()); err != nil {
			t.Fatal(err)
		}
	}
	bq, c := open()
	lake := c.Bucket("lake")
	if err := lake.Create(ctx, bq.Project(), nil); err != nil {
		t.Fatal(err)
	}
	names := []string{"../../../escape", "/etc/passwd", "nul\x00", strings.Repeat("n", 1024), "plain"}
	for _, name := range names {
		put(t, lake.Object(name), []byte("old"))
		put(t, lake.Object(name), []byte(name))
	}
	put(t, lake.Object("deleted"), nil)
	if err := lake.Object("deleted").Delete(ctx); err != nil {
		t.Fatal(err)
	}
	s := begin(t, bq, "slow")
	s.wants(fmt.Sprintf("bytes 0-%d/*", chunkBytes-1), all[:chunkBytes], 308, "bytes=0-262143")
	done := begin(t, bq, "done")
	answer := done.wants("", all, 200, "")
	shut(bq, c)

	bq, c = open()
	defer func() { shut(bq, c) }()
	lake = c.Bucket("lake")
	slices.Sort(names)
	if got, want := list(t, lake, gcs.Query{}, 1000), append(slices.Clone(names), "done"); !slices.Equal(got, sorted(want)) {
		t.Errorf("listed %.200q, want %.200q", got, want)
	}
	for _, name := range names {
		wantBytes(t, get(t, lake.Object(name)), []byte(name))
	}
	move := func(s resumable) resumable {
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = bq.GCS()
		return resumable{t, u.String()}
	}
	s, done = move(s), move(done)
	s.wants("bytes */*", "", 308, "bytes=0-262143")
	s.wants(fmt.Sprintf("bytes %d-%d/%d", chunkBytes, len(all)-1, len(all)), all[chunkBytes:], 200, "")
	wantBytes(t, get(t, lake.Object("slow")), []byte(all))
	if got := done.wants("bytes */*", "", 200, ""); generationOf(got) != generationOf(answer) {
		t.Errorf("a complete upload answers %s, and was answered %s", got, answer)
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func generationOf(resource string) string {
	_, rest, _ := strings.Cut(resource, `"generation":"`)
	generation, _, _ := strings.Cut(rest, `"`)
	return generation
}

func TestStorageOnASinglePort(t *testing.T) {
	bq := start(t, localbq.Config{SinglePort: true})
	_, lake := bucket(t, bq)
	put(t, lake.Object("a/b"), content(chunkBytes+1))
	wantBytes(t, get(t, lake.Object("a/b")), content(chunkBytes+1))
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	r, err := http.Get("http://" + bq.REST() + "/projects/" + bq.Project() + "/datasets/d/tables/t")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 200 {
		t.Errorf("REST on the same port: %s", r.Status)
	}
}
