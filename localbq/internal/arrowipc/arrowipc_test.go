package arrowipc_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

func TestDecode(t *testing.T) {
	s, err := arrowipc.ParseSchema(schemaMessage(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]ipc.Option{"plain": nil, "LZ4_FRAME": {ipc.WithLZ4()}, "ZSTD": {ipc.WithZstd()}} {
		t.Run(name, func(t *testing.T) {
			b, err := arrowipc.Decode(batchMessage(t, record(t, sample, sampleRows), options...), s)
			if err != nil {
				t.Fatal(err)
			}
			if b.Rows != 3 || int64(b.Columns[0].Bits(0)) != -5 || !b.Columns[0].Null(1) || b.Columns[0].Bits(2) != 7 {
				t.Errorf("column i of %d rows is wrong", b.Rows)
			}
			if int64(b.Columns[1].Bits(0)) != -1 || b.Columns[3].Bits(0) != 1 || !b.Columns[3].Null(1) || b.Columns[3].Bits(2) != 0 {
				t.Error("column small or b is wrong")
			}
			if got := string(b.Columns[4].Bytes(0)); got != "one" || !b.Columns[4].Null(1) || len(b.Columns[4].Bytes(2)) != 0 {
				t.Errorf("column s: %q", got)
			}
			if got := b.Columns[5].Unscaled(0).Int64(); got != -1_500_000_000 {
				t.Errorf("column dec: %d", got)
			}
			from, to := b.Columns[6].Range(0)
			if got := string(b.Columns[6].Fields[0].Bytes(2)); from != 0 || to != 3 || got != "ccc" {
				t.Errorf("column l: %d to %d, %q", from, to, got)
			}
			if r := b.Columns[7]; r.Fields[0].Bits(0) != 3 || !r.Null(1) || r.Fields[1].Fields[0].Bits(1) != 65535 {
				t.Error("column r is wrong")
			}
			if first := b.AppendRow(nil, 0); slices.Equal(first, b.AppendRow(nil, 2)) || !slices.Equal(first, b.AppendRow(nil, 0)) {
				t.Error("rows are told apart wrongly")
			}
		})
	}
	t.Run("rows are counted without a schema", func(t *testing.T) {
		if n, err := arrowipc.Rows(batchMessage(t, record(t, sample, sampleRows))); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestSchemaRefusals(t *testing.T) {
	dictionary := arrow.NewSchema([]arrow.Field{{Name: "outer", Type: arrow.StructOf(
		arrow.Field{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}})}}, nil)
	whole := schemaMessage(t, sample)
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"dictionary encoding":  {schemaMessage(t, dictionary), "field outer.d is dictionary-encoded"},
		"nothing":              {nil, "cut off"},
		"the end of a stream":  {[]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, "0 bytes by its own account"},
		"a stream":             {append(slices.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), "8 bytes follow"},
		"a record batch":       {batchMessage(t, record(t, sample, sampleRows)), "of kind record batch, expected one bare schema message"},
		"a length of gigabyte": {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}, "by its own account"},
		"metadata of rubbish":  {append([]byte{0xff, 0xff, 0xff, 0xff, 8, 0, 0, 0}, "rubbish!"...), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := arrowipc.ParseSchema(c.message); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	t.Run("cut off anywhere", func(t *testing.T) {
		for n := range whole {
			if _, err := arrowipc.ParseSchema(whole[:n]); err == nil {
				t.Fatalf("%d of %d bytes were taken", n, len(whole))
			}
		}
	})
}

func TestBatchRefusals(t *testing.T) {
	s, err := arrowipc.ParseSchema(schemaMessage(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	whole := batchMessage(t, record(t, sample, sampleRows))
	t.Run("cut off anywhere", func(t *testing.T) {
		for n := range whole {
			if _, err := arrowipc.Decode(whole[:n], s); err == nil {
				t.Fatalf("%d of %d bytes were taken", n, len(whole))
			}
		}
	})
	t.Run("of another schema", func(t *testing.T) {
		other := arrow.NewSchema(sample.Fields()[:3], nil)
		few := batchMessage(t, record(t, other, `[{"i": 1, "small": 1, "f": 1}]`))
		if _, err := arrowipc.Decode(few, s); err == nil || !strings.Contains(err.Error(), "fewer columns") {
			t.Errorf("fewer: %v", err)
		}
		narrow, err := arrowipc.ParseSchema(schemaMessage(t, other))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := arrowipc.Decode(whole, narrow); err == nil || !strings.Contains(err.Error(), "more than the writer schema") {
			t.Errorf("more: %v", err)
		}
	})
	// Every number of the metadata in turn is made hostile; what is taken must be sound all the same.
	for name, hostile := range map[string]uint64{"huge": 1 << 62, "negative": 1<<64 - 2, "large": 1 << 31, "one": 1, "zero": 0} {
		t.Run("numbers "+name, func(t *testing.T) {
			for at := 8; at+8 <= len(whole); at += 4 {
				b := slices.Clone(whole)
				binary.LittleEndian.PutUint64(b[at:], hostile)
				if got, err := arrowipc.Decode(b, s); err == nil {
					for i := range got.Rows {
						got.AppendRow(nil, i)
					}
				}
			}
		})
	}
	t.Run("buffers that overlap", func(t *testing.T) {
		two := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64}}, nil)
		s, err := arrowipc.ParseSchema(schemaMessage(t, two))
		if err != nil {
			t.Fatal(err)
		}
		b := batchMessage(t, record(t, two, `[{"a": 1, "b": 2}]`))
		// The second column's values are the last buffer of the list: its place in the body, and eight bytes of length.
		at := strings.LastIndex(string(b), string([]byte{8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}))
		if at < 0 {
			t.Fatalf("no second buffer in % x", b)
		}
		b[at] = 0
		if _, err := arrowipc.Decode(b, s); err == nil || !strings.Contains(err.Error(), "in or before the buffer") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a window of a gigabyte", func(t *testing.T) {
		b := batchMessage(t, record(t, sample, sampleRows), ipc.WithZstd())
		at := strings.Index(string(b), "\x28\xb5\x2f\xfd")
		if at < 0 {
			t.Fatal("no ZSTD frame")
		}
		b[at+4], b[at+5] = 0, 20<<3 // a frame with a window of 2 to the power of 10+20
		if _, err := arrowipc.Decode(b, s); err == nil || !strings.Contains(err.Error(), "window of 1073741824 bytes") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("compressed buffers that are none", func(t *testing.T) {
		for _, option := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
			b := batchMessage(t, record(t, sample, sampleRows), option)
			for at := len(b) - 1; at > len(b)-1500 && at > 8; at-- {
				hurt := slices.Clone(b)
				hurt[at] ^= 0x55
				if got, err := arrowipc.Decode(hurt, s); err == nil {
					for i := range got.Rows {
						got.AppendRow(nil, i)
					}
				}
			}
		}
	})
}

// FuzzDecode feeds any bytes: what is taken can be read from end to end.
func FuzzDecode(f *testing.F) {
	schema := schemaMessage(f, sample)
	b := record(f, sample, sampleRows)
	f.Add(schema, batchMessage(f, b))
	f.Add(schema, batchMessage(f, b, ipc.WithLZ4()))
	f.Add(schema, batchMessage(f, b, ipc.WithZstd()))
	f.Add(schema, schema)
	f.Add(schema[8:], batchMessage(f, b)[8:])
	f.Add([]byte{}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, schema, batch []byte) {
		rows, countErr := arrowipc.Rows(batch)
		var s *arrowipc.Schema
		var err error
		hostile.Proportional(t, len(schema), 128, 1<<20, func() { s, err = arrowipc.ParseSchema(schema) })
		if err != nil {
			return
		}
		var got *arrowipc.Batch
		// What is compressed makes a thousand bytes of one, ZSTD more, all in all 240 MiB, into buffers that grow.
		hostile.Proportional(t, len(schema)+len(batch), 4096, 512<<20, func() { got, err = arrowipc.Decode(batch, s) })
		if err != nil {
			return
		}
		if countErr != nil || rows != int64(got.Rows) {
			t.Fatalf("%d rows counted, %v, and %d decoded", rows, countErr, got.Rows)
		}
		for i := range min(got.Rows, 1000) {
			got.AppendRow(nil, i)
		}
	})
}
