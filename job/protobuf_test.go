package job

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
)

// eventSet is a descriptor set with one message, shop.Event: a number of each kind there is to get wrong.
func eventSet(t testing.TB) ([]byte, protoreflect.MessageDescriptor) {
	t.Helper()
	field := func(number int32, name string, kind descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
	}
	const single, many = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	place := field(5, "place", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, single)
	place.TypeName = proto.String(".shop.Event.Place")
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("shop.proto"), Package: proto.String("shop"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Event"),
			Field: []*descriptorpb.FieldDescriptorProto{
				field(1, "n", descriptorpb.FieldDescriptorProto_TYPE_INT64, single),
				field(2, "text", descriptorpb.FieldDescriptorProto_TYPE_STRING, single),
				field(3, "raw", descriptorpb.FieldDescriptorProto_TYPE_BYTES, single),
				field(4, "list", descriptorpb.FieldDescriptorProto_TYPE_SINT32, many),
				place,
				field(6, "total", descriptorpb.FieldDescriptorProto_TYPE_UINT64, single),
			},
			NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("Place"), Field: []*descriptorpb.FieldDescriptorProto{
				field(1, "x", descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, single)}}},
		}}}}}
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	all, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := all.FindDescriptorByName("shop.Event")
	if err != nil {
		t.Fatal(err)
	}
	return text, d.(protoreflect.MessageDescriptor)
}

// event is what one message says.
type event struct {
	n     int64
	text  string
	raw   []byte
	list  []int32
	x     *float64 // of place
	total uint64
}

func (e *event) String() string {
	x := "NULL"
	if e.x != nil {
		x = fmt.Sprintf("%x", *e.x)
	}
	return fmt.Sprintf("%d %q %x %v %s %d", e.n, e.text, e.raw, e.list, x, e.total)
}

func (e *event) message(md protoreflect.MessageDescriptor) *dynamicpb.Message {
	m := dynamicpb.NewMessage(md)
	set := func(name protoreflect.Name, v any) { m.Set(md.Fields().ByName(name), protoreflect.ValueOf(v)) }
	set("n", e.n)
	set("text", e.text)
	set("raw", e.raw)
	set("total", e.total)
	list := m.Mutable(md.Fields().ByName("list")).List()
	for _, n := range e.list {
		list.Append(protoreflect.ValueOfInt32(n))
	}
	if e.x != nil {
		place := m.Mutable(md.Fields().ByName("place")).Message()
		place.Set(place.Descriptor().Fields().ByName("x"), protoreflect.ValueOfFloat64(*e.x))
	}
	return m
}

func drawEvent(r *rapid.T) *event {
	e := &event{
		n: rapid.Int64().Draw(r, "n"), text: rapid.String().Draw(r, "text"), raw: rapid.SliceOf(rapid.Byte()).Draw(r, "raw"),
		list: rapid.SliceOf(rapid.Int32()).Draw(r, "list"), total: rapid.Uint64Range(0, math.MaxInt64).Draw(r, "total"),
	}
	if rapid.Bool().Draw(r, "place") {
		e.x = new(rapid.Float64().Draw(r, "x"))
	}
	if rapid.IntRange(0, 9).Draw(r, "empty") == 0 {
		e = &event{}
	}
	return e
}

// eventRows reads events back.
type eventRows struct{}

func (eventRows) Deserialize(r *row.Row, emit func(string) error) error {
	v := r.Values
	e := event{n: v[0].Int, text: string(v[1].Bytes), raw: v[2].Bytes, total: uint64(v[5].Int)}
	for _, n := range v[3].List {
		e.list = append(e.list, int32(n.Int))
	}
	if !v[4].Null {
		e.x = new(math.Float64frombits(uint64(v[4].List[0].Int)))
	}
	return emit(e.String())
}

// TestMessagesInFilesArrive: whatever messages there are, in files packed or not, their rows say the same, and those that make no
// row are among the dead letters as they came in.
func TestMessagesInFilesArrive(t *testing.T) {
	local, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	at := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	set, md := eventSet(t)
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		dir := t.TempDir()
		put := func(name string, data []byte) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				r.Fatal(err)
			}
		}
		put("shop.pb", set)
		var want, dead []string
		for i := range rapid.IntRange(1, 3).Draw(r, "files") {
			var out bytes.Buffer
			for range rapid.IntRange(0, 20).Draw(r, "messages") {
				e := drawEvent(r)
				bad := rapid.IntRange(0, 7).Draw(r, "bad")
				if bad == 0 {
					e.total |= 1 << 63
				}
				wire, err := proto.Marshal(e.message(md))
				if err != nil {
					r.Fatal(err)
				}
				if bad == 1 {
					wire = append(wire, 0xff) // a tag that is cut
				}
				if bad <= 1 {
					dead = append(dead, string(wire))
				} else {
					want = append(want, e.String())
				}
				out.Write(protowire.AppendBytes(nil, wire))
			}
			if rapid.Bool().Draw(r, "packed") {
				out = *bytes.NewBuffer(gzipped(r, out.Bytes()))
			}
			put(fmt.Sprintf("events%d.binpb", i), out.Bytes())
		}
		name := fmt.Sprintf("t%d", runs)
		runEvents(t, r, dir, name, at)
		slices.Sort(want)
		if got := storedEvents(t, r, at, name, len(want) > 0); !slices.Equal(got, want) {
			r.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		slices.Sort(dead)
		if got := deadMessages(r, filepath.Join(dir, "dead.ndjson")); !slices.Equal(got, dead) {
			r.Errorf("dead letters %q, want %q", got, dead)
		}
	})
}

func gzipped(r *rapid.T, data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		r.Fatal(err)
	}
	if err := w.Close(); err != nil {
		r.Fatal(err)
	}
	return out.Bytes()
}

func runEvents(t *testing.T, r *rapid.T, dir, name string, at bigquery.Connection) {
	text := `job: events
source: { files: { paths: ["events*.binpb"], format: protobuf, protobuf: { descriptors: shop.pb, message: shop.Event } } }
sink:
  bigquery:
    table: my-project.shop.` + name + `
    schema: { infer: {} }
    failures: { policy: dead-letter, deadLetter: { file: dead.ndjson } }
restart: { policy: none }
checkpoint: { store: mem:// }
`
	parsed, err := Parse(filepath.Join(dir, "job.yaml"), []byte(text), nil)
	if err != nil {
		r.Fatal(err)
	}
	pl, err := parsed.Prepare(t.Context(), Surroundings{Connection: &at, CreateDatasets: true})
	if err == nil {
		_, err = pl.Run(t.Context(), RunOptions{From: engine.None, Parallelism: 2})
	}
	if err != nil {
		r.Fatal(err)
	}
}

func storedEvents(t *testing.T, r *rapid.T, at bigquery.Connection, name string, there bool) (all []string) {
	if !there {
		return nil
	}
	src, err := bigquery.NewSource(bigquery.FromTable(table.Destination{Project: "my-project", Dataset: "shop", Table: name}), eventRows{},
		bigquery.SourceOptions{Connection: at})
	if err != nil {
		r.Fatal(err)
	}
	for text, err := range src.Rows(t.Context()) {
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func deadMessages(r *rapid.T, path string) (all []string) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l deadletter.Letter
		if err := json.Unmarshal(line, &l); err != nil {
			r.Fatal(err)
		}
		if l.Line == 0 || !strings.HasSuffix(l.File, ".binpb") {
			r.Errorf("a dead letter without its place: %s", line)
		}
		if l.Record != nil {
			l.RecordBytes = []byte(*l.Record)
		}
		all = append(all, string(l.RecordBytes))
	}
	slices.Sort(all)
	return all
}

func TestProtobufKeys(t *testing.T) {
	const job = `job: events
source: { files: { paths: [a], format: %s%s } }
sink: { bigquery: { table: p.d.t, schema: { %s } } }
`
	const named = ", protobuf: { descriptors: shop.pb, message: shop.Event%s }"
	for _, c := range []struct{ format, more, schema, want string }{
		{"protobuf", fmt.Sprintf(named, ""), "infer: { json: [text], geography: [text], required: true }", ""},
		{"protobuf", fmt.Sprintf(named, ", jsonOptions: [a.b, \"50001\"], geographyOptions: [\"50002\"]"), "infer: {}", ""},
		{"protobuf", "", "infer: {}", "source.files.format: is protobuf: name the descriptors and the message"},
		{"protobuf", ", protobuf: { message: M }", "infer: {}", "source.files.protobuf.descriptors: this key is missing"},
		{"protobuf", ", protobuf: { descriptors: \"\", message: \"\" }", "infer: {}", "source.files.protobuf.message: is empty"},
		{"protobuf", fmt.Sprintf(named, ", jsonOptions: [50001]"), "infer: {}", "put it in quotes"},
		{"protobuf", fmt.Sprintf(named, ", geographyOptions: [a, \" \"]"), "infer: {}", "source.files.protobuf.geographyOptions[1]: is empty"},
		{"protobuf", fmt.Sprintf(named, ""), "file: schema.json", "sink.bigquery.schema.file: means nothing for protobuf"},
		{"protobuf", fmt.Sprintf(named, ""), "infer: { sample: 5 }", "sink.bigquery.schema.infer.sample: means nothing for protobuf"},
		{"protobuf", fmt.Sprintf(named, ""), "infer: {}, unknownFields: ignore", "sink.bigquery.schema.unknownFields: means nothing for protobuf"},
		{"protobuff", "", "infer: {}", "did you mean protobuf?"},
		{"ndjson", fmt.Sprintf(named, ""), "infer: {}", "source.files.protobuf: means nothing unless format is protobuf"},
		{"ndjson", "", "infer: { geography: [a] }", "sink.bigquery.schema.infer.geography: needs files that tell their columns"},
		{"csv", "", "infer: { required: true }", "sink.bigquery.schema.infer.required: needs files that tell their columns"},
		{"parquet", "", "infer: { geography: [a], required: true }, defaultStream: { arrowBatches: true }", "unknown key"},
		{"parquet", "", "infer: {} }, defaultStream: { arrowBatches: true", ""},
		{"parquet", "", "infer: {} }, defaultStream: { arrowBatches: false", ""},
		{"ndjson", "", "infer: {} }, defaultStream: { arrowBatches: true", "sink.bigquery.defaultStream.arrowBatches: needs Parquet files"},
		{"parquet", "", "infer: { geography: [a], required: true }", ""},
		{"avro", "", "infer: { geography: [a], required: true }", ""},
	} {
		got := strings.Join(faults(t, fmt.Sprintf(job, c.format, c.more, c.schema)), "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s%s, %s: %q, want %q", c.format, c.more, c.schema, got, c.want)
		}
	}
}
