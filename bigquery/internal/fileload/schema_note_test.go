package fileload

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestSchemaNote(t *testing.T) {
	t.Parallel()
	n := schemaNote{table.Destination{Project: "example.com:p", Dataset: "d", Table: "Täble $1"}, strings.Repeat(`{"fields":[]}`, 20_000)}
	data := n.marshal()
	if got, err := parseSchemaNote(data); err != nil || got != n {
		t.Errorf("round trip: %v", err)
	}
	// What this version writes is read for ever.
	old := []byte("s\x01\x01p\x01d\x01t\x02[]")
	if got, err := parseSchemaNote(old); err != nil || got != (schemaNote{table.Destination{Project: "p", Dataset: "d", Table: "t"}, "[]"}) ||
		!bytes.Equal(got.marshal(), old) {
		t.Errorf("%v, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"version 2":     []byte("s\x02"),
		"no version":    []byte("s"),
		"cut off":       data[:len(data)-1],
		"more behind":   append(bytes.Clone(old), 0),
		"no text":       []byte("s\x01\x01\xff\x01d\x01t\x00"),
		"a huge length": []byte("s\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	} {
		if _, err := parseSchemaNote(bad); !errors.Is(err, loadplan.ErrCommittable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (learnt{}).add([]byte("s\x01\x01p\x01d\x01t\x01{")); !errors.Is(err, loadplan.ErrCommittable) {
		t.Errorf("a schema that is none: %v", err)
	}
}

func FuzzSchemaNote(f *testing.F) {
	f.Add([]byte("s\x01\x01p\x01d\x01t\x02[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := parseSchemaNote(data); err == nil {
			if again, err := parseSchemaNote(n.marshal()); err != nil || again != n {
				t.Errorf("%v becomes %v, %v", n, again, err)
			}
		}
	})
}
