package localbq_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/localbq"
)

func TestBuffered(t *testing.T) {
	t.Run("LBQ-31_LBQ-32_LBQ-33_LBQ-34_what_is_flushed_is_visible", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.write(s, 0, 5)
		w.holds()
		if n, _ := w.bq.NumRows("d.t"); n != 0 {
			t.Errorf("%d rows before the flush", n)
		}
		if got := listed(t, w.bq, "d.t"); got != "[]" {
			t.Errorf("tabledata.list has %s before the flush", got)
		}
		w.mustFlush(s, 2)
		w.holds(0, 1, 2)
		if got := listed(t, w.bq, "d.t"); got != `["0"] ["1"] ["2"]` {
			t.Errorf("tabledata.list has %s", got)
		}
		for _, offset := range []int64{2, 1} {
			if code := w.flushRefused(s, offset, codes.AlreadyExists, "already been flushed"); code != storagepb.StorageError_OFFSET_ALREADY_EXISTS {
				t.Errorf("StorageError %v", code)
			}
		}
		w.holds(0, 1, 2)
		w.write(s, 5, 1)
		w.mustFlush(s, 5)
		w.holds(0, 1, 2, 3, 4, 5)
		w.accounted()
		visible, err := w.bq.Audit().Visible("d.t")
		if err != nil || visible[4].Index != 4 || visible[4].Seq >= visible[4].Shown || visible[5].Index != 0 {
			t.Errorf("provenance %+v, %v", visible, err)
		}
		commits, err := w.bq.Audit().Commits(s)
		if err != nil || len(commits) != 2 || commits[0].Offset != 0 || commits[0].Count != 3 || commits[1].Offset != 3 ||
			commits[1].Count != 3 || commits[1].First != 3 || !commits[1].Acked || commits[1].RPC != "FlushRows" {
			t.Errorf("commits %+v, %v", commits, err)
		}
		if gaps, err := w.bq.Audit().Gaps(s); err != nil || len(gaps) != 0 {
			t.Errorf("gaps %v, %v", gaps, err)
		}
	})
	t.Run("LBQ-35_an_empty_stream", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.flushRefused(s, 0, codes.OutOfRange, "Offset 0 is beyond the end of the stream Entity: "+s)
		w.write(s, 0, 2)
		w.flushRefused(s, 2, codes.OutOfRange, "Offset 2 is beyond the end of the stream Entity: "+s)
		w.holds()
	})
	t.Run("LBQ-36_without_an_offset", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.write(s, 0, 1)
		_, err := w.client.FlushRows(context.Background(), &storagepb.FlushRowsRequest{WriteStream: s})
		wantStatus(t, status.Convert(err), codes.InvalidArgument, "must be set")
		w.flushRefused(s, -1, codes.InvalidArgument, "negative")
		w.holds()
	})
	t.Run("LBQ-37_LBQ-38_finalized_before_it_was_flushed", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.write(s, 0, 3)
		w.mustFlush(s, 0)
		w.mustFinalize(s, 3)
		w.mustFinalize(s, 3)
		w.holds(0)
		if code := w.flushRefused(s, 2, codes.InvalidArgument, "Stream has been finalized"); code != storagepb.StorageError_STREAM_FINALIZED {
			t.Errorf("StorageError %v", code)
		}
		w.holds(0)
	})
	t.Run("LBQ-39_streams_of_other_types", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		for _, s := range []string{w.committed(), w.pending()} {
			w.write(s, 0, 1)
			if code := w.flushRefused(s, 0, codes.InvalidArgument, "type"); code != storagepb.StorageError_INVALID_STREAM_TYPE {
				t.Errorf("StorageError %v", code)
			}
		}
		if code := w.flushRefused(stream("d.t"), 0, codes.InvalidArgument, "type"); code != storagepb.StorageError_INVALID_STREAM_TYPE {
			t.Errorf("StorageError %v", code)
		}
	})
	t.Run("LBQ-40_LBQ-41_a_client_goes_on_where_its_checkpoint_says", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		mine, other := w.buffered(), w.buffered()
		w.write(mine, 0, 3)
		w.write(other, 0, 2)
		w.mustFlush(mine, 1)
		w.write(mine, 3, 2) // by a client that is killed behind its checkpoint at 3: a new stream is made
		w.mustFlush(mine, 2)
		next := w.buffered()
		w.write(next, 0, 1)
		w.mustFlush(next, 0)
		w.holds(0, 1, 2, 0)
		w.write(other, 2, 1)
		w.mustFlush(other, 2)
		w.holds(0, 1, 2, 0, 0, 1, 2)
		w.accounted()
	})
	t.Run("LBQ-31_LBQ-42_sessions_before_and_behind_a_flush", func(t *testing.T) {
		clock := localbq.NewManualClock()
		w := newWriter(t, localbq.Config{Clock: clock})
		s := w.buffered()
		w.write(s, 0, 5)
		before := session(t, w.bq)
		clock.Advance(time.Second)
		instant := clock.Now()
		clock.Advance(time.Second)
		w.mustFlush(s, 2)
		behind := session(t, w.bq)
		if n := session(t, w.bq, instant)(); n != 0 {
			t.Errorf("as of an instant between the append and the flush there are %d rows", n)
		}
		if n := before(); n != 0 {
			t.Errorf("the session from before the flush has %d rows", n)
		}
		if n := behind(); n != 3 {
			t.Errorf("the session from behind the flush has %d rows", n)
		}
		if n := before(); n != 0 {
			t.Errorf("the session from before the flush has got %d rows", n)
		}
	})
	t.Run("LBQ-95_a_widened_reconnect_keeps_the_offset", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		w.write(s, 0, 2)
		w.mustFlush(s, 0)
		addColumn(t, w.bq, "d.t", &bigquery.FieldSchema{Name: "late", Type: bigquery.IntegerFieldType})
		wide := describe(t, "id int64", "late int64")
		connect(t, w.client).append(at(wide.first(t, s, "id: 2 late: 7"), 2))
		w.mustFlush(s, 2)
		wantContents(t, w.bq, "d.t", `{"id":0,"late":null}`, `{"id":1,"late":null}`, `{"id":2,"late":7}`)
		w.accounted()
	})
	t.Run("rows of many appends, flushed in the middle of one", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.buffered()
		c := w.write(s, 0, 1)
		var want []int
		for i := 1; i < 300; i += 3 {
			c.append(at(w.ids.next(t, rows(i, 3)...), int64(i)))
			if i%7 == 0 {
				w.mustFlush(s, int64(i+1))
			}
		}
		w.mustFlush(s, 300)
		for i := range 301 {
			want = append(want, i)
		}
		w.holds(want...)
		w.accounted()
	})
}

func TestPending(t *testing.T) {
	t.Run("LBQ-43_LBQ-44_LBQ-48_visible_at_the_commit", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		one, two := w.pending(), w.pending()
		w.write(one, 0, 3)
		w.write(two, 0, 2)
		w.mustFinalize(one, 3)
		w.mustFinalize(two, 2)
		w.holds()
		if n, got := session(t, w.bq)(), listed(t, w.bq, "d.t"); n != 0 || got != "[]" {
			t.Errorf("before the commit a session has %d rows, tabledata.list %s", n, got)
		}
		w.mustCommit(one, two)
		if n, got := session(t, w.bq)(), listed(t, w.bq, "d.t"); n != 5 || got != `["0"] ["1"] ["2"] ["0"] ["1"]` {
			t.Errorf("behind the commit a session has %d rows, tabledata.list %s", n, got)
		}
		w.holds(0, 1, 2, 0, 1)
		w.commitRefused(storagepb.StorageError_STREAM_ALREADY_COMMITTED, one)
		w.holds(0, 1, 2, 0, 1)
		w.accounted()
		commits, err := w.bq.Audit().Commits(two)
		if err != nil || len(commits) != 1 || commits[0].First != 3 || commits[0].Count != 2 {
			t.Errorf("commits %+v, %v", commits, err)
		}
		got, err := w.client.GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: one})
		if err != nil || got.GetCommitTime() == nil {
			t.Errorf("committed stream %v, %v", got, err)
		}
	})
	t.Run("LBQ-45_append_behind_finalize", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		for _, kind := range createdTypes {
			s := w.create(kind).GetName()
			c := w.write(s, 0, 1)
			w.mustFinalize(s, 1)
			st := c.refused(at(w.ids.next(t, "id: 1"), 1), codes.InvalidArgument, "Stream has been finalized")
			if code := storageCode(t, st); code != storagepb.StorageError_STREAM_FINALIZED {
				t.Errorf("StorageError %v", code)
			}
			connect(t, w.client).refused(at(w.ids.first(t, s, "id: 1"), 1), codes.InvalidArgument, "Stream has been finalized")
		}
	})
	t.Run("LBQ-46_before_finalize", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.pending()
		w.write(s, 0, 1)
		w.commitRefused(storagepb.StorageError_INVALID_STREAM_STATE, s)
		w.holds()
	})
	t.Run("LBQ-47_one_of_two_is_unknown", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.pending()
		w.write(s, 0, 1)
		w.mustFinalize(s, 1)
		w.commitRefused(storagepb.StorageError_STREAM_NOT_FOUND, s, s[:len(s)-4]+"aaaa")
		w.holds()
		w.mustCommit(s)
		w.holds(0)
	})
	t.Run("LBQ-49_streams_of_other_types", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		for _, s := range []string{w.buffered(), w.committed()} {
			w.mustFinalize(s, 0)
			w.commitRefused(storagepb.StorageError_INVALID_STREAM_TYPE, s)
		}
		w.commitRefused(storagepb.StorageError_INVALID_STREAM_TYPE, stream("d.t"))
	})
	t.Run("LBQ-44_LBQ-50_an_empty_stream", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.pending()
		w.mustFinalize(s, 0)
		w.mustCommit(s)
		w.holds()
		if commits, err := w.bq.Audit().Commits(s); err != nil || len(commits) != 1 {
			t.Errorf("commits %+v, %v", commits, err)
		}
	})
	t.Run("streams of another table, twice, and none", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		makeTable(t, w.bq, "d.other", column("id", "INTEGER"))
		s := w.pending()
		for message, q := range map[string]*storagepb.BatchCommitWriteStreamsRequest{
			"does not belong":     {Parent: path("d.other"), WriteStreams: []string{s}},
			"more than once":      {Parent: path("d.t"), WriteStreams: []string{s, s}},
			"No write streams":    {Parent: path("d.t")},
			"Invalid stream name": {Parent: path("d.t"), WriteStreams: []string{"x\x00'`\n../"}},
			"Invalid table name":  {Parent: "../'`", WriteStreams: []string{s}},
		} {
			_, err := w.client.BatchCommitWriteStreams(context.Background(), q)
			wantStatus(t, status.Convert(err), codes.InvalidArgument, message)
		}
	})
}

// session opens a read session of d.t, as of an instant if one is given, and returns what counts its rows.
func session(t *testing.T, bq *localbq.Instance, asOf ...time.Time) func() int64 {
	t.Helper()
	client, err := storage.NewBigQueryReadClient(context.Background(), bq.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	asked := &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO}
	for _, at := range asOf {
		asked.TableModifiers = &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(at)}
	}
	session, err := client.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{
		Parent: "projects/" + localbq.DefaultProject, ReadSession: asked,
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() (rows int64) {
		for _, s := range session.GetStreams() {
			read, err := client.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: s.GetName()})
			for err == nil {
				var r *storagepb.ReadRowsResponse
				if r, err = read.Recv(); err == nil {
					rows += r.GetRowCount()
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}
		return rows
	}
}
