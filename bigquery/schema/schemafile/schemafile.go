// Package schemafile reads and writes files of tables' schemas, in every form there is, and knows a form by its contents.
package schemafile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/bigquery/schema/arrowschema"
	"github.com/millrace-dev/millrace/bigquery/schema/avroschema"
	"github.com/millrace-dev/millrace/bigquery/schema/goschema"
	"github.com/millrace-dev/millrace/bigquery/schema/parquetschema"
	"github.com/millrace-dev/millrace/bigquery/schema/protoschema"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Form is what a schema is written as.
type Form string

const (
	JSON    Form = "json"    // as bq and the REST API write it
	Avro    Form = "avro"    // an Avro schema as JSON, or the header of an object container file
	Arrow   Form = "arrow"   // the schema of an IPC stream or file
	Parquet Form = "parquet" // the footer of a file
	Proto   Form = "proto"   // a descriptor set
	Go      Form = "go"      // a source file with a struct
)

// Forms are all of them.
func Forms() []Form { return []Form{JSON, Avro, Arrow, Parquet, Proto, Go} }

// Options says what a file does not. The zero value is the default.
type Options struct {
	// Message is the full name of the message of a descriptor set; "" is Row, the one that Write writes.
	Message string
	// Package and Type name the Go struct: main and Row by default when it is written. When one is read, an empty Type is the
	// only one that carries a schema.
	Package, Type string
}

// extensions are the forms that names of files end with. Contents go first.
var extensions = map[string]Form{".json": JSON, ".avsc": Avro, ".avro": Avro, ".arrow": Arrow, ".arrows": Arrow, ".parquet": Parquet,
	".pb": Proto, ".binpb": Proto, ".desc": Proto, ".protoset": Proto, ".go": Go}

// FormOf is the form that a file of that name has; "" where the name does not tell.
func FormOf(name string) Form { return extensions[strings.ToLower(filepath.Ext(name))] }

// maxText bounds what is read of files that are no containers: none of their schemas comes near it.
const maxText = 64 << 20

// Read reads the schema of a file, of which it reads no rows. Containers are known by their first bytes, texts by their
// contents, Go and descriptor sets by the file's name or by Options.Message.
func Read(r io.ReaderAt, size int64, name string, o Options) (*table.Schema, error) {
	head := make([]byte, 8)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch head := head[:n]; {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return readParquet(r, size)
	case bytes.HasPrefix(head, []byte("Obj\x01")):
		return readContainer(io.NewSectionReader(r, 0, size))
	case bytes.HasPrefix(head, []byte("ARROW1")):
		return readArrow(r, size, false)
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		return readArrow(r, size, true)
	}
	if size > maxText {
		return nil, fmt.Errorf("%d bytes are more than a schema has, and it is no Parquet, Avro or Arrow file", size)
	}
	text, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	return readText(text, name, o)
}

func readText(text []byte, name string, o Options) (*table.Schema, error) {
	form := FormOf(name)
	switch {
	case o.Message != "" || form == Proto:
		if o.Message == "" {
			o.Message = "Row"
		}
		return protoschema.Read(text, o.Message)
	case form == Go:
		return goschema.Read(text, o.Type)
	case form == Avro || avroText(text):
		return avroschema.Read(string(text))
	}
	return table.ParseSchemaJSON(text)
}

func readParquet(r io.ReaderAt, size int64) (*table.Schema, error) {
	f, err := parquetschema.Open(r, size)
	if err != nil {
		return nil, err
	}
	return parquetschema.Read(f)
}

// Write writes a schema in a form.
func Write(w io.Writer, s *table.Schema, form Form, o Options) error {
	text, err := encode(s, form, o)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func encode(s *table.Schema, form Form, o Options) ([]byte, error) {
	switch form {
	case JSON:
		return s.JSON(), nil
	case Avro:
		text, err := avroschema.Write(s)
		return append([]byte(text), '\n'), err
	case Arrow:
		return encodeArrow(s)
	case Parquet:
		var out bytes.Buffer
		err := parquetschema.WriteFile(&out, s)
		return out.Bytes(), err
	case Proto:
		set, err := protoschema.Write(s)
		if err != nil {
			return nil, err
		}
		return proto.MarshalOptions{Deterministic: true}.Marshal(set)
	case Go:
		return goschema.Write(s, goschema.Options{Package: o.Package, Type: o.Type})
	}
	return nil, fmt.Errorf("unknown form %q: expected one of %v", form, Forms())
}

// encodeArrow makes a file without batches.
func encodeArrow(s *table.Schema) ([]byte, error) {
	a, err := arrowschema.Write(s)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	f, err := ipc.NewFileWriter(&out, ipc.WithSchema(a))
	if err != nil {
		return nil, err
	}
	err = f.Close()
	return out.Bytes(), err
}
