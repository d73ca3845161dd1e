package schemafile

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/schema/arrowschema"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func read(text []byte, name string) (*table.Schema, error) {
	return Read(bytes.NewReader(text), int64(len(text)), name, Options{})
}

// names are files that the forms are kept in.
var names = map[Form]string{JSON: "a.json", Avro: "a.avsc", Arrow: "-", Parquet: "-", Proto: "a.pb", Go: "a.go"}

// TestEveryWay takes schemas through all forms, one after the other, and back to JSON.
func TestEveryWay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 2).Draw(r, "schema")
		s := want
		for _, form := range rapid.Permutation(Forms()).Draw(r, "way") {
			var out bytes.Buffer
			if err := Write(&out, s, form, Options{}); err != nil {
				r.Fatalf("%s: %v", form, err)
			}
			var err error
			if s, err = read(out.Bytes(), names[form]); err != nil {
				r.Fatalf("%s: %v", form, err)
			}
		}
		if diff := cmp.Diff(want, s); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

func TestForms(t *testing.T) {
	var avro bytes.Buffer
	s := &table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64}}}
	if err := Write(&avro, s, Avro, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := read(avro.Bytes(), "-"); err != nil || !got.Equal(s) {
		t.Errorf("an Avro schema of standard input: %v, %v", got, err)
	}
	text := strings.TrimSpace(avro.String())
	length := func(s string) string { return string(varint(int64(len(s)))) + s }
	file := "Obj\x01" + "\x02" + length("avro.codec") + length("null") + "\x01" + "\x08" + length("avro.schema") + length(text) + "\x00" + strings.Repeat("s", 16) + "rows"
	if got, err := read([]byte(file), "x"); err != nil || !got.Equal(s) {
		t.Errorf("an Avro file: %v, %v", got, err)
	}
	if f := FormOf("dir.go/A.AVSC"); f != Avro {
		t.Errorf("A.AVSC is %q", f)
	}
	if err := Write(&avro, s, "xml", Options{}); err == nil || !strings.Contains(err.Error(), `unknown form "xml": expected one of [json avro`) {
		t.Errorf("a form that is none: %v", err)
	}
}

func varint(v int64) (out []byte) {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for ; u >= 0x80; u >>= 7 {
		out = append(out, byte(u)|0x80)
	}
	return append(out, byte(u))
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, file, want string }{
		{"nothing", "", "-", "the schema is empty"},
		{"no Parquet", "PAR1 and no more", "-", "no Parquet file, or a damaged one"},
		{"no Arrow file", "ARROW1\x00\x00 and no more", "-", "no Arrow file, or a damaged one"},
		{"no Arrow stream", "\xff\xff\xff\xff\x10\x00\x00\x00", "-", "no Arrow file, or a damaged one"},
		{"Avro file without schema", "Obj\x01\x00", "-", "no schema in its header"},
		{"Avro file that is cut", "Obj\x01\x02\x16avro.sch", "-", "header of the Avro file is damaged"},
		{"Avro file with a length", "Obj\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "-", "header of the Avro file is damaged"},
		{"Avro", `{"type":"record","name":"R","fields":[]}`, "-", "C-EMPTY"},
		{"descriptor set", "\xff", "a.pb", "descriptor set"},
		{"Go", "package", "a.go", "not a Go source file"},
		{"JSON", "[\n {\"name\": 1}]", "-", "line 2, column 11: [0].name: expected a string"},
	} {
		if s, err := read([]byte(c.text), c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.name, s, err, c.want)
		}
	}
}

// TestDamage takes little memory, whatever a container says, and gives an error or a schema.
func TestDamage(t *testing.T) {
	s := &table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64}, {Name: "l", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "x", Type: table.JSON}}}}}
	for _, form := range []Form{Parquet, Arrow, Avro, "stream"} {
		var out bytes.Buffer
		if form == "stream" {
			a, err := arrowschema.Write(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := ipc.NewWriter(&out, ipc.WithSchema(a)).Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := read(out.Bytes(), "-"); err != nil || !got.Equal(s) {
				t.Errorf("an Arrow stream: %v, %v", got, err)
			}
		} else if err := Write(&out, s, form, Options{}); err != nil {
			t.Fatal(err)
		}
		for i := range out.Len() {
			for _, b := range []byte{0x00, 0x01, 0x7f, 0x80, 0xff} {
				data := bytes.Clone(out.Bytes())
				data[i] = b
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if got, err := read(data, "-"); err == nil && got.Validate() != nil {
					t.Errorf("%s with byte %d as %#x is read as %s", form, i, b, got.JSON())
				}
				runtime.ReadMemStats(&after)
				if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
					t.Errorf("%s with byte %d as %#x took %d MB", form, i, b, took>>20)
				}
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	s := &table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64}, {Name: "l", Type: table.String, Mode: table.Repeated}}}
	for _, form := range Forms() {
		var out bytes.Buffer
		if err := Write(&out, s, form, Options{}); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes(), names[form])
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if s, err := read(data, name); err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("%q is read as a schema with %v", data, err)
			}
		}
	})
}
