package storagewrite

import (
	"bytes"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// TestFramesAreRequests compares frames with what the official message of the same contents encodes to.
func TestFramesAreRequests(t *testing.T) {
	t.Parallel()
	descriptor := &descriptorpb.DescriptorProto{Name: proto.String("Row")}
	encoded, err := proto.Marshal(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(16_000, 17_000)), 1, rapid.SampledFrom([]int{1, 20}).Draw(t, "most")).Draw(t, "lengths")
		h := header{stream: "projects/p/datasets/d/tables/t/streams/_default", offset: noOffset}
		want := &storagepb.AppendRowsRequest{WriteStream: h.stream}
		data := &storagepb.AppendRowsRequest_ProtoData{Rows: &storagepb.ProtoRows{}}
		want.Rows = &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: data}
		if rapid.Bool().Draw(t, "schema") {
			h.schema = &schema{encoded: encodeSchema(encoded)}
			data.WriterSchema = &storagepb.ProtoSchema{ProtoDescriptor: descriptor}
		}
		if rapid.Bool().Draw(t, "offset") {
			h.offset = rapid.Int64Range(0, 1<<50).Draw(t, "at")
			want.Offset = wrapperspb.Int64(h.offset)
		}
		if rapid.Bool().Draw(t, "trace") {
			h.traceID = "millrace:bigquery/x"
			want.TraceId = h.traceID
		}

		var buf []byte
		guess := rapid.IntRange(1, 3).Draw(t, "guess")
		for i, n := range lengths {
			row := bytes.Repeat([]byte{byte(i + 1)}, n)
			start := len(buf)
			buf, guess = endRow(append(beginRow(buf, guess), row...), start, guess)
			data.Rows.SerializedRows = append(data.Rows.SerializedRows, row)
		}
		if len(lengths) == 1 && lengths[0] > 0 && rapid.Bool().Draw(t, "arrow") {
			h.arrow = true
			batch := &storagepb.AppendRowsRequest_ArrowData{Rows: &storagepb.ArrowRecordBatch{SerializedRecordBatch: data.Rows.SerializedRows[0]}}
			if h.schema != nil {
				batch.WriterSchema = &storagepb.ArrowSchema{SerializedSchema: encoded}
			}
			want.Rows = &storagepb.AppendRowsRequest_ArrowRows{ArrowRows: batch}
		}
		head := h.append(nil, len(buf))
		if len(head) > h.maxBytes() {
			t.Fatalf("header of %d bytes, at most %d expected", len(head), h.maxBytes())
		}
		rows := &rowBuffer{data: buf, home: &bufferCache{bytes: 1 << 20}}
		rows.refs.Store(1)
		out, err := codec{}.Marshal(&frame{head, rows})
		if err != nil {
			t.Fatal(err)
		}
		got := new(storagepb.AppendRowsRequest)
		if err := proto.Unmarshal(out.Materialize(), got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(want, got) {
			t.Fatalf("sent %v, got %v", want, got)
		}
		// Protobuf need not write an offset of 0 down, and a frame does.
		if h.offset != 0 && out.Len() != proto.Size(want) {
			t.Fatalf("frame has %d bytes, the message %d", out.Len(), proto.Size(want))
		}
		out.Free()
		if refs := rows.refs.Load(); refs != 1 {
			t.Fatalf("%d references are left", refs)
		}
	})
}

func TestRowsAreCutAsTheyWereFramed(t *testing.T) {
	t.Parallel()
	b := &batch{rows: (&bufferCache{bytes: 1 << 10}).get(16)}
	want := [][]byte{[]byte("aa"), {}, bytes.Repeat([]byte("x"), 128), bytes.Repeat([]byte("y"), 20_000)}
	for _, row := range want {
		b.push(row)
	}
	var got [][]byte
	if err := b.each(func(i int, row []byte) error {
		if i != len(got) {
			t.Errorf("row %d is called %d", len(got), i)
		}
		got = append(got, row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(want, got) {
		t.Error("rows differ")
	}
	if b.bytes != 20_130 || b.size() != 20_130+1+1+1+1+1+2+1+3 {
		t.Errorf("%d bytes of rows, %d framed", b.bytes, b.size())
	}
}

func FuzzNextRow(f *testing.F) {
	f.Add([]byte{0x0a, 2, 'a', 'a'})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) > 0; {
			row, after, err := nextRow(rest)
			if err != nil {
				return
			}
			if len(after) >= len(rest) || len(row) > len(rest) {
				t.Fatal("no progress")
			}
			rest = after
		}
		// What was cut to the end is ProtoRows of the same rows.
		var p storagepb.ProtoRows
		if err := proto.Unmarshal(data, &p); err != nil {
			t.Fatalf("cut, but not protobuf: %v", err)
		}
	})
}

func TestBuffersAreUsedAgainOnceNobodyReadsThem(t *testing.T) {
	t.Parallel()
	c := &bufferCache{bytes: 8 << 10}
	b := c.get(8 << 10)
	b.data = append(b.data, "rows"...)
	sent := b.shared()
	b.free()
	if got := string(sent.ReadOnlyData()); got != "rows" {
		t.Errorf("the transport reads %q", got)
	}
	if len(b.data) != 4 {
		t.Error("the buffer was given back while the transport reads it")
	}
	sent.Free()
	if len(b.data) != 0 {
		t.Error("the buffer was not given back")
	}
	if small := c.get(10); cap(small.data) >= c.bytes {
		t.Errorf("a small batch got a buffer of %d bytes", cap(small.data))
	}
	if _, ok := (&rowBuffer{data: make([]byte, 10)}).shared().(mem.SliceBuffer); !ok {
		t.Error("a tiny buffer is counted")
	}
}

func TestBuffersAreKeptWhileTheyAreNeeded(t *testing.T) {
	t.Parallel()
	c := &bufferCache{bytes: 64 << 10}
	use := func(n int) {
		var all []*rowBuffer
		for range n {
			all = append(all, c.get(50<<10), c.get(5000))
		}
		for _, b := range all {
			if got := cap(b.data); got != 64<<10 && got != 8<<10 {
				t.Errorf("a buffer of %d bytes", got)
			}
			b.free()
		}
	}
	for _, step := range []struct{ uses, kept int }{{10, 20}, {4, 8}, {4, 8}, {0, 0}} {
		use(step.uses)
		c.trim()
		kept := len(c.full.free)
		for _, s := range c.smaller {
			kept += len(s.free)
		}
		if kept != step.kept {
			t.Errorf("%d buffers are kept after a time that needed %d, want %d", kept, 2*step.uses, step.kept)
		}
	}
	c.get(1 << 20).free()
	if len(c.full.free) != 0 {
		t.Error("a buffer for one huge row is kept")
	}
}
