package fileload_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/localbq"
)

// content is what an object holds.
func (b *bench) content(c loadplan.Committable) []byte {
	b.Helper()
	r, err := b.bucket.Object(strings.TrimPrefix(c.URI, "gs://staged/")).NewReader(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// replace writes other content to the name of a staged file.
func (b *bench) replace(c loadplan.Committable, data []byte) {
	b.Helper()
	b.put(c.Destination, c.URI[strings.LastIndexByte(c.URI, '/')+1:], 0, data)
}

// TestTampered: somebody else writes to staged files before they are loaded. What the load can tell ends the job; nothing is lost
// without a word.
func TestTampered(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"direct": false, "with temporary tables": true} {
		for what, change := range map[string]func(b *bench, c loadplan.Committable) []byte{
			"fewer rows":  func(b *bench, _ loadplan.Committable) []byte { return b.content(b.stage(dst("t"), "else", 9)) },
			"more rows":   func(b *bench, _ loadplan.Committable) []byte { return b.content(b.stage(dst("t"), "else", 9, 9, 9)) },
			"no rows":     func(b *bench, _ loadplan.Committable) []byte { return b.content(b.stage(dst("t"), "else")) },
			"only a head": func(b *bench, c loadplan.Committable) []byte { return headOf(b, b.content(c)) },
		} {
			t.Run("a file is replaced: "+what+", "+name, func(t *testing.T) {
				b := newBench(t, localbq.Config{})
				if leaves {
					b.leaves()
				}
				cs := []loadplan.Committable{b.stage(dst("t"), "a", 1, 2).WithCheckpoint(7), b.stage(dst("t"), "b", 3).WithCheckpoint(7)}
				b.replace(cs[0], change(b, cs[0]))
				before := len(b.objects())
				for range 2 { // it is not forgotten
					err := b.commit(cs...)
					refuses(t, err, fileload.ErrRowsDiffer)
					for _, word := range []string{"p.d.t", "checkpoint 7", "millrace-bq-load-", "start the job from"} {
						if !strings.Contains(err.Error(), word) {
							t.Errorf("%v does not say %q", err, word)
						}
					}
				}
				if len(b.objects()) != before {
					t.Errorf("left are %v", b.objects())
				}
				if leaves {
					b.holds(dst("t"))
				}
			})
		}
	}
	t.Run("a file is cut, anywhere", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		for i, part := range []int{0, 1, 3, 20, 99} {
			to := dst(fmt.Sprintf("t%d", i))
			c := b.stage(to, "a", 1, 2, 3)
			data := b.content(c)
			b.replace(c, data[:len(data)*part/100])
			if err := b.commit(c); err == nil {
				t.Errorf("%d %% of a file were loaded", part)
			}
			b.holds(to)
		}
	})
	t.Run("a file is replaced by what is none", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		c := b.stage(dst("t"), "a", 1)
		b.replace(c, []byte("no Avro at all"))
		if err := b.commit(c); err == nil || !strings.Contains(err.Error(), "p.d.t") {
			t.Errorf("got %v", err)
		}
		b.holds(dst("t"))
	})
}

// headOf is an Avro file without its blocks.
func headOf(b *bench, data []byte) []byte {
	b.Helper()
	marker := data[len(data)-16:]
	at := bytes.Index(data, marker)
	return data[:at+16]
}
