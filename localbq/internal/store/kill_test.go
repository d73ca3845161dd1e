package store

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

const childFolder = "MILLRACE_STORE_CHILD"

// batchOf has as many rows as its tag says, all of them with the tag.
func batchOf(tag int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, numberedSchema.Arrow())
	for range rowsOf(tag) {
		b.Field(0).(*array.Int64Builder).Append(tag)
		b.Field(1).(*array.StringBuilder).Append("the rows of one batch are there together or not at all")
	}
	return b.NewRecordBatch()
}

func rowsOf(tag int64) int64 { return 1 + tag%7 }

// workAsChild writes for ever, in the process that TestKill starts, and says what has been acknowledged.
func workAsChild() bool {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return false
	}
	var start int64
	fmt.Sscan(os.Getenv(childFolder+"_TAG"), &start)
	s, err := Open(Options{Dir: dir, CheckpointBytes: 32 << 10})
	if err != nil {
		fmt.Println("failed", err)
		return true
	}
	if _, err := s.Dataset(dataset); err != nil {
		if _, err := s.CreateDataset(dataset, DatasetOptions{}); err != nil {
			fmt.Println("failed", err)
			return true
		}
	}
	var printing sync.Mutex
	var writers sync.WaitGroup
	for g := range int64(4) {
		writers.Go(func() {
			t, err := s.Table(dataset.Table(fmt.Sprint("t", g%2)))
			if err != nil {
				if t, err = s.CreateTable(dataset.Table(fmt.Sprint("t", g%2)), &schema.Definition{Schema: numberedSchema}); err != nil {
					t, err = s.Table(dataset.Table(fmt.Sprint("t", g%2))) // the other writer made it
				}
			}
			for tag := start + g; err == nil; tag += 4 {
				var w Written
				if w, err = t.Write(Rows{Info: t.Info(), Batches: list(batchOf(tag))}); err == nil {
					printing.Lock()
					fmt.Println("acked", g%2, tag, w.First)
					printing.Unlock()
				}
			}
			fmt.Println("failed", err)
		})
	}
	writers.Wait()
	return true
}

// TestKill kills a writing process at random points: what it acknowledged is there, and of every batch all rows or none.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	type ack struct{ table, tag, first int64 }
	var acks []ack
	tag := int64(0)
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childFolder+"="+dir, fmt.Sprintf("%s_TAG=%d", childFolder, tag))
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		for range 1 + rand.IntN(400) {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("round %d: the child ended: %q %v", round, line, err)
			}
			acks = append(acks, parseAck(t, line))
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(in) // acknowledged before the end, too
		_ = child.Wait()
		for line := range lines(rest) {
			acks = append(acks, parseAck(t, line))
		}
		tag += 1_000_000

		s := open(t, Options{Dir: dir})
		rows := [2][]int64{}
		for i := range rows {
			if tab, err := s.Table(dataset.Table(fmt.Sprint("t", i))); err == nil {
				rows[i] = numbers(t, tab, 0)
			}
		}
		closeStore(t, s)
		for _, a := range acks {
			for i := range rowsOf(a.tag) {
				if at := a.first + i; at >= int64(len(rows[a.table])) || rows[a.table][at] != a.tag {
					t.Fatalf("round %d: acknowledged row %d of batch %d is not in table t%d of %d rows", round, at, a.tag, a.table, len(rows[a.table]))
				}
			}
		}
		for i := range rows {
			for at := int64(0); at < int64(len(rows[i])); {
				tag := rows[i][at]
				for range rowsOf(tag) {
					if at >= int64(len(rows[i])) || rows[i][at] != tag {
						t.Fatalf("round %d: table t%d has a part of batch %d", round, i, tag)
					}
					at++
				}
			}
		}
	}
	t.Logf("%d acknowledged batches survived", len(acks))
}

func parseAck(t *testing.T, line string) (a struct{ table, tag, first int64 }) {
	t.Helper()
	if _, err := fmt.Sscanf(line, "acked %d %d %d", &a.table, &a.tag, &a.first); err != nil {
		t.Fatalf("the child says %q", line)
	}
	return a
}

// lines are the whole lines of what a killed process had written.
func lines(b []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for {
			i := bytes.IndexByte(b, '\n')
			if i < 0 || !yield(string(b[:i+1])) {
				return
			}
			b = b[i+1:]
		}
	}
}
