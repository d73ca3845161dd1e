package fileload_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// held is how much memory is in use, in MiB.
func held() float64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// These tests are not parallel: they measure the memory of the process. The service keeps objects on disk.

func TestMemoryOfOpenFiles(t *testing.T) {
	b := newBench(t, localbq.Config{Dir: t.TempDir()})
	s := columns(field("s", table.Bytes))
	l := b.newLane(func(c *fileload.Config) { c.Options.MaxFileBytes = 1 << 30 })
	before := held()
	noise := rand.NewChaCha8([32]byte{})
	data := make([]byte, 60_000)
	for i := range 16 {
		to := dst(fmt.Sprintf("t%d", i))
		b.rows.of[to] = s
		for range 110 { // 6.6 MB: one piece is sent, and another one held
			_, _ = noise.Read(data)
			l.mustWrite(to, rowtest.Encode(s.Fields, []row.Value{{Int: 1}, {Bytes: data}}))
		}
	}
	if got := held() - before; got > 100 {
		t.Errorf("16 open files hold %.1f MiB, want at most 100", got)
	} else {
		t.Logf("16 open files hold %.1f MiB", got)
	}
	runtime.KeepAlive(l)
}

// TestMemoryOfChurn: tables that come and go leave nothing, however often.
func TestMemoryOfChurn(t *testing.T) {
	b := newBench(t, localbq.Config{Dir: t.TempDir()})
	l := b.newLane()
	round := func() {
		for i := range 1000 {
			l.mustWrite(dst(fmt.Sprintf("t%d", i)), id(int64(i)))
		}
		if _, files := l.prepare(); len(files) != 1000 {
			t.Fatalf("%d files", len(files))
		}
	}
	round()
	first := held()
	for range 2 {
		round()
	}
	// What grows is the service's own index of objects and its log: 2,000 of each.
	if got := held() - first; got > 8 {
		t.Errorf("two more rounds of 1,000 tables hold %.1f MiB more, want at most 8", got)
	} else {
		t.Logf("two more rounds of 1,000 tables hold %.1f MiB more", got)
	}
	runtime.KeepAlive(l)
}
