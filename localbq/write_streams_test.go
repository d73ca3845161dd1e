package localbq_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/localbq"
)

func TestGetWriteStream(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER", "REQUIRED"), column("tags", "STRING", "REPEATED"))
	c := writeClient(t, bq)
	get := func(name string, view storagepb.WriteStreamView) (*storagepb.WriteStream, error) {
		return c.GetWriteStream(context.Background(), &storagepb.GetWriteStreamRequest{Name: name, View: view})
	}
	for _, name := range []string{stream("d.t"), path("d.t") + "/_default"} {
		t.Run("LBQ-4_LBQ-5_"+name[len(path("d.t")):], func(t *testing.T) {
			w, err := get(name, storagepb.WriteStreamView_BASIC)
			if err != nil {
				t.Fatal(err)
			}
			want := &storagepb.WriteStream{Name: name, Type: storagepb.WriteStream_COMMITTED, Location: "us"}
			if !proto.Equal(w, want) {
				t.Errorf("basic: got %v, want %v", w, want)
			}
			want.TableSchema = &storagepb.TableSchema{Fields: []*storagepb.TableFieldSchema{
				{Name: "id", Type: storagepb.TableFieldSchema_INT64, Mode: storagepb.TableFieldSchema_REQUIRED},
				{Name: "tags", Type: storagepb.TableFieldSchema_STRING, Mode: storagepb.TableFieldSchema_REPEATED},
			}}
			if w, err = get(name, storagepb.WriteStreamView_FULL); err != nil || !proto.Equal(w, want) {
				t.Errorf("full: got %v, %v, want %v", w, err, want)
			}
		})
	}
	for name, c := range map[string]struct {
		stream  string
		code    codes.Code
		message string
	}{
		"LBQ-6_an_id_that_none_can_have": {path("d.t") + "/streams/does-not-exist-12345", codes.InvalidArgument, "Invalid stream name. Entity: " + path("d.t") + "/streams/does-not-exist-12345"},
		"no stream name at all":          {path("d.t"), codes.InvalidArgument, "Invalid stream name."},
		"an id that none has":            {path("d.t") + "/streams/" + strings.Repeat("Ci", 25), codes.NotFound, "Requested entity was not found."},
		"an absent table":                {stream("d.none"), codes.PermissionDenied, "Permission 'TABLES_GET' denied on resource '" + path("d.none") + "' (or it may not exist)."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(c.stream, 0)
			wantStatus(t, status.Convert(err), c.code, c.message)
		})
	}
}

func TestCreateRefused(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	c := writeClient(t, bq)
	ctx := context.Background()
	create := func(table string, kind storagepb.WriteStream_Type) error {
		_, err := c.CreateWriteStream(ctx, &storagepb.CreateWriteStreamRequest{Parent: path(table), WriteStream: &storagepb.WriteStream{Type: kind}})
		return err
	}
	t.Run("LBQ-7_without_a_type", func(t *testing.T) {
		wantStatus(t, status.Convert(create("d.t", 0)), codes.InvalidArgument, "type")
	})
	t.Run("LBQ-97_absent_table", func(t *testing.T) {
		wantStatus(t, status.Convert(create("d.none", storagepb.WriteStream_PENDING)), codes.PermissionDenied,
			"Permission 'TABLES_UPDATE_DATA' denied on resource '"+path("d.none")+"' (or it may not exist).")
	})
	t.Run("LBQ-51_finalize_default", func(t *testing.T) {
		_, err := c.FinalizeWriteStream(ctx, &storagepb.FinalizeWriteStreamRequest{Name: stream("d.t")})
		wantStatus(t, status.Convert(err), codes.NotFound, "Requested entity was not found.")
	})
}

func TestConnection(t *testing.T) {
	bq := start(t, localbq.Config{})
	for _, table := range []string{"d.t", "d.t2", "d.t3"} {
		makeTable(t, bq, table, column("id", "INTEGER"))
	}
	c := writeClient(t, bq)
	ids := describe(t, "id int64")

	t.Run("LBQ-1_both_names_reach_the_table", func(t *testing.T) {
		for _, name := range []string{stream("d.t"), path("d.t") + "/_default"} {
			if r := connect(t, c).append(ids.first(t, name, "id: 1")); r.GetWriteStream() != name {
				t.Errorf("answered for stream %q, want %q", r.GetWriteStream(), name)
			}
		}
		wantContents(t, bq, "d.t", `{"id":1}`, `{"id":1}`)
	})
	t.Run("LBQ-8_first_request_without_a_schema", func(t *testing.T) {
		q := ids.next(t, "id: 1")
		q.WriteStream = stream("d.t")
		connect(t, c).ends(q, codes.InvalidArgument, "writer schema")
	})
	t.Run("LBQ-9_first_request_without_a_stream", func(t *testing.T) {
		q := ids.first(t, "", "id: 1")
		connect(t, c).ends(q, codes.InvalidArgument, "write_stream")
	})
	t.Run("LBQ-12_three_tables_in_turn", func(t *testing.T) {
		call := connect(t, c)
		// Each table has a column of its own type, and each request its schema, or the one its destination had before.
		kinds := []struct{ table, kind, column, row, holds string }{
			{"d.ints", "v int64", "INTEGER", "v: %d", `{"v":%d}`},
			{"d.texts", "v string", "STRING", `v: "%d"`, `{"v":"%d"}`},
			{"d.lists", "w repeated int64", "INTEGER", "w: %d", `{"w":[%d]}`},
		}
		want := make([][]string, len(kinds))
		for _, k := range kinds {
			mode := ""
			if strings.Contains(k.kind, "repeated") {
				mode = "REPEATED"
			}
			makeTable(t, bq, k.table, column(k.kind[:1], k.column, mode))
		}
		for i := range 30 {
			k := kinds[i%3]
			r := describe(t, k.kind)
			q := r.next(t, fmt.Sprintf(k.row, i))
			q.WriteStream = stream(k.table)
			if i < 3 || i >= 15 {
				q = r.first(t, stream(k.table), fmt.Sprintf(k.row, i))
			}
			if r := call.append(q); r.GetWriteStream() != stream(k.table) {
				t.Errorf("request %d answered for %q", i, r.GetWriteStream())
			}
			want[i%3] = append(want[i%3], fmt.Sprintf(k.holds, i))
		}
		for i, k := range kinds {
			wantContents(t, bq, k.table, want[i]...)
		}
		t.Run("LBQ-13_then_the_stream_must_be_named", func(t *testing.T) {
			call.ends(ids.next(t, "id: 1"), codes.InvalidArgument, "must name its write_stream")
		})
	})
	t.Run("a table that is new to the connection needs a schema", func(t *testing.T) {
		call := connect(t, c)
		call.append(ids.first(t, stream("d.t"), "id: 1"))
		q := ids.next(t, "id: 1")
		q.WriteStream = stream("d.t2")
		call.ends(q, codes.InvalidArgument, "writer schema")
	})
	t.Run("LBQ-14_a_new_schema_takes_effect_at_once", func(t *testing.T) {
		makeTable(t, bq, "d.two", column("a", "INTEGER"), column("b", "STRING"))
		call := connect(t, c)
		call.append(describe(t, "a int64").first(t, stream("d.two"), "a: 1"))
		q := describe(t, "b string", "a int64").first(t, "", `b: "x" a: 2`)
		call.append(q)
		call.append(describe(t, "b string", "a int64").next(t, `b: "y"`))
		wantContents(t, bq, "d.two", `{"a":1,"b":null}`, `{"a":2,"b":"x"}`, `{"a":null,"b":"y"}`)
	})
	t.Run("LBQ-16_a_hundred_at_once_answer_in_order", func(t *testing.T) {
		call := connect(t, c)
		for i := range 100 {
			q := ids.first(t, stream("d.t"), fmt.Sprint("id: ", i))
			if i%2 == 1 { // refused, so that answers can be told apart
				q = at(ids.next(t, "id: 1"), int64(i))
			}
			if err := call.Send(q); err != nil {
				t.Fatal(err)
			}
		}
		if err := call.CloseSend(); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			r, err := call.Recv()
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			if refused := r.GetError() != nil; refused != (i%2 == 1) {
				t.Errorf("answer %d refused: %v", i, refused)
			}
		}
		if _, err := call.Recv(); err == nil || err.Error() != "EOF" {
			t.Errorf("behind the last answer: %v, want EOF", err)
		}
	})
	t.Run("LBQ-19_the_result_has_no_offset", func(t *testing.T) {
		r := connect(t, c).append(ids.first(t, stream("d.t"), "id: 1"))
		if r.GetAppendResult().Offset != nil || r.GetAppendResult().GetOffset().GetValue() != 0 {
			t.Errorf("got %v", r.GetAppendResult())
		}
	})
	t.Run("LBQ-17_LBQ-20_an_offset_is_refused_and_the_connection_goes_on", func(t *testing.T) {
		call := connect(t, c)
		call.refused(at(ids.first(t, stream("d.t"), "id: 1"), 0), codes.InvalidArgument, "offset")
		call.append(ids.next(t, "id: 1"))
	})
	t.Run("LBQ-66_no_rows", func(t *testing.T) {
		call := connect(t, c)
		call.refused(ids.first(t, stream("d.t")), codes.InvalidArgument, "no rows")
		call.append(ids.next(t, "id: 1"))
	})
	t.Run("a created stream that is not there", func(t *testing.T) {
		connect(t, c).ends(ids.first(t, path("d.t")+"/streams/s", "id: 1"), codes.InvalidArgument, "Invalid stream name.")
		s := connect(t, c).ends(ids.first(t, path("d.t")+"/streams/"+strings.Repeat("Ci", 25), "id: 1"), codes.NotFound, "Requested entity was not found.")
		if code := storageCode(t, s); code != storagepb.StorageError_STREAM_NOT_FOUND {
			t.Errorf("StorageError %v", code)
		}
	})
	t.Run("mixing default and created streams", func(t *testing.T) {
		call := connect(t, c)
		call.append(ids.first(t, stream("d.t"), "id: 1"))
		call.ends(ids.first(t, path("d.t")+"/streams/"+strings.Repeat("Ci", 25), "id: 1"), codes.InvalidArgument, "must not mix")
	})
	t.Run("a trace id of 257 bytes", func(t *testing.T) {
		q := ids.first(t, stream("d.t"), "id: 1")
		q.TraceId = strings.Repeat("x", 257)
		connect(t, c).ends(q, codes.InvalidArgument, "trace_id")
	})
	t.Run("a descriptor that is none", func(t *testing.T) {
		call := connect(t, c)
		bad := describe(t, "id int64")
		bad.proto = proto.CloneOf(bad.proto)
		bad.proto.Field[0].Number = new(int32(0))
		call.refused(bad.first(t, stream("d.t"), "id: 1"), codes.InvalidArgument, "Invalid proto schema: BqMessage.proto: Row.id")
		call.refused(ids.next(t, "id: 1"), codes.InvalidArgument, "Invalid proto schema")
		call.append(ids.first(t, "", "id: 1"))
	})
}

func TestIdle(t *testing.T) {
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Clock: clock})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	ids := describe(t, "id int64")
	t.Run("LBQ-18_600_seconds", func(t *testing.T) {
		call := connect(t, writeClient(t, bq))
		call.append(ids.first(t, stream("d.t"), "id: 1"))
		clock.Advance(599 * time.Second)
		call.append(ids.next(t, "id: 2"))
		ended := make(chan error, 1)
		go func() {
			_, err := call.Recv()
			ended <- err
		}()
		// The connection starts its count anew once it has answered, which the client cannot see: so it is moved until it ends.
		for err := error(nil); err == nil; {
			clock.Advance(600 * time.Second)
			select {
			case err = <-ended:
				wantStatus(t, status.Convert(err), codes.Aborted, "Closing the stream because it has been inactive for 600 seconds. Entity: "+stream("d.t"))
			default:
				runtime.Gosched()
			}
		}
	})
}

func TestSize(t *testing.T) {
	big := func(t *testing.T, r *rowType, bytes int) *storagepb.AppendRowsRequest {
		return r.first(t, stream("d.t"), `s: "`+strings.Repeat("x", bytes)+`"`)
	}
	text := describe(t, "s string")
	t.Run("10 MiB by default", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		makeTable(t, bq, "d.t", column("s", "STRING"))
		c := writeClient(t, bq)
		connect(t, c).append(big(t, text, 10<<20-1000))
		connect(t, c).ends(big(t, text, 10<<20), codes.InvalidArgument, "AppendRows request too large: ")
	})
	wide := localbq.FriendlyProfile()
	wide.Limits.AppendBytes = 20 << 20
	t.Run("20 MiB where asked for", func(t *testing.T) {
		bq := start(t, localbq.Config{Profile: wide})
		makeTable(t, bq, "d.t", column("s", "STRING"))
		c := writeClient(t, bq)
		t.Run("LBQ-67_a_row_of_15_MiB", func(t *testing.T) { connect(t, c).append(big(t, text, 15<<20)) })
		t.Run("LBQ-68_a_request_of_21_MiB", func(t *testing.T) {
			connect(t, c).ends(big(t, text, 21<<20), codes.InvalidArgument, "too large")
			connect(t, c).append(big(t, text, 1))
		})
		if rows, _ := bq.NumRows("d.t"); rows != 2 {
			t.Errorf("%d rows, want 2", rows)
		}
	})
	t.Run("refused within the call where asked for", func(t *testing.T) {
		wide := wide
		wide.Limits.AppendTooLargeInBand = true
		wide.Limits.AppendBytes = 1000
		bq := start(t, localbq.Config{Profile: wide})
		makeTable(t, bq, "d.t", column("s", "STRING"))
		call := connect(t, writeClient(t, bq))
		call.refused(big(t, text, 1000), codes.InvalidArgument, "limit 1000")
		call.append(text.next(t, `s: "x"`)) // what the refused request said of the call holds
	})
}
