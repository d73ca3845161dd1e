package avrofile

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// container is a file of one block by hand.
func container(schema, codec string, count int64, block []byte) []byte {
	b := []byte("Obj\x01\x04")
	for _, s := range []string{"avro.schema", schema, "avro.codec", codec} {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	const sync = "0123456789abcdef"
	b = append(append(b, 0), sync...)
	b = binary.AppendVarint(binary.AppendVarint(b, count), int64(len(block)))
	return append(append(b, block...), sync...)
}

// FuzzReader reads any block by any schema: what is read fits the columns that the schema asks for.
func FuzzReader(f *testing.F) {
	for _, seed := range []struct {
		schema string
		count  int64
		block  string
	}{
		{`{"type":"record","name":"r","fields":[{"name":"a","type":["null","long"]},{"name":"b","type":{"type":"array","items":"string"}}]}`, 2, "\x02\x02\x02\x02x\x00\x00\x00"},
		{`{"type":"record","name":"r","fields":[{"name":"m","type":{"type":"map","values":["int","double","null"]}},{"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}}]}`, 1, "\x02\x02k\x00\x02\x00\x02"},
		{`{"type":"record","name":"r","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}]}`, 1, "\x02\x7f\x02"},
		{`{"type":"record","name":"r","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":65536,"scale":65535}}]}`, 1, "\x02\x7f"},
		{`{"type":"record","name":"r","fields":[{"name":"f","type":{"type":"fixed","name":"f","size":0}},{"name":"n","type":{"type":"record","name":"q","fields":[{"name":"z","type":["null","q"]}]}}]}`, 4000, ""},
		{`{"type":"record","name":"r","fields":[{"name":"u","type":{"type":"fixed","name":"u","size":2147483647}}]}`, 1, "x"},
		{`["null","long"]`, 1, "\x00"},
	} {
		f.Add([]byte(seed.schema), uint8(0), seed.count, []byte(seed.block))
	}
	codecs := []string{"null", "deflate", "snappy", "zstandard", "bzip2", "xz"}
	options := []Options{{}, {Logical: true}, {Logical: true, Decimals: []schema.Type{schema.String}}}
	f.Fuzz(func(t *testing.T, definition []byte, how uint8, count int64, block []byte) {
		file := container(string(definition), codecs[int(how)%len(codecs)], count, block)
		factor, fixed := uint64(4096), uint64(32<<20)
		if how%6 != 0 {
			fixed = 512 << 20 // a block may unpack to 64 MiB, into buffers that grow
		}
		hostile.Proportional(t, len(file), factor, fixed, func() {
			r, err := Open(bytes.NewReader(file), options[int(how)/8%len(options)])
			if err != nil {
				return
			}
			defer r.Close()
			columns := len(r.Schema().Fields)
			for range 10_000 {
				record, bad, err := r.Next()
				if err == io.EOF || err != nil {
					return
				}
				if bad == nil && len(record) != columns {
					t.Fatalf("a record of %d members, for %d columns", len(record), columns)
				}
			}
		})
	})
}

// TestScaleWithoutEnd: a decimal of 65,535 digits behind the point would be as long as a text.
func TestScaleWithoutEnd(t *testing.T) {
	s := `{"type":"record","name":"r","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":65536,"scale":65535}}]}`
	_, err := Open(bytes.NewReader(container(s, "null", 1, []byte("\x02\x7f"))), Options{Logical: true, Decimals: []schema.Type{schema.String}})
	if want := "field d: decimal(65536, 65535) fits none of the types in decimalTargetTypes"; err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("got %v, want %q", err, want)
	}
}
