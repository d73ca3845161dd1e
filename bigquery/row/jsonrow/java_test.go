package jsonrow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// The table has a document for each line: the type of its only column, v, the value of v, the row that the JSON writer of
// the official Java client makes of it, in hexadecimal, or "refused"; then what this package makes of it, "=" for the same,
// and, where that is something else, why. The client suite holds the Java client to its column, this test this package to
// the rest.
func TestJavaClient(t *testing.T) {
	data, err := os.ReadFile("testdata/java.tsv")
	if err != nil {
		t.Fatal(err)
	}
	same, different := 0, 0
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Split(line, "\t")
		if len(c) != 5 {
			t.Fatalf("line %d: %d cells", i+1, len(c))
		}
		got := againstJava(t, c[0], c[1], c[2])
		if got != c[3] {
			t.Errorf("line %d: %s of %s is %s, expected %s; Java makes %s of it", i+1, c[0], c[1], got, c[3], c[2])
		}
		if reason := c[4] != ""; reason == (got == "=") {
			t.Errorf("line %d: %s of %s: a reason stands where something differs, and nowhere else", i+1, c[0], c[1])
		}
		if got == "=" {
			same++
		} else {
			different++
		}
	}
	if same == 0 || different == 0 {
		t.Errorf("%d documents alike, %d different", same, different)
	}
}

// againstJava is "=" when the row of a document is worth the same as Java's, or both refuse it; else the row in
// hexadecimal or the kind of the error.
func againstJava(t *testing.T, typ, value, java string) string {
	t.Helper()
	s := &table.Schema{Fields: []table.Field{javaColumn(t, typ)}}
	ours, err := New(itself, Fixed(s), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.AppendRow([]byte{}, table.Destination{}, []byte(`{"v": `+value+`}`))
	if fault := (*row.Error)(nil); errors.As(err, &fault) {
		if java == "refused" {
			return "="
		}
		return string(fault.Kind)
	} else if err != nil {
		t.Fatal(err)
	}
	if java == "refused" {
		return hex.EncodeToString(got)
	}
	theirs, err := hex.DecodeString(java)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, theirs) || sameValues(t, s, got, theirs) {
		return "="
	}
	return hex.EncodeToString(got)
}

// sameValues compares two rows by what is in them: lists of numbers have two forms on the wire.
func sameValues(t *testing.T, s *table.Schema, a, b []byte) bool {
	t.Helper()
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.Decode(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := d.Decode(b)
	return err == nil && reflect.DeepEqual(x.Values, y.Values)
}

var javaType = regexp.MustCompile(`^([A-Z0-9]+)(?:\((\d+),(\d+)\))?(\[\])?$`)

func javaColumn(t *testing.T, typ string) table.Field {
	t.Helper()
	m := javaType.FindStringSubmatch(typ)
	if m == nil {
		t.Fatalf("column type %q", typ)
	}
	f := table.Field{Name: "v"}
	var err error
	if f.Type, err = table.ParseType(m[1]); err != nil {
		t.Fatal(err)
	}
	f.Precision, _ = strconv.ParseInt("0"+m[2], 10, 64)
	f.Scale, _ = strconv.ParseInt("0"+m[3], 10, 64)
	if m[4] != "" {
		f.Mode = table.Repeated
	}
	return f
}
