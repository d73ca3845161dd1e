package localbq_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	gcs "cloud.google.com/go/storage"

	"github.com/millrace-dev/millrace/localbq"
)

// TestKillStorage kills a serving process while objects come in, wherever it is: of each name there is then what was
// acknowledged last or a later writing of it, and all of that.
func TestKillStorage(t *testing.T) {
	dir := t.TempDir()
	const names = 5
	var mu sync.Mutex // guards the next two
	var sent [names]int
	var acked [names]int // the number of the last writing that was acknowledged; 0 is none
	for range 5 {
		child, address := serveStorage(t, dir)
		if code, text := upload(address, "POST", "/storage/v1/b?project=p", strings.NewReader(`{"name":"lake"}`)); code != 200 && code != 409 {
			t.Fatalf("making a bucket: %d %s", code, text)
		}
		countdown := 5 + rand.IntN(60)
		var writers sync.WaitGroup
		for i := range names {
			writers.Go(func() {
				for {
					mu.Lock()
					sent[i]++
					n := sent[i]
					mu.Unlock()
					if code, _ := upload(address, "POST", fmt.Sprintf("/upload/storage/v1/b/lake/o?uploadType=media&name=%d", i), bytes.NewReader(writing(i, n))); code != 200 {
						return
					}
					mu.Lock()
					acked[i] = n
					if countdown--; countdown == 0 {
						child.Process.Kill()
					}
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		child.Wait()
		checkWritings(t, dir, sent[:], acked[:])
	}
}

// writing is the content of the n-th writing of an object, which tells them apart.
func writing(object, n int) []byte {
	rest := content(1 + (object*7919+n*104_729)%900_000)
	return append(fmt.Appendf(nil, "%d %d %08x\n", object, n, crc32.ChecksumIEEE(rest)), rest...)
}

func checkWritings(t *testing.T, dir string, sent, acked []int) {
	t.Helper()
	ctx := context.Background()
	bq, err := localbq.Start(ctx, localbq.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	c, err := gcs.NewClient(ctx, bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range sent {
		r, err := c.Bucket("lake").Object(fmt.Sprint(i)).NewReader(ctx)
		if err != nil {
			if acked[i] > 0 {
				t.Errorf("object %d: %v, and writing %d was acknowledged", i, err, acked[i])
			}
			continue
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var object, n int
		fmt.Sscanf(string(got[:min(len(got), 40)]), "%d %d", &object, &n)
		if object != i || n < acked[i] || n > sent[i] || !bytes.Equal(got, writing(i, n)) {
			t.Errorf("object %d has %d bytes of writing %d of object %d; %d was acknowledged, %d sent", i, len(got), n, object, acked[i], sent[i])
		}
	}
}

func upload(address, method, path string, body io.Reader) (int, string) {
	q, err := http.NewRequest(method, "http://"+address+path, body)
	if err != nil {
		return 0, err.Error()
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error()
	}
	return r.StatusCode, string(text)
}

// serveStorage starts a process that serves a folder. The test kills it and waits for it.
func serveStorage(t *testing.T, dir string) (child *exec.Cmd, address string) {
	t.Helper()
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "storage "); ok {
			return child, at
		}
	}
	t.Fatalf("the child ended: %v", child.Wait())
	return nil, ""
}
