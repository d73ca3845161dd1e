package loadplan_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

// BenchmarkBuild plans files of one table, in no order: 256 writers' in turn, as a committer gets them. What anybody would have to do who
// gives jobs ids by their files is beside it: sort the names, and hash them.
func BenchmarkBuild(b *testing.B) {
	for _, files := range []int{1_000, 1_000_000, 10_000_000} {
		if files > 1_000_000 && testing.Short() {
			continue
		}
		b.Run(strconv.Itoa(files), func(b *testing.B) {
			const writers = 256
			uris := make([]string, files)
			for i := range uris {
				w := i % writers
				uris[i] = fmt.Sprintf("gs://bucket/staging/%s/p.d.t/%d-0-%08x-%d.avro", runA, w*7919%writers, w, i/writers)
			}
			b.Run("plan", func(b *testing.B) { benchBuild(b, uris) })
			b.Run("sort and hash", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sorted := slices.Sorted(slices.Values(uris))
					h := sha256.New()
					for _, uri := range sorted {
						_, _ = io.WriteString(h, uri)
					}
					h.Sum(nil)
				}
				perFile(b, files)
			})
		})
	}
}

func benchBuild(b *testing.B, uris []string) {
	var cs iter.Seq[loadplan.Committable] = func(yield func(loadplan.Committable) bool) {
		c := staged("").WithCheckpoint(7)
		for _, uri := range uris {
			c.URI, c.Bytes = uri, 16<<20
			if !yield(c) {
				return
			}
		}
	}
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var plan *loadplan.Plan
	for b.Loop() {
		var err error
		if plan, err = loadplan.Build(loadplan.Config{}, service, cs); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perFile(b, len(uris))
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(len(uris)), "kept-B/file")
	runtime.KeepAlive(plan)
	runtime.KeepAlive(uris)
}

func perFile(b *testing.B, files int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(files), "ns/file")
	b.ReportMetric(float64(b.N)*float64(files)/b.Elapsed().Seconds(), "files/s")
}

// BenchmarkUnmarshal reads a committable.
func BenchmarkUnmarshal(b *testing.B) {
	data := marshal(b, staged("0123456789abcdef/p.d.t/3-0-0a0b0c0d-17.avro").WithCheckpoint(7))
	b.ReportAllocs()
	for b.Loop() {
		var c loadplan.Committable
		if err := c.UnmarshalBinary(data); err != nil {
			b.Fatal(err)
		}
	}
}
