package readapi

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/pierrec/lz4/v4"
	peer "github.com/twmb/avro"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// avroRows decodes the rows of responses with another implementation.
func avroRows(t *testing.T, text string, responses []*storagepb.ReadRowsResponse) []map[string]any {
	t.Helper()
	p, err := peer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, r := range responses {
		block := r.GetAvroRows().GetSerializedBinaryRows()
		for range r.RowCount {
			row := map[string]any{}
			if block, err = p.Decode(block, &row); err != nil {
				t.Fatal(err)
			}
			out = append(out, row)
		}
		if len(block) > 0 {
			t.Fatalf("%d bytes behind the rows of a block", len(block))
		}
	}
	return out
}

// ns are the values of column n.
func ns(rows []map[string]any) []int64 {
	var out []int64
	for _, r := range rows {
		out = append(out, r["n"].(int64))
	}
	return out
}

func upTo(from, to int64) (out []int64) {
	for n := from; n < to; n++ {
		out = append(out, n)
	}
	return out
}

func TestReadRows(t *testing.T) {
	f := setup(t, func(d *Deps) { d.Limits.BlockRows = 6 })
	f.numbers(20)
	s := f.session(avroSession())
	text := s.GetAvroSchema().GetSchema()
	name := s.Streams[0].Name
	read := func(offset int64) []*storagepb.ReadRowsResponse {
		t.Helper()
		out, err := f.read(name, offset)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Run("blocks, progress and schema", func(t *testing.T) {
		responses := read(0)
		if diff := cmp.Diff(upTo(0, 20), ns(avroRows(t, text, responses))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for i, r := range responses {
			if got := r.GetAvroSchema().GetSchema() == text; got != (i == 0) {
				t.Errorf("response %d carries the schema: %v", i, got)
			}
			want := []float64{float64(i*6) / 20, min(1, float64(i*6+6)/20)}
			got := []float64{r.GetStats().GetProgress().GetAtResponseStart(), r.GetStats().GetProgress().GetAtResponseEnd()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("progress of response %d (-want +got):\n%s", i, diff)
			}
		}
	})
	t.Run("LBQ-123 offset 7 of 20", func(t *testing.T) {
		if diff := cmp.Diff(upTo(7, 20), ns(avroRows(t, text, read(7)))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("LBQ-124 offset 20 of 20", func(t *testing.T) {
		if out := read(20); len(out) != 0 {
			t.Errorf("got %d responses", len(out))
		}
	})
	t.Run("LBQ-125 offset 21 of 20", func(t *testing.T) {
		_, err := f.read(name, 21)
		refused(t, err, codes.FailedPrecondition, "offset 21 has not been allocated yet")
	})
	t.Run("offset below zero and unknown stream", func(t *testing.T) {
		_, err := f.read(name, -1)
		refused(t, err, codes.InvalidArgument, "offset must not be negative, got -1")
		_, err = f.read(name+"x", 0)
		refused(t, err, codes.NotFound, "Not found: read stream "+name+"x")
	})
	t.Run("LBQ-145 reading goes on by offset after a cut", func(t *testing.T) {
		call, err := f.client.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: name})
		if err != nil {
			t.Fatal(err)
		}
		var got []*storagepb.ReadRowsResponse
		for range 2 {
			r, err := call.Recv()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		got = append(got, read(12)...)
		if diff := cmp.Diff(upTo(0, 20), ns(avroRows(t, text, got))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for { // the first call to its end, so that nothing is left behind
			if _, err := call.Recv(); err != nil {
				break
			}
		}
	})
	t.Run("LBQ-122 six hours", func(t *testing.T) {
		if got, want := s.ExpireTime.AsTime(), f.clock.Now().Add(6*time.Hour); !got.Equal(want) {
			t.Errorf("expires at %v, want %v", got, want)
		}
		f.clock.Advance(6*time.Hour - time.Second)
		read(0)
		f.clock.Advance(time.Second)
		_, err := f.read(name, 0)
		refused(t, err, codes.FailedPrecondition, "session expired: "+s.Name+": a read session lives six hours")
	})
}

func TestArrow(t *testing.T) {
	f := setup(t, func(d *Deps) { d.Limits.BlockRows = 2 })
	f.table(
		&schema.Field{Name: "n", Type: schema.Int64}, &schema.Field{Name: "iv", Type: schema.Interval, Mode: schema.Repeated},
		&schema.Field{Name: "st", Type: schema.Struct, Fields: []*schema.Field{{Name: "p", Type: schema.Timestamp, TimestampPrecision: 12}, {Name: "d", Type: schema.DateTime}}},
	)
	f.write(`[{"n": 1, "iv": [{"months": 14, "days": -3, "micros": 5}], "st": {"p": "2014-08-19T12:41:35.220000000001Z", "d": "2020-10-01T12:00:00"}},
		{"n": null, "iv": [], "st": null}, {"n": 3, "iv": [{"months": 0, "days": 0, "micros": 1}, {"months": 1, "days": 0, "micros": 0}], "st": {"p": null, "d": null}}]`)
	for _, c := range []struct {
		name   string
		change func(*storagepb.CreateReadSessionRequest)
	}{
		{"plain", func(*storagepb.CreateReadSessionRequest) {}},
		{"LZ4 buffers", buffers(storagepb.ArrowSerializationOptions_LZ4_FRAME)},
		{"ZSTD buffers", buffers(storagepb.ArrowSerializationOptions_ZSTD)},
	} {
		t.Run("LBQ-143 "+c.name, func(t *testing.T) {
			s := f.session(avroSession(inArrow, c.change))
			responses, err := f.read(s.Streams[0].Name, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(responses) != 2 || responses[0].GetArrowSchema() == nil || responses[1].GetArrowSchema() != nil {
				t.Errorf("%d responses", len(responses))
			}
			var rows []string
			for _, r := range responses {
				b := arrowBatch(t, s.GetArrowSchema().GetSerializedSchema(), r.GetArrowRecordBatch().GetSerializedRecordBatch())
				text, err := b.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, strings.ReplaceAll(string(text), "\n", ""))
			}
			want := []string{
				`[{"iv":[{"months":14,"days":-3,"nanoseconds":5000}],"n":1,"st":{"d":"2020-10-01T12:00:00","p":"2014-08-19T12:41:35.22Z"}},{"iv":[],"n":null,"st":null}]`,
				`[{"iv":[{"months":0,"days":0,"nanoseconds":1000},{"months":1,"days":0,"nanoseconds":0}],"n":3,"st":{"d":null,"p":null}}]`,
			}
			if diff := cmp.Diff(want, rows); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an INTERVAL beyond month_day_nano", func(t *testing.T) {
		f.write(`[{"n": 4, "iv": [{"months": 0, "days": 0, "micros": 9300000000000000}]}]`)
		s := f.session(avroSession(inArrow))
		_, err := f.read(s.Streams[0].Name, 3)
		refused(t, err, codes.InvalidArgument, "column iv: an INTERVAL of 9300000000000000 microseconds does not fit the nanoseconds of Arrow's month_day_nano")
	})
}

func buffers(c storagepb.ArrowSerializationOptions_CompressionCodec) func(*storagepb.CreateReadSessionRequest) {
	return func(r *storagepb.CreateReadSessionRequest) {
		r.ReadSession.ReadOptions.OutputFormatSerializationOptions = &storagepb.ReadSession_TableReadOptions_ArrowSerializationOptions{
			ArrowSerializationOptions: &storagepb.ArrowSerializationOptions{BufferCompression: c},
		}
	}
}

// arrowBatch decodes one bare message, which a reader of streams takes behind the bare schema.
func arrowBatch(t *testing.T, schema, batch []byte) arrow.RecordBatch {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(append(bytes.Clone(schema), batch...)))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Next() {
		t.Fatalf("no batch: %v", r.Err())
	}
	return r.RecordBatch()
}

func TestResponseCompression(t *testing.T) {
	f := setup(t)
	f.numbers(5000)
	lz4Codec := func(r *storagepb.CreateReadSessionRequest) {
		r.ReadSession.ReadOptions.ResponseCompressionCodec = storagepb.ReadSession_TableReadOptions_RESPONSE_COMPRESSION_CODEC_LZ4.Enum()
	}
	for name, format := range map[string]func(*storagepb.CreateReadSessionRequest){"Avro": func(*storagepb.CreateReadSessionRequest) {}, "Arrow": inArrow} {
		s := f.session(avroSession(lz4Codec, format))
		plain := f.session(avroSession(format))
		got, err := f.read(s.Streams[0].Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.read(plain.Streams[0].Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows := func(r *storagepb.ReadRowsResponse) []byte {
			if b := r.GetArrowRecordBatch(); b != nil {
				return b.SerializedRecordBatch
			}
			return r.GetAvroRows().SerializedBinaryRows
		}
		out := make([]byte, got[0].GetUncompressedByteSize())
		n, err := lz4.UncompressBlock(rows(got[0]), out)
		if err != nil || !bytes.Equal(out[:n], rows(want[0])) {
			t.Errorf("%s: %d bytes back of %d, %v", name, n, len(rows(want[0])), err)
		}
	}
	_, err := f.client.CreateReadSession(t.Context(), avroSession(inArrow, lz4Codec, buffers(storagepb.ArrowSerializationOptions_ZSTD)))
	refused(t, err, codes.InvalidArgument, "request failed: arrow_serialization_options.buffer_compression and response_compression_codec exclude each other")
}

func TestSessionsOutliveTables(t *testing.T) {
	t.Run("LBQ-135 rows of a table dropped and made again", func(t *testing.T) {
		f := setup(t)
		f.numbers(3)
		s := f.session(avroSession())
		if err := f.store.DeleteTable(store.TableRef{Project: "p", Dataset: "d", Table: "t"}); err != nil {
			t.Fatal(err)
		}
		f.numbers(50)
		out, err := f.read(s.Streams[0].Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(upTo(0, 3), ns(avroRows(t, s.GetAvroSchema().GetSchema(), out))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestSplitReadStream(t *testing.T) {
	t.Run("LBQ-144 primary and remainder are the original", func(t *testing.T) {
		f := setup(t)
		f.numbers(8)
		f.write(`[{"n": 8}, {"n": 9}]`)
		s := f.session(avroSession())
		for _, fraction := range []float64{0.1, 0.5, 0.85} {
			parts, err := f.client.SplitReadStream(t.Context(), &storagepb.SplitReadStreamRequest{Name: s.Streams[0].Name, Fraction: fraction})
			if err != nil {
				t.Fatal(err)
			}
			var all []*storagepb.ReadRowsResponse
			for _, name := range []string{parts.PrimaryStream.GetName(), parts.RemainderStream.GetName()} {
				out, err := f.read(name, 0)
				if err != nil || len(out) == 0 {
					t.Fatalf("%q: %d responses, %v", name, len(out), err)
				}
				all = append(all, out...)
			}
			if diff := cmp.Diff(upTo(0, 10), ns(avroRows(t, s.GetAvroSchema().GetSchema(), all))); diff != "" {
				t.Errorf("at %v (-want +got):\n%s", fraction, diff)
			}
		}
		if parts, err := f.client.SplitReadStream(t.Context(), &storagepb.SplitReadStreamRequest{Name: s.Streams[0].Name, Fraction: 0.001}); err != nil || parts.PrimaryStream != nil || parts.RemainderStream != nil {
			t.Errorf("a cut before the first row: %v, %v", parts, err)
		}
		_, err := f.client.SplitReadStream(t.Context(), &storagepb.SplitReadStreamRequest{Name: s.Streams[0].Name, Fraction: 1})
		refused(t, err, codes.InvalidArgument, "fraction must be above 0 and below 1, got 1")
	})
}
