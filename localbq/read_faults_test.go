package localbq_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/localbq"
)

// TestReadFaults cuts a read off between two of its answers: the rules and the log see each of them.
func TestReadFaults(t *testing.T) {
	p := localbq.FriendlyProfile()
	p.Limits.ReadBlockRows = 2
	bq, ids, open := oneTable(t, localbq.Config{Profile: p})
	var texts []string
	for i := range 10 {
		texts = append(texts, fmt.Sprint("id: ", i))
	}
	open().append(ids.first(t, stream("d.t"), texts...))
	client, err := storage.NewBigQueryReadClient(context.Background(), bq.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{
		Parent: "projects/" + localbq.DefaultProject, ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO},
	})
	if err != nil {
		t.Fatal(err)
	}
	var whole []byte // the rows that came, one read behind the other
	// read returns how many rows came from offset on, and how it ended.
	read := func(offset int64) (rows int64, err error) {
		s, err := client.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: session.GetStreams()[0].GetName(), Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		for {
			r, err := s.Recv()
			if err != nil {
				return rows, err
			}
			rows += r.GetRowCount()
			whole = append(whole, r.GetAvroRows().GetSerializedBinaryRows()...)
		}
	}
	match := localbq.FaultMatch{Service: "read", Method: "ReadRows", Nth: 2}
	t.Run("LBQ-145_a_reset_behind_the_second_block", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Match: match, Phase: localbq.PhaseAnswered, Action: localbq.FaultAction{Reset: true}})
		first, err := read(0)
		if status.Code(err) != codes.Unavailable || first > 4 {
			t.Fatalf("%d rows, then %v", first, err)
		}
		rest, err := read(first)
		if err == nil || err.Error() != "EOF" || first+rest != 10 {
			t.Errorf("%d rows and then %d more, %v, want 10", first, rest, err)
		}
		pieces := whole
		whole = nil
		if _, err := read(0); err == nil || err.Error() != "EOF" || !bytes.Equal(pieces, whole) || len(whole) == 0 {
			t.Errorf("in two reads came % x, in one % x, %v", pieces, whole, err)
		}
	})
	t.Run("a status in place of the second block", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Match: match, Phase: localbq.PhaseApplied, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "ABORTED", Message: "enough"}}})
		rows, err := read(0)
		if rows != 2 {
			t.Errorf("%d rows before it, want 2", rows)
		}
		wantStatus(t, status.Convert(err), codes.Aborted, "enough")
	})
	bq.Faults().MustAllFire(t)
	t.Run("the log knows the calls", func(t *testing.T) {
		closeNow(t, bq)
		var ends []string
		for r, err := range bq.Audit().Records() {
			if err != nil {
				t.Fatal(err)
			}
			if r.RPC == "ReadRows" {
				ends = append(ends, fmt.Sprint(r.Code, " ", r.Fate, " ", len(r.Rules)))
			}
		}
		if got, want := fmt.Sprint(ends), "[UNAVAILABLE cut 1 OK sent 0 OK sent 0 ABORTED sent 1]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestTimeTravelWindow asks for sessions as of instants on both sides of what a dataset keeps.
func TestTimeTravelWindow(t *testing.T) {
	clock := localbq.NewManualClock()
	bq, ids, open := oneTable(t, localbq.Config{Clock: clock})
	open().append(ids.first(t, stream("d.t"), "id: 1"))
	clock.Advance(time.Minute)
	written := clock.Now()
	rest, err := bqapi.NewService(t.Context(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := storage.NewBigQueryReadClient(t.Context(), bq.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(at time.Time) error {
		_, err := client.CreateReadSession(t.Context(), &storagepb.CreateReadSessionRequest{
			Parent: "projects/" + localbq.DefaultProject, ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO,
				TableModifiers: &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(at)}},
		})
		return err
	}
	for _, hours := range []int64{168, 48} {
		t.Run(fmt.Sprintf("LBQ-134 a window of %d hours", hours), func(t *testing.T) {
			if _, err := rest.Datasets.Patch(localbq.DefaultProject, "d", &bqapi.Dataset{MaxTimeTravelHours: hours}).Do(); err != nil {
				t.Fatal(err)
			}
			clock.Advance(time.Duration(hours)*time.Hour - clock.Now().Sub(written))
			if n := session(t, bq, written)(); n != 1 {
				t.Errorf("%d rows at the edge of the window", n)
			}
			clock.Advance(time.Second)
			wantStatus(t, status.Convert(ask(written)), codes.InvalidArgument, fmt.Sprintf("time travel timestamp exceeds the maximum time travel duration of %dh", hours))
			clock.Advance(24*time.Hour - time.Second)
			wantStatus(t, status.Convert(ask(written)), codes.InvalidArgument, fmt.Sprintf("%dh", hours))
			written = clock.Now()
		})
	}
}
