package job

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
)

// protobufFormat is that of files of one message, which tells the columns.
type protobufFormat struct {
	ndjsonFormat
	message    protoreflect.MessageDescriptor // nil before the descriptors are read, as what follows
	serializer *protorow.WireSerializer[files.Record]
	schema     *table.Schema
}

func (protobufFormat) source(o *files.Options) { o.Format = files.Protobuf }

func (f protobufFormat) field(buf []byte, r files.Record, name string) ([]byte, error) {
	return protorow.AppendField(buf, f.message, r.Bytes, name)
}

// protobuf reads the descriptors. An *InvalidError lists what is wrong with them, and with what the job file says of them.
func (p *Parsed) protobuf() (protobufFormat, error) {
	const key = "source.files.protobuf"
	o, f := p.Source.Files.Protobuf, protobufFormat{}
	name := p.path(o.Descriptors)
	text, err := os.ReadFile(name)
	if err != nil {
		return f, p.fault(key+".descriptors", "%v", err)
	}
	set, err := protorow.ParseSet(text)
	if err != nil {
		return f, p.fault(key+".descriptors", "%s: %v", name, err)
	}
	if f.message, err = set.Message(o.Message); err != nil {
		return f, p.fault(key+".message", "%s: %v", name, err)
	}
	options, err := p.protobufOptions(set)
	if err != nil {
		return f, err
	}
	f.serializer, err = protorow.Wire(f.message, func(r files.Record) []byte { return r.Bytes }, options)
	if err != nil {
		return f, p.faults(key+".message", err)
	}
	if f.schema, err = f.serializer.Schema(table.Destination{}); err != nil {
		return f, err
	}
	return f, p.namedColumns(f.schema)
}

// faults are joined errors about the value of one key.
func (p *Parsed) faults(key string, err error) error {
	var all []error
	for _, e := range causes(err) {
		all = append(all, p.fault(key, "%v", e))
	}
	return joinFaults(all)
}

// protobufRows makes rows of messages.
func (pl *Pipeline) protobufRows(f protobufFormat, fixed bool) (row.Serializer[files.Record], error) {
	if !fixed {
		return f.serializer, nil // which tables there are, only the messages tell
	}
	dst, err := table.ParseDestination(pl.file.Sink.BigQuery.Table)
	if err != nil {
		return nil, err
	}
	pl.Inferred = []Inferred{{dst, &jsonrow.Inferred{Mapping: jsonrow.Fixed(f.schema)}}}
	return f.serializer, nil
}

func (p *Parsed) protobufOptions(set *protorow.Set) (protorow.Options, error) {
	in, b := p.Sink.BigQuery.Schema.Infer, p.Source.Files.Protobuf
	o := protorow.Options{JSONPaths: in.JSON, GeographyPaths: in.Geography, DeriveRequired: in.Required}
	var err error
	if o.JSONOptions, o.JSONOptionNumbers, err = fieldOptions(set, b.JSONOptions); err != nil {
		return o, p.faults("source.files.protobuf.jsonOptions", err)
	}
	if o.GeographyOptions, o.GeographyOptionNumbers, err = fieldOptions(set, b.GeographyOptions); err != nil {
		return o, p.faults("source.files.protobuf.geographyOptions", err)
	}
	return o, nil
}

// fieldOptions finds options that are named, and leaves numbers what they are.
func fieldOptions(set *protorow.Set, names []string) (types []protoreflect.ExtensionType, numbers []protowire.Number, err error) {
	var errs []error
	for _, name := range names {
		if n, err := strconv.ParseInt(name, 10, 32); err == nil {
			numbers = append(numbers, protowire.Number(n))
			continue
		}
		t, err := set.FieldOption(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		types = append(types, t)
	}
	return types, numbers, errors.Join(errs...)
}

// protobuf checks what goes with messages in files and what does not.
func (c checker) protobuf(f *File) {
	const source, sink = "source.files.", "sink.bigquery."
	in := f.Source.Files
	switch {
	case in == nil || !c.sound(source+"format"):
		return
	case in.Format != "protobuf":
		if in.Protobuf != nil {
			c.fault(source+"protobuf", "means nothing unless format is protobuf")
		}
		return
	case in.Protobuf == nil:
		c.fault(source+"format", "is protobuf: name the descriptors and the message, in protobuf: { descriptors: shop.pb, message: shop.Order }")
		return
	}
	if in.Protobuf.Descriptors == "" && c.sound(source+"protobuf.descriptors") {
		c.fault(source+"protobuf.descriptors", "is empty: expected a file that protoc --include_imports --descriptor_set_out writes")
	}
	if in.Protobuf.Message == "" && c.sound(source+"protobuf.message") {
		c.fault(source+"protobuf.message", "is empty: expected the full name of a message, with its package")
	}
	s := &f.Sink.BigQuery.Schema
	for _, key := range []string{"schema.file", "schema.table"} {
		if c.there(sink + key) {
			c.fault(sink+key, "means nothing for protobuf, whose message tells the columns: use infer")
		}
	}
	c.told("protobuf, whose message tells the columns")
	if s.UnknownFields != "" {
		c.fault(sink+"schema.unknownFields", "means nothing for protobuf: every field has a column, and unknown fields are left out")
	}
	for i, path := range append(append([]string{}, in.Protobuf.JSONOptions...), in.Protobuf.GeographyOptions...) {
		key, i := "jsonOptions", i
		if n := len(in.Protobuf.JSONOptions); i >= n {
			key, i = "geographyOptions", i-n
		}
		if strings.TrimSpace(path) == "" {
			c.fault(fmt.Sprintf("%sprotobuf.%s[%d]", source, key, i), "is empty: expected the full name of a field option, or its number")
		}
	}
}

// told checks that nothing is said about looking at records, where something else tells the columns.
func (c checker) told(who string) {
	for _, key := range []string{"schema.rest", "schema.infer.sample", "schema.infer.scan", "schema.infer.text"} {
		if c.there("sink.bigquery." + key) {
			c.fault("sink.bigquery."+key, "means nothing for %s", who)
		}
	}
}
