package localbq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
)

// writer is a table d.t of a column id, and a client that makes streams of it.
type writer struct {
	t      *testing.T
	bq     *localbq.Instance
	client *storage.BigQueryWriteClient
	ids    *rowType
}

func newWriter(t *testing.T, c localbq.Config) *writer {
	bq, ids, _ := oneTable(t, c)
	return &writer{t, bq, writeClient(t, bq), ids}
}

func (w *writer) create(kind storagepb.WriteStream_Type) *storagepb.WriteStream {
	w.t.Helper()
	s, err := w.client.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
		Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: kind},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *writer) committed() string { return w.create(storagepb.WriteStream_COMMITTED).GetName() }
func (w *writer) pending() string   { return w.create(storagepb.WriteStream_PENDING).GetName() }
func (w *writer) buffered() string  { return w.create(storagepb.WriteStream_BUFFERED).GetName() }

// rows are texts of rows with ids from from on.
func rows(from, count int) (out []string) {
	for i := range count {
		out = append(out, fmt.Sprint("id: ", from+i))
	}
	return out
}

// write opens a call on a stream and appends rows from offset on, which must be where they go.
func (w *writer) write(stream string, offset, count int) *call {
	w.t.Helper()
	c := connect(w.t, w.client)
	wantOffset(w.t, c.append(at(w.ids.first(w.t, stream, rows(offset, count)...), int64(offset))), int64(offset))
	return c
}

func wantOffset(t *testing.T, r *storagepb.AppendRowsResponse, offset int64) {
	t.Helper()
	if got := r.GetAppendResult().GetOffset(); got == nil || got.GetValue() != offset {
		t.Errorf("offset %v, want %d", got, offset)
	}
}

func (w *writer) flush(stream string, offset int64) (int64, error) {
	r, err := w.client.FlushRows(context.Background(), &storagepb.FlushRowsRequest{WriteStream: stream, Offset: wrapperspb.Int64(offset)})
	return r.GetOffset(), err
}

func (w *writer) mustFlush(stream string, offset int64) {
	w.t.Helper()
	if got, err := w.flush(stream, offset); err != nil || got != offset {
		w.t.Errorf("flush of %d: %d, %v", offset, got, err)
	}
}

func (w *writer) flushRefused(stream string, offset int64, code codes.Code, message string) storagepb.StorageError_StorageErrorCode {
	w.t.Helper()
	_, err := w.flush(stream, offset)
	s := status.Convert(err)
	wantStatus(w.t, s, code, message)
	return storageCode(w.t, s)
}

func (w *writer) finalize(stream string) (int64, error) {
	r, err := w.client.FinalizeWriteStream(context.Background(), &storagepb.FinalizeWriteStreamRequest{Name: stream})
	return r.GetRowCount(), err
}

func (w *writer) mustFinalize(stream string, rows int64) {
	w.t.Helper()
	if got, err := w.finalize(stream); err != nil || got != rows {
		w.t.Errorf("finalize: %d rows, %v, want %d", got, err, rows)
	}
}

func (w *writer) commit(streams ...string) *storagepb.BatchCommitWriteStreamsResponse {
	w.t.Helper()
	r, err := w.client.BatchCommitWriteStreams(context.Background(), &storagepb.BatchCommitWriteStreamsRequest{Parent: path("d.t"), WriteStreams: streams})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *writer) mustCommit(streams ...string) {
	w.t.Helper()
	if r := w.commit(streams...); r.GetCommitTime() == nil || len(r.GetStreamErrors()) > 0 {
		w.t.Errorf("commit answers %v", r)
	}
}

func (w *writer) commitRefused(code storagepb.StorageError_StorageErrorCode, streams ...string) {
	w.t.Helper()
	r := w.commit(streams...)
	if r.GetCommitTime() != nil || len(r.GetStreamErrors()) != 1 || r.GetStreamErrors()[0].GetCode() != code {
		w.t.Errorf("commit answers %v, want one error %s", r, code)
	}
}

// holds compares the visible rows with ids from from on, in order.
func (w *writer) holds(ids ...int) {
	w.t.Helper()
	var want []string
	for _, id := range ids {
		want = append(want, fmt.Sprintf(`{"id":%d}`, id))
	}
	wantContents(w.t, w.bq, "d.t", want...)
}

// accounted checks that the audit log agrees with the table.
func (w *writer) accounted() {
	w.t.Helper()
	visible, err := w.bq.Audit().Visible("d.t")
	if n, _ := w.bq.NumRows("d.t"); err != nil || int64(len(visible)) != n {
		w.t.Errorf("the audit log knows %d of %d rows, %v", len(visible), n, err)
	}
	for _, row := range visible {
		if row.Digest == 0 {
			w.t.Errorf("row %+v has no provenance", row)
		}
	}
	if left, err := w.bq.Audit().Unaccounted("d.t"); err != nil || len(left) != 0 {
		w.t.Errorf("unaccounted: %v, %v", left, err)
	}
	if lost, err := w.bq.Audit().AckedNotVisible("d.t"); err != nil || len(lost) != 0 {
		w.t.Errorf("acknowledged and not visible: %v, %v", lost, err)
	}
}

var createdTypes = []storagepb.WriteStream_Type{storagepb.WriteStream_COMMITTED, storagepb.WriteStream_PENDING, storagepb.WriteStream_BUFFERED}

func TestCreateWriteStream(t *testing.T) {
	w := newWriter(t, localbq.Config{})
	for _, kind := range createdTypes {
		made := w.create(kind)
		t.Run("LBQ-2_commit_time_of_"+kind.String(), func(t *testing.T) {
			if (made.GetCommitTime() != nil) != (kind == storagepb.WriteStream_COMMITTED) {
				t.Errorf("commit time %v", made.GetCommitTime())
			}
			if made.GetCreateTime() == nil || made.GetType() != kind || len(made.GetTableSchema().GetFields()) != 1 ||
				!strings.HasPrefix(made.GetName(), path("d.t")+"/streams/") || made.GetWriteMode() != 0 {
				t.Errorf("made %v", made)
			}
		})
		t.Run("LBQ-3_location_of_"+kind.String(), func(t *testing.T) {
			got, err := w.client.GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: made.GetName()})
			if err != nil || made.GetLocation() != "" || got.GetLocation() != "us" {
				t.Errorf("created in %q, is in %q, %v", made.GetLocation(), got.GetLocation(), err)
			}
			if got.GetType() != kind || !got.GetCreateTime().AsTime().Equal(made.GetCreateTime().AsTime()) || got.GetTableSchema() != nil {
				t.Errorf("got %v, made %v", got, made)
			}
		})
	}
}

func TestCreatedConnection(t *testing.T) {
	w := newWriter(t, localbq.Config{})
	t.Run("LBQ-10_later_requests_carry_rows_only", func(t *testing.T) {
		c := w.write(w.committed(), 0, 1)
		wantOffset(t, c.append(w.ids.next(t, "id: 1")), 1)
	})
	t.Run("LBQ-11_another_stream_ends_the_call", func(t *testing.T) {
		c := w.write(w.committed(), 0, 1)
		c.ends(w.ids.first(t, w.committed(), "id: 1"), codes.InvalidArgument, "must not name another")
	})
	t.Run("a default stream ends the call", func(t *testing.T) {
		c := w.write(w.committed(), 0, 1)
		c.ends(w.ids.first(t, stream("d.t"), "id: 1"), codes.InvalidArgument, "must not mix")
	})
	t.Run("LBQ-15_a_new_writer_schema_takes_a_new_connection", func(t *testing.T) {
		makeTable(t, w.bq, "d.two", column("a", "INTEGER"), column("b", "STRING"))
		made, err := w.client.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path("d.two"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_COMMITTED},
		})
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, w.client)
		c.append(describe(t, "a int64").first(t, made.GetName(), "a: 1"))
		wide := describe(t, "a int64", "b string")
		c.append(wide.first(t, "", `a: 2 b: "unknown to the schema in force"`))
		wantOffset(t, connect(t, w.client).append(at(wide.first(t, made.GetName(), `a: 3 b: "x"`), 2)), 2)
		wantContents(t, w.bq, "d.two", `{"a":1,"b":null}`, `{"a":2,"b":null}`, `{"a":3,"b":"x"}`)
	})
}

func TestOffsets(t *testing.T) {
	for _, offsets := range []bool{true, false} {
		name := map[bool]string{true: "LBQ-21_with_offsets", false: "LBQ-22_without_offsets"}[offsets]
		t.Run(name+"_appends_of_1_2_and_1_answer_0_1_and_3", func(t *testing.T) {
			w := newWriter(t, localbq.Config{})
			c, s, from := connect(t, w.client), w.committed(), 0
			for _, n := range []int{1, 2, 1} {
				q := w.ids.first(t, s, rows(from, n)...)
				if offsets {
					q = at(q, int64(from))
				}
				wantOffset(t, c.append(q), int64(from))
				from += n
			}
			w.holds(0, 1, 2, 3)
			w.accounted()
		})
	}
	t.Run("LBQ-16_a_hundred_at_once_answer_in_order", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		c, s := connect(t, w.client), w.committed()
		for i := range 100 {
			if err := c.Send(at(w.ids.first(t, s, fmt.Sprint("id: ", i)), int64(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var want []int
		for i := range 100 {
			r, err := c.Recv()
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			wantOffset(t, r, int64(i))
			want = append(want, i)
		}
		if r, err := c.Recv(); err == nil {
			t.Errorf("behind the last answer: %v", r)
		}
		w.holds(want...)
	})
	t.Run("LBQ-52_LBQ-54_a_bad_row_leaves_the_offset_where_it_was", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		makeTable(t, w.bq, "d.bad", &bqapi.TableFieldSchema{Name: "s", Type: "STRING", MaxLength: 3})
		made, err := w.client.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path("d.bad"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_COMMITTED},
		})
		if err != nil {
			t.Fatal(err)
		}
		r, c := describe(t, "s string"), connect(t, w.client)
		wantOffset(t, c.append(at(r.first(t, made.GetName(), `s: "a"`), 0)), 0)
		answer := c.ask(at(r.next(t, `s: "b"`, `s: "long"`, `s: "c"`), 1))
		if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 1 || codes.Code(answer.GetError().GetCode()) != codes.InvalidArgument {
			t.Errorf("got %v", answer)
		}
		wantContents(t, w.bq, "d.bad", `{"s":"a"}`)
		wantOffset(t, c.append(at(r.next(t, `s: "b"`, `s: "c"`), 1)), 1)
		wantContents(t, w.bq, "d.bad", `{"s":"a"}`, `{"s":"b"}`, `{"s":"c"}`)
	})
	t.Run("LBQ-23_beyond_the_end", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := connect(t, w.client).refused(at(w.ids.first(t, w.committed(), "id: 1"), 99), codes.OutOfRange, "expected offset 0, received 99")
		if code := storageCode(t, s); code != storagepb.StorageError_OFFSET_OUT_OF_RANGE {
			t.Errorf("StorageError %v", code)
		}
		w.holds()
	})
	t.Run("LBQ-24_LBQ-25_LBQ-17_a_taken_offset", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		c := w.write(w.committed(), 0, 1)
		s := c.refused(at(w.ids.next(t, "id: 100"), 0), codes.AlreadyExists, "expected offset 1, received 0")
		if code := storageCode(t, s); code != storagepb.StorageError_OFFSET_ALREADY_EXISTS {
			t.Errorf("StorageError %v", code)
		}
		wantOffset(t, c.append(at(w.ids.next(t, "id: 1"), 1)), 1)
		w.holds(0, 1)
	})
	t.Run("LBQ-26_an_overlap_writes_nothing", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		c := w.write(w.committed(), 0, 5)
		c.refused(at(w.ids.next(t, rows(3, 4)...), 3), codes.AlreadyExists, "expected offset 5, received 3")
		w.holds(0, 1, 2, 3, 4)
	})
	t.Run("a negative offset", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		c := connect(t, w.client)
		c.refused(at(w.ids.first(t, w.committed(), "id: 1"), -1), codes.InvalidArgument, "negative")
		wantOffset(t, c.append(w.ids.next(t, "id: 0")), 0)
	})
	t.Run("LBQ-27_a_lost_acknowledgement_and_its_resend", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.committed()
		w.write(s, 0, 2)
		arm(t, w.bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows", StreamKind: "committed"}, Action: localbq.FaultAction{LoseAck: true}})
		lost := connect(t, w.client)
		if err := lost.Send(at(w.ids.first(t, s, "id: 2"), 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := lost.Recv(); err == nil {
			t.Fatal("the acknowledgement came")
		}
		connect(t, w.client).refused(at(w.ids.first(t, s, "id: 2"), 2), codes.AlreadyExists, "expected offset 3, received 2")
		w.holds(0, 1, 2)
		w.bq.Faults().MustAllFire(t)
		if unheard, err := w.bq.Audit().VisibleNeverAcked("d.t"); err != nil || len(unheard) != 1 {
			t.Errorf("visible and never acknowledged: %v, %v", unheard, err)
		}
	})
	t.Run("LBQ-29_two_connections_race", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.committed()
		answers := make(chan codes.Code, 8)
		for i := range cap(answers) {
			c := connect(t, w.client)
			go func() {
				if err := c.Send(at(w.ids.first(t, s, fmt.Sprint("id: ", i)), 0)); err != nil {
					t.Error(err)
				}
				r, err := c.Recv()
				if err != nil {
					t.Error(err)
				}
				answers <- codes.Code(r.GetError().GetCode())
			}()
		}
		count := map[codes.Code]int{}
		for range cap(answers) {
			count[<-answers]++
		}
		if count[codes.OK] != 1 || count[codes.AlreadyExists] != cap(answers)-1 {
			t.Errorf("answers %v", count)
		}
		if n, _ := w.bq.NumRows("d.t"); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
	t.Run("LBQ-30_a_new_connection_at_the_known_end", func(t *testing.T) {
		w := newWriter(t, localbq.Config{})
		s := w.committed()
		w.write(s, 0, 3)
		w.write(s, 3, 2)
		w.holds(0, 1, 2, 3, 4)
	})
	t.Run("behind ReconnectOffset the count is stale", func(t *testing.T) {
		p := localbq.FriendlyProfile()
		p.Windows.ReconnectOffset.Min, p.Windows.ReconnectOffset.Max = 5*time.Second, 5*time.Second
		clock := localbq.NewManualClock()
		w := newWriter(t, localbq.Config{Profile: p, Clock: clock})
		s := w.committed()
		w.write(s, 0, 3)
		c := connect(t, w.client)
		c.refused(at(w.ids.first(t, s, "id: 3"), 3), codes.OutOfRange, "expected offset 0, received 3")
		clock.Advance(5 * time.Second)
		wantOffset(t, c.append(at(w.ids.next(t, "id: 3"), 3)), 3)
		w.holds(0, 1, 2, 3)
	})
}
