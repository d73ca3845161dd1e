package decode

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// FuzzRow feeds any bytes to a plan: it takes what the protobuf library takes, and what it takes is well-formed.
func FuzzRow(f *testing.F) {
	d, s := model()
	t0 := &testing.T{}
	md := official(t0, d)
	for _, row := range rows(t0, d, `i: 1 s: "x" many: 3`, `one { n: 1 t: "a" } list { } list { n: 2 }`, "far: true e: B u: 7 f: 0.5") {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		p := compile(t, d, s)
		var bad []RowError
		hostile.Proportional(t, len(row), 128, 1<<20, func() { bad = p.Decode([][]byte{row}, Request{}) })
		libraryErr := proto.Unmarshal(row, dynamicpb.NewMessage(md))
		if bad == nil {
			validate(t, p.Take())
		}
		notUTF8 := bad != nil && bad[0].Message != errWire.Error() // which the library lets pass
		if (bad == nil) != (libraryErr == nil) && !notUTF8 {
			t.Fatalf("% x: refused %+v, the library says %v", row, bad, libraryErr)
		}
	})
}

// Occurrences of one message merge. Each is a message by itself, and many of them cost no more than their bytes do.
func TestOccurrencesOfAMessage(t *testing.T) {
	d, s := model()
	for name, c := range map[string]struct {
		row []byte
		bad bool
	}{
		"two":                       {row: []byte("\x3a\x02\x08\x02\x3a\x03\x12\x01a")},
		"two that are one together": {row: []byte("\x3a\x01\x08\x3a\x01\x19"), bad: true},
		"the second is cut short":   {row: []byte("\x3a\x02\x08\x02\x3a\x01\x08"), bad: true},
		"a hundred thousand":        {row: bytes.Repeat([]byte("\x3a\x02\x08\x02"), 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, d, s)
			var bad []RowError
			hostile.Proportional(t, len(c.row), 128, 1<<20, func() { bad = p.Decode([][]byte{c.row}, Request{}) })
			if (bad != nil) != c.bad {
				t.Errorf("refused: %v", bad)
			}
		})
	}
}

// FuzzDescriptor feeds any descriptor to a table of many types: compiling ends, and a plan survives any row.
func FuzzDescriptor(f *testing.F) {
	d, s := model()
	s = s.Clone()
	s.Fields = append(s.Fields, col("ts", schema.Timestamp), col("num", schema.Numeric), &schema.Field{Name: "r", Type: schema.Range, RangeElement: schema.Date}, col("iv", schema.Interval))
	for _, seed := range []*descriptorpb.DescriptorProto{
		d, messageOf("Row", of("r", "message", "R"), messageOf("R", field("start", "int32"), field("end", "int32"))),
		messageOf("Row", of("ts", "message", "Timestamp"), messageOf("Timestamp", field("seconds", "int64"), field("nanos", "int32"))),
		messageOf("Row", of("num", "message", "DoubleValue"), messageOf("DoubleValue", field("value", "double"))),
		messageOf("Row", of("one", "message", "Row")),
	} {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{0x08, 1, 0x12, 2, 0x08, 1})
	}
	f.Fuzz(func(t *testing.T, descriptor, row []byte) {
		d := &descriptorpb.DescriptorProto{}
		if proto.Unmarshal(descriptor, d) != nil {
			return
		}
		hostile.Proportional(t, len(descriptor)+len(row), 256, 1<<20, func() {
			p, err := Compile(d, "t", s)
			if err != nil {
				return
			}
			if p.Decode([][]byte{row, {}}, Request{}) == nil {
				validate(t, p.Take())
			}
		})
	})
}
