package staging_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var plain = &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "text", Type: table.String}}}

func plainRow(id int64, text string) []byte {
	return rowtest.Encode(plain.Fields, []row.Value{{Int: id}, rowtest.Text(text)})
}

// read reads a file with a second library.
func read(t *testing.T, file []byte) (records []map[string]any, meta map[string][]byte) {
	t.Helper()
	r, err := ocf.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for {
		var rec map[string]any
		if err := r.Decode(&rec); errors.Is(err, io.EOF) {
			return records, r.Metadata()
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
}

func TestAvroFile(t *testing.T) {
	p := mustPlan(t, plain)
	var out bytes.Buffer
	f, err := staging.NewAvroFile(&out, p)
	if err != nil {
		t.Fatal(err)
	}
	header := out.Len()
	if f.Size() != int64(header) || f.Buffered() != 0 {
		t.Errorf("after the header: size %d, %d buffered, want %d, 0", f.Size(), f.Buffered(), header)
	}
	long := strings.Repeat("x", 1000)
	for i := range int64(200) {
		if err := f.Write(plainRow(i, long)); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() == header || f.Size() != int64(out.Len()) || f.Buffered() == 0 || f.Buffered() >= 64_000 {
		t.Errorf("after 200 kB: %d bytes written, %d counted, %d buffered: blocks are to be written at 64,000 bytes", out.Len(), f.Size(), f.Buffered())
	}
	var e *row.Error
	if err := f.Write(plainRow(1, "\xff")); !errors.As(err, &e) || e.Kind != row.KindText {
		t.Errorf("a bad row: %v", err)
	}
	if err := f.Write(plainRow(200, "after the bad one")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	records, meta := read(t, out.Bytes())
	if string(meta["avro.codec"]) != "zstandard" || !strings.Contains(string(meta["avro.schema"]), `"name":"Row"`) {
		t.Errorf("codec %s, schema %s", meta["avro.codec"], meta["avro.schema"])
	}
	if len(records) != 201 || records[200]["id"] != int64(200) || records[200]["text"] != "after the bad one" || records[7]["text"] != long {
		t.Errorf("%d records, the last is %v", len(records), records[len(records)-1])
	}
	if f.Size() != int64(out.Len()) || f.Buffered() != 0 {
		t.Errorf("at the end: size %d, %d buffered, want %d, 0", f.Size(), f.Buffered(), out.Len())
	}
}

func TestAvroFileWithoutRows(t *testing.T) {
	var out bytes.Buffer
	f, err := staging.NewAvroFile(&out, mustPlan(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if records, _ := read(t, out.Bytes()); len(records) != 0 {
		t.Errorf("%d records in a file of none", len(records))
	}
}

// full is a writer with room for so many bytes.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestAvroFileThatCannotBeWritten: the fault of the file is not that of a row, and stays.
func TestAvroFileThatCannotBeWritten(t *testing.T) {
	p := mustPlan(t, plain)
	if _, err := staging.NewAvroFile(&full{10}, p); !errors.Is(err, errFull) {
		t.Errorf("a header without room: %v", err)
	}
	f, err := staging.NewAvroFile(&full{1000}, p)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Write(plainRow(1, strings.Repeat("x", 100_000)))
	for err == nil {
		err = f.Write(plainRow(1, strings.Repeat("x", 100_000)))
	}
	var e *row.Error
	if !errors.Is(err, errFull) || errors.As(err, &e) {
		t.Errorf("a block without room: %v", err)
	}
	if err := f.Write(plainRow(2, "")); !errors.Is(err, errFull) {
		t.Errorf("the next row: %v", err)
	}
	if err := f.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
}

// TestAvroSchemaParses has a second library read the schemas of every type.
func TestAvroSchemaParses(t *testing.T) {
	var fields []table.Field
	for _, typ := range stageable {
		f := table.Field{Name: "f_" + typ.String(), Type: typ}
		if typ == table.Struct {
			f.Fields = []table.Field{{Name: f.Name, Type: table.Struct, Fields: []table.Field{{Name: f.Name, Type: table.Int64}}}}
		}
		fields = append(fields, f)
	}
	if _, err := avro.Parse(staging.AvroSchema(mustPlan(t, schemaOf(fields...)))); err != nil {
		t.Error(err)
	}
}
