package localbq_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"

	"github.com/millrace-dev/millrace/localbq"
)

// The high-level Go client, unmodified, on created streams of every type.

// put appends rows at an offset and waits for the answer, which must give that offset.
func putManaged(t *testing.T, s *managedwriter.ManagedStream, ids *rowType, offset, count int) {
	t.Helper()
	r, err := s.AppendRows(context.Background(), ids.rows(t, rows(offset, count)...), managedwriter.WithOffset(int64(offset)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.GetResult(context.Background()); err != nil || got != int64(offset) {
		t.Errorf("append at %d: offset %d, %v", offset, got, err)
	}
}

func TestManagedStreams(t *testing.T) {
	ctx := context.Background()
	t.Run("LBQ-21_committed", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := managedStream(t, managed(t, w.bq), "d.t", w.ids, managedwriter.WithType(managedwriter.CommittedStream))
		putManaged(t, s, w.ids, 0, 1)
		putManaged(t, s, w.ids, 1, 2)
		putManaged(t, s, w.ids, 3, 1)
		w.holds(0, 1, 2, 3)
		if n, err := s.Finalize(ctx); err != nil || n != 4 {
			t.Errorf("finalize: %d, %v", n, err)
		}
	})
	t.Run("LBQ-32_buffered", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := managedStream(t, managed(t, w.bq), "d.t", w.ids, managedwriter.WithType(managedwriter.BufferedStream))
		putManaged(t, s, w.ids, 0, 5)
		w.holds()
		if n, err := s.FlushRows(ctx, 2); err != nil || n != 2 {
			t.Errorf("flush: %d, %v", n, err)
		}
		w.holds(0, 1, 2)
	})
	t.Run("LBQ-43_pending", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		client := managed(t, w.bq)
		q := &storagepb.BatchCommitWriteStreamsRequest{Parent: path("d.t")}
		for range 2 {
			s := managedStream(t, client, "d.t", w.ids, managedwriter.WithType(managedwriter.PendingStream))
			putManaged(t, s, w.ids, 0, 2)
			if n, err := s.Finalize(ctx); err != nil || n != 2 {
				t.Errorf("finalize: %d, %v", n, err)
			}
			q.WriteStreams = append(q.WriteStreams, s.StreamName())
		}
		w.holds()
		if r, err := client.BatchCommitWriteStreams(ctx, q); err != nil || r.GetCommitTime() == nil {
			t.Errorf("commit: %v, %v", r, err)
		}
		w.holds(0, 1, 0, 1)
	})
	t.Run("LBQ-40_a_second_client_goes_on_with_a_stream_by_name", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		first := managedStream(t, managed(t, w.bq), "d.t", w.ids, managedwriter.WithType(managedwriter.BufferedStream))
		putManaged(t, first, w.ids, 0, 2)
		second, err := managed(t, w.bq).NewManagedStream(ctx, managedwriter.WithStreamName(first.StreamName()), managedwriter.WithSchemaDescriptor(w.ids.proto))
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		putManaged(t, second, w.ids, 2, 2)
		if _, err := second.FlushRows(ctx, 3); err != nil {
			t.Error(err)
		}
		w.holds(0, 1, 2, 3)
	})
	t.Run("LBQ-27_the_client_repeats_a_lost_append_and_is_told_that_it_is_there", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := managedStream(t, managed(t, w.bq), "d.t", w.ids, managedwriter.WithType(managedwriter.CommittedStream), managedwriter.EnableWriteRetries(true))
		putManaged(t, s, w.ids, 0, 1)
		arm(t, w.bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows", StreamKind: "committed"}, Action: localbq.FaultAction{LoseAck: true}})
		r, err := s.AppendRows(ctx, w.ids.rows(t, "id: 1"), managedwriter.WithOffset(1))
		if err != nil {
			t.Fatal(err)
		}
		full, err := r.FullResponse(ctx)
		if err == nil || fmt.Sprint(full.GetError().GetCode()) != "6" {
			t.Errorf("answered %v, %v, want ALREADY_EXISTS", full, err)
		}
		w.bq.Faults().MustAllFire(t)
		w.holds(0, 1)
	})
}
