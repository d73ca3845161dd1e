package jsonrow

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// benchSchema has twelve columns that protojson can fill too: what it cannot is the subject of the other tests.
var benchSchema = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "event", Type: table.String},
	{Name: "user", Type: table.String},
	{Name: "country", Type: table.String},
	{Name: "path", Type: table.String},
	{Name: "status", Type: table.Int64},
	{Name: "bytes", Type: table.Int64},
	{Name: "seconds", Type: table.Float64},
	{Name: "cached", Type: table.Bool},
	{Name: "at", Type: table.Timestamp},
	{Name: "agent", Type: table.String},
	{Name: "tags", Type: table.String, Mode: table.Repeated},
}}

// benchLine is a line of 12 fields. Its timestamp is a number, because that is the only form both sides read.
const benchLine = `{"id":9007199254740993,"event":"page_view","user":"u-58213","country":"PT",` +
	`"path":"/catalogue/items/4711?page=2&sort=price","status":200,"bytes":18423,"seconds":0.0837,"cached":false,` +
	`"at":1785027723456789,"agent":"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/139.0","tags":["web","returning"]}`

func itself(b []byte) []byte { return b }

func reportRows(b *testing.B) {
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// typedLine has the types that protojson cannot fill.
const typedLine = `{"n":12345.67,"bn":"0.00000000000000000001","d":"2026-07-26","t":"01:02:03.456789","dt":"2026-07-26T01:02:03",` +
	`"ts":"2026-07-26T01:02:03.456789+02:00","by":"aGVsbG8sIHdvcmxk","j":{"a":[1,2,{"b":"c"}]},"g":"POINT(1 2)","st":{"s":"x","li":[1,2,300]}}`

// nestedLine is read by a mapping that was inferred, with a column for the rest.
const nestedLine = `{"delivery":"bd3224de-4597-5f3b-889c-439dd1fd7629","event":"issues","at":"2026-08-01T12:22:18.720888Z","payload":{"action":"opened",` +
	`"issue":{"id":444500041,"title":"Spelling error in the README file","labels":[{"id":1362934389,"name":"bug","default":true},{"id":2,"name":"docs","default":false}],` +
	`"assignee":null,"milestone":null,"comments":0,"reactions":{"+1":2,"-1":0},"user":{"login":"octo","id":21031067,"site_admin":false}}}}`

func mappingOf(b *testing.B, doc string) *Mapping {
	b.Helper()
	return infer(b, InferOptions{Rest: "rest"}, doc).Mapping
}

// BenchmarkAppendRow/line is the serializer; BenchmarkProtoJSON is what one would write without it. The first has to be at
// least five times as fast.
func BenchmarkAppendRow(b *testing.B) {
	for _, c := range []struct {
		name, doc string
		m         *Mapping
	}{
		{"line", benchLine, Fixed(benchSchema)},
		{"typed", typedLine, Fixed(allTypes)},
		{"nested", nestedLine, mappingOf(b, nestedLine)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := New(itself, c.m, Options{})
			if err != nil {
				b.Fatal(err)
			}
			doc := []byte(c.doc)
			b.SetBytes(int64(len(doc)))
			var buf []byte
			for b.Loop() {
				if buf, err = s.AppendRow(buf[:0], table.Destination{}, doc); err != nil {
					b.Fatal(err)
				}
			}
			reportRows(b)
		})
	}
}

func BenchmarkProtoJSON(b *testing.B) {
	md := messageOf(b, benchSchema)
	doc := []byte(benchLine)
	b.SetBytes(int64(len(doc)))
	var buf []byte
	for b.Loop() {
		m := dynamicpb.NewMessage(md)
		err := protojson.Unmarshal(doc, m)
		if err != nil {
			b.Fatal(err)
		}
		if buf, err = (proto.MarshalOptions{}).MarshalAppend(buf[:0], m); err != nil {
			b.Fatal(err)
		}
	}
	reportRows(b)
}

// messageOf is the message type of a schema's rows.
func messageOf(tb testing.TB, s *table.Schema) protoreflect.MessageDescriptor {
	tb.Helper()
	d, err := row.Descriptor(s)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("row.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{d},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return f.Messages().Get(0)
}
