package loadplan_test

import (
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

// BenchmarkBuild plans a million files of one table, in no order: 256 writers' in turn, as a committer gets them.
func BenchmarkBuild(b *testing.B) {
	const writers, each = 256, 4000
	uris := make([]string, 0, writers*each)
	for seq := range each {
		for w := range writers {
			uris = append(uris, fmt.Sprintf("gs://bucket/staging/%s/p.d.t/%d-0-%08x-%d.avro", runA, w*7919%writers, w, seq))
		}
	}
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(uris)), "ns/file")
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(len(uris)), "kept-B/file")
	runtime.KeepAlive(plan)
	runtime.KeepAlive(uris)
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
