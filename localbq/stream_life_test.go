package localbq_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

// gone checks that every call names a stream NOT_FOUND and that no row appears.
func (w *writer) gone(s string, visible ...int) {
	w.t.Helper()
	if code := w.flushRefused(s, 0, codes.NotFound, "Requested entity was not found. Entity: "+s); code != storagepb.StorageError_STREAM_NOT_FOUND {
		w.t.Errorf("flush: StorageError %v", code)
	}
	st := connect(w.t, w.client).ends(at(w.ids.first(w.t, s, "id: 9"), 1), codes.NotFound, "Requested entity was not found.")
	if code := storageCode(w.t, st); code != storagepb.StorageError_STREAM_NOT_FOUND {
		w.t.Errorf("append: StorageError %v", code)
	}
	_, err := w.finalize(s)
	wantStatus(w.t, status.Convert(err), codes.NotFound, "Requested entity was not found.")
	_, err = w.client.GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: s})
	wantStatus(w.t, status.Convert(err), codes.NotFound, "Requested entity was not found.")
	w.commitRefused(storagepb.StorageError_STREAM_NOT_FOUND, s)
	w.holds(visible...)
}

func TestStreamLife(t *testing.T) {
	t.Run("LBQ-103_idle_for_seven_days", func(t *testing.T) {
		clock := localbq.NewManualClock()
		w := newWriter(t, localbq.Config{Clock: clock})
		idle, appended, flushed := w.buffered(), w.buffered(), w.buffered()
		for _, s := range []string{idle, appended, flushed} {
			w.write(s, 0, 2)
		}
		clock.Advance(4 * 24 * time.Hour)
		w.write(appended, 2, 1)
		w.mustFlush(flushed, 0)
		clock.Advance(3*24*time.Hour - time.Second)
		w.write(idle, 2, 1) // one second before its time
		clock.Advance(4*24*time.Hour + 2*time.Second)
		w.gone(appended, 0)
		w.gone(flushed, 0)
		w.mustFlush(idle, 2)
		clock.Advance(7*24*time.Hour + time.Second)
		w.gone(idle, 0, 0, 1, 2)
	})
	t.Run("LBQ-103_by_a_fault_rule_under_a_connection", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		c := w.write(s, 0, 2)
		arm(t, w.bq, localbq.Fault{
			Match: localbq.FaultMatch{Method: "AppendRows", StreamKind: "buffered"}, Action: localbq.FaultAction{State: []localbq.FaultState{{Do: localbq.FaultExpireStream}}},
		})
		c.ends(at(w.ids.next(t, "id: 2"), 2), codes.NotFound, "Requested entity was not found.")
		w.gone(s)
		w.bq.Faults().MustAllFire(t)
	})
	t.Run("a stream belongs to one instance of its table", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		c := w.write(s, 0, 2)
		if err := w.bq.DeleteTable("d.t"); err != nil {
			t.Fatal(err)
		}
		w.flushRefused(s, 0, codes.PermissionDenied, "Permission 'TABLES_UPDATE_DATA' denied on resource '"+path("d.t")+"' (or it may not exist).")
		makeTable(t, w.bq, "d.t", column("id", "INTEGER"))
		c.ends(at(w.ids.next(t, "id: 2"), 2), codes.NotFound, "Requested entity was not found.")
		w.gone(s)
	})
}

func TestFreshTable(t *testing.T) {
	denied := "Permission 'TABLES_UPDATE_DATA' denied on resource '" + path("d.t") + "' (or it may not exist)."
	profile := localbq.ServiceProfile()
	profile.Windows.CreateOpenStream.Chance, profile.Windows.CreateFlush.Chance = 1, 1
	create := func(w *writer) error {
		_, err := w.client.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_BUFFERED},
		})
		return err
	}
	t.Run("LBQ-99_at_most_two_denials_of_CreateWriteStream", func(t *testing.T) {
		denials := map[int]int{}
		for seed := range uint64(20) {
			w := newWriter(t, localbq.Config{Profile: profile, Seed: seed + 1, Clock: localbq.NewManualClock()})
			n := 0
			for err := create(w); err != nil; err = create(w) {
				wantStatus(t, status.Convert(err), codes.PermissionDenied, denied)
				if n++; n > 2 {
					t.Fatal("denied a third time")
				}
			}
			denials[n]++
		}
		if denials[0] != 0 || denials[1] == 0 || denials[2] == 0 {
			t.Errorf("denials %v", denials)
		}
	})
	t.Run("LBQ-100_LBQ-101_the_first_flush_may_be_denied_and_no_append", func(t *testing.T) {
		w := newWriter(t, localbq.Config{Profile: profile, Seed: 1, Clock: localbq.NewManualClock()})
		for create(w) != nil {
		}
		s := w.buffered()
		c := w.write(s, 0, 2)
		c.append(at(w.ids.next(t, "id: 2"), 2))
		_, err := w.flush(s, 1)
		wantStatus(t, status.Convert(err), codes.PermissionDenied, denied)
		w.holds()
		w.mustFlush(s, 1)
		w.holds(0, 1)
	})
	t.Run("a table that is ten seconds old denies nothing", func(t *testing.T) {
		clock := localbq.NewManualClock()
		w := newWriter(t, localbq.Config{Profile: profile, Clock: clock})
		clock.Advance(11 * time.Second)
		s := w.buffered()
		w.write(s, 0, 1)
		w.mustFlush(s, 0)
	})
	t.Run("the friendly profile denies nothing", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.write(s, 0, 1)
		w.mustFlush(s, 0)
	})
}
