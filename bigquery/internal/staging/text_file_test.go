package staging_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// unpacked is the text of a file of rows, of which those that are refused are named in faults.
func unpacked(t *testing.T, e staging.Encoding, s *table.Schema, rows ...[]row.Value) (text string, faults []string) {
	t.Helper()
	var out bytes.Buffer
	f, err := e.NewFile(&out, mustPlan(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := f.Write(rowtest.Encode(s.Fields, r)); err != nil {
			faults = append(faults, kinds(t, err)...)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f.Size() != int64(out.Len()) {
		t.Errorf("%d bytes are counted, %d written", f.Size(), out.Len())
	}
	z, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(got), faults
}

var everyType = schemaOf(
	table.Field{Name: "b", Type: table.Bool}, table.Field{Name: "i", Type: table.Int64}, table.Field{Name: "f", Type: table.Float64},
	table.Field{Name: "n", Type: table.Numeric}, table.Field{Name: "s", Type: table.String}, table.Field{Name: "y", Type: table.Bytes},
	table.Field{Name: "d", Type: table.Date}, table.Field{Name: "t", Type: table.Time}, table.Field{Name: "dt", Type: table.DateTime},
	table.Field{Name: "ts", Type: table.Timestamp}, table.Field{Name: "j", Type: table.JSON})

func everyValue(text string) []row.Value {
	return []row.Value{{Int: 1}, {Int: 1<<53 + 1}, rowtest.Float(1.5), rowtest.Decimal(table.Numeric, "-0.5"), rowtest.Text(text), rowtest.Text("\x00\xff"),
		{Int: 20669}, {Int: 1}, {Int: -1}, {Int: 1785846896123456}, rowtest.Text("{\"a\" :\n[1, \"x y\"]}")}
}

func nothing(n int) (rows []row.Value) {
	for range n {
		rows = append(rows, rowtest.Null)
	}
	return rows
}

func TestLinesOfJSON(t *testing.T) {
	got, faults := unpacked(t, staging.JSONFiles, everyType, everyValue("a\"b\\\n\r\t\x00é\u2028"), nothing(11))
	want := `{"b":true,"i":"9007199254740993","f":1.5,"n":"-0.5","s":"a\"b\\\n\r\t\u0000é` + "\u2028" + `","y":"AP8=","d":"2026-08-04","t":"00:00:00.000001",` +
		`"dt":"1969-12-31T23:59:59.999999","ts":"2026-08-04T12:34:56.123456Z","j":{"a":[1,"x y"]}}` + "\n{}\n"
	if diff := cmp.Diff(want, got); diff != "" || faults != nil {
		t.Error(diff, faults)
	}

	s := schemaOf(table.Field{Name: "id", Type: table.Int64, Mode: table.Required},
		table.Field{Name: "list", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "x", Type: table.Float64, Mode: table.Repeated}, {Name: "y", Type: table.JSON}}})
	element := func(json string, x ...float64) row.Value {
		var list []row.Value
		for _, f := range x {
			list = append(list, rowtest.Float(f))
		}
		y := rowtest.Null
		if json != "" {
			y = rowtest.Text(json)
		}
		return rowtest.List(rowtest.List(list...), y)
	}
	got, faults = unpacked(t, staging.JSONFiles, s,
		[]row.Value{{Int: 1}, rowtest.List(element(""), element(`"s"`, math.NaN(), math.Inf(1), math.Inf(-1), 0.0, 1e300))},
		[]row.Value{{Int: 2}, rowtest.List(element(" null "))},
		[]row.Value{{Int: 3}, rowtest.List(element("1"), element("{"))},
		[]row.Value{{Int: 4}, rowtest.List(element("  "))},
		[]row.Value{{Int: 5}, rowtest.List(element("\"\xff\""))},
		[]row.Value{{Int: -6}, rowtest.List()})
	want = `{"id":1,"list":[{},{"x":["NaN","Infinity","-Infinity",0,1e+300],"y":"s"}]}` + "\n" + `{"id":-6}` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"R-RANGE list[0].y", "R-TEXT list[1].y", "R-TEXT list[0].y", "R-TEXT list[0].y"}, faults); diff != "" {
		t.Error(diff)
	}
}

func TestLinesOfCSV(t *testing.T) {
	empty := everyValue("")
	empty[5] = rowtest.Text("")
	marker := everyValue(`\NULL`)
	wrong := everyValue("\xff")
	got, faults := unpacked(t, staging.CSVFiles, everyType, everyValue("a\"\"b,\r\nc\x00"), marker, empty, wrong, nothing(11))
	times := `2026-08-04,00:00:00.000001,1969-12-31T23:59:59.999999,2026-08-04T12:34:56.123456Z,"{""a"" :` + "\n" + `[1, ""x y""]}"` + "\n"
	want := `true,9007199254740993,1.5,-0.5,"a""""b,` + "\r\nc\x00\"" + `,AP8=,` + times +
		`true,9007199254740993,1.5,-0.5,"","",` + times +
		strings.TrimSuffix(strings.Repeat(`\NULL,`, 11), ",") + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"R-RANGE s", "R-TEXT s"}, faults); diff != "" {
		t.Error(diff)
	}

	s := schemaOf(table.Field{Name: "a", Type: table.Int64}, table.Field{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}}},
		table.Field{Name: "li", Type: table.String, Mode: table.Repeated})
	if diff := cmp.Diff([]string{"C-TYPE st", "C-TYPE li"}, kinds(t, staging.CSVFiles.Check(mustPlan(t, s)))); diff != "" {
		t.Error(diff)
	}
	if err := staging.CSVFiles.Check(mustPlan(t, everyType)); err != nil {
		t.Error(err)
	}
}

// TestTextFilesThatCannotBeWritten: what ends a file comes again, and is no row's fault.
func TestTextFilesThatCannotBeWritten(t *testing.T) {
	s := schemaOf(table.Field{Name: "s", Type: table.String})
	for _, e := range []staging.Encoding{staging.JSONFiles, staging.CSVFiles} {
		f, err := e.NewFile(&full{100}, mustPlan(t, s))
		if err != nil {
			t.Fatal(err)
		}
		data := rowtest.Encode(s.Fields, []row.Value{rowtest.Text(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 1000))})
		for range 1000 {
			if err = f.Write(data); err != nil {
				break
			}
		}
		var of *row.Error
		if !errors.Is(err, errFull) || errors.As(err, &of) {
			t.Errorf("%v: without room: %v", e.Format(), err)
		}
		if err := f.Write(data); !errors.Is(err, errFull) {
			t.Errorf("%v: the next row: %v", e.Format(), err)
		}
		if err := f.Close(); !errors.Is(err, errFull) {
			t.Errorf("%v: Close: %v", e.Format(), err)
		}
		if err := f.Close(); !errors.Is(err, errFull) {
			t.Errorf("%v: Close again: %v", e.Format(), err)
		}
	}
}

type upper struct {
	staging.File
	w io.Writer
	n int64
}

func (u *upper) Write(row []byte) error {
	n, err := u.w.Write(bytes.ToUpper(row))
	u.n += int64(n)
	return err
}
func (u *upper) Size() int64  { return u.n }
func (u *upper) Close() error { return nil }

func TestCustomFiles(t *testing.T) {
	s := schemaOf(table.Field{Name: "s", Type: table.String})
	c := &staging.CustomFiles{Suffix: ".orc", Configure: func(l *staging.Load) { l.SourceFormat = "ORC" },
		Open: func(w io.Writer, got *table.Schema, d *descriptorpb.DescriptorProto) (staging.File, error) {
			if got != s || d.GetField()[0].GetName() != "s" {
				t.Errorf("a file of %v, %v", got, d)
			}
			return &upper{w: w}, nil
		}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	f, err := c.NewFile(&out, mustPlan(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("row")); err != nil || f.Size() != 3 || out.String() != "ROW" {
		t.Errorf("%v, %d, %q", err, f.Size(), out.String())
	}
	if diff := cmp.Diff(staging.Load{SourceFormat: "ORC", Schema: s}, c.Load(s)); diff != "" || c.Extension() != ".orc" || c.Format() != staging.Custom || c.Check(nil) != nil {
		t.Error(diff, c.Extension(), c.Format())
	}
	for _, bad := range []string{"", ".", "orc", ".o/rc", ".*", ".o?", ".[a]", ".o#", ".\x00", ".ö", "." + strings.Repeat("x", 31)} {
		c.Suffix = bad
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "Suffix") {
			t.Errorf("suffix %q: %v", bad, err)
		}
	}
	if err := new(staging.CustomFiles).Validate(); err == nil || !strings.Contains(err.Error(), "Open is nil") || !strings.Contains(err.Error(), "Configure is nil") {
		t.Error(err)
	}
}
