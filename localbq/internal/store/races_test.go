package store

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestWritesToAnEmptyTableAtOnce(t *testing.T) {
	s := inMemory(t)
	made, err := s.CreateTable(table, &schema.Definition{Schema: columns("a", schema.Int64)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetMode(table, ModeNull); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	var writers sync.WaitGroup
	s.committing.Lock() // so that all of them are in the queue together
	for range 16 {
		writers.Go(func() {
			if _, err := made.Write(Rows{Info: made.Info(), Count: 1, Empty: true}); err == nil {
				done.Add(1)
			} else if !refusal.Is(err, refusal.Duplicate) {
				t.Error(err)
			}
		})
	}
	for queued := 0; queued < 16; {
		s.queueing.Lock()
		queued = len(s.queue)
		s.queueing.Unlock()
	}
	s.committing.Unlock()
	writers.Wait()
	if done.Load() != 1 || made.Stats().Rows != 1 {
		t.Errorf("%d writes and %d rows, want one", done.Load(), made.Stats().Rows)
	}
}

func TestExpireStreamOfADroppedTable(t *testing.T) {
	s := inMemory(t)
	made, err := s.CreateTable(table, &schema.Definition{Schema: columns("a", schema.Int64)})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := made.CreateStream(Buffered, [27]byte{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteTable(table); err != nil {
		t.Fatal(err)
	}
	if _, err := made.ExpireStream(stream.ID()); !refusal.Is(err, refusal.NotFound) {
		t.Errorf("%v, want not found: a log that begins behind the drop could not be read", err)
	}
}
