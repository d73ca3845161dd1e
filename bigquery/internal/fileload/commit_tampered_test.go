package fileload_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	bqrest "google.golang.org/api/bigquery/v2"

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

// TestForeignJobs: a job of somebody else has the id. That it has succeeded says nothing of the rows.
func TestForeignJobs(t *testing.T) {
	t.Parallel()
	id := func(t *testing.T) string {
		b := newBench(t, localbq.Config{})
		b.must(b.stage(dst("t"), "a", 1))
		return b.jobIDs()[0]
	}
	query := func(to string) *bqrest.JobConfiguration {
		return &bqrest.JobConfiguration{Copy: &bqrest.JobConfigurationTableCopy{SourceTable: reference("other"), DestinationTable: reference(to), WriteDisposition: "WRITE_TRUNCATE"}}
	}
	load := func(to string) *bqrest.JobConfiguration {
		return &bqrest.JobConfiguration{Load: &bqrest.JobConfigurationLoad{SourceUris: []string{"gs://staged/s/" + runA + "/p.d.t/other.avro"}, SourceFormat: "AVRO", DestinationTable: reference(to)}}
	}
	for name, c := range map[string]struct {
		config *bqrest.JobConfiguration
		word   string
		met    bool // the look before finds none
	}{
		"of another kind":                        {query("t"), "COPY", false},
		"of another kind, met at its submission": {query("t"), "COPY", true},
		"for another table":                      {load("other"), "p.d.other", false},
		"for another table, met":                 {load("other"), "p.d.other", true},
	} {
		t.Run(name, func(t *testing.T) {
			name := id(t)
			b := newBench(t, localbq.Config{})
			staged := b.stage(dst("t"), "a", 1)
			b.createTable(dst("other"), columns())
			b.createTable(dst("t"), columns())
			b.stage(dst("t"), "other", 5)
			if _, err := b.rest.Jobs.Insert("p", &bqrest.Job{JobReference: &bqrest.JobReference{ProjectId: "p", JobId: name, Location: "US"}, Configuration: c.config}).Do(); err != nil {
				t.Fatal(err)
			}
			if c.met {
				b.arm(answer("jobs.get", localbq.FaultMatch{}, 404, "notFound", 1))
			}
			err := b.commit(staged)
			if err == nil || !permanent(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.word) {
				t.Errorf("got %v", err)
			}
			b.holds(dst("t"))
			if len(b.objects()) != 2 {
				t.Errorf("left are %v", b.objects())
			}
		})
	}
	t.Run("with other files of as many rows it is not told apart, with others it is", func(t *testing.T) {
		name := id(t)
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		b.stage(dst("t"), "other", 5, 6)
		b.createTable(dst("t"), columns())
		if _, err := b.rest.Jobs.Insert("p", &bqrest.Job{JobReference: &bqrest.JobReference{ProjectId: "p", JobId: name, Location: "US"}, Configuration: load("t")}).Do(); err != nil {
			t.Fatal(err)
		}
		refuses(t, b.commit(staged), fileload.ErrRowsDiffer)
	})
}

func reference(name string) *bqrest.TableReference {
	return &bqrest.TableReference{ProjectId: "p", DatasetId: "d", TableId: name}
}

// TestOneStagingPath: what others stage in the same folder is neither loaded nor deleted.
func TestOneStagingPath(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	ours, theirs := b.stage(dst("t"), "0-1-aaaaaaaa-0", 1), b.stage(dst("t"), "0-1-bbbbbbbb-0", 2)
	b.must(ours)
	b.holds(dst("t"), 1)
	if left := b.objects(); len(left) != 1 || "gs://staged/"+left[0] != theirs.URI {
		t.Errorf("left are %v", left)
	}
	theirs.Checkpoint = loadplan.Checkpoint{ID: 1, Set: true}
	b.must(theirs)
	b.holds(dst("t"), 1, 2)
}

// TestForgottenJobs: the service remembers jobs for about six months. Whoever commits again after that loads nothing twice, and hears of
// it.
func TestForgottenJobs(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"direct": false, "with temporary tables": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			if leaves {
				b.leaves()
			}
			cs := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2)}
			b.must(cs...)
			for _, id := range b.jobIDs() {
				if err := b.rest.Jobs.Delete("p", id).Location("US").Do(); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.commit(cs...); err == nil || !strings.Contains(err.Error(), "p.d.t") {
				t.Errorf("got %v", err)
			}
			b.holds(dst("t"), 1, 2)
		})
	}
}
