package protorow_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
)

// asText renders rows that are read as members does.
type asText struct{}

func (asText) Deserialize(r *row.Row, emit func(string) error) error {
	text := members(r.Schema.Fields, r.Values)
	return emit(text[1 : len(text)-1])
}

// TestStoredValues writes the rows of all cases to tables of their own, over the default stream and staged as files, and reads them
// back in Avro and in Arrow.
func TestStoredValues(t *testing.T) {
	l := stored.Start(t)
	count := 0
	for _, c := range slices.Concat(valueCases(), namesakeCases(), rejectionCases(), modeCases(), markerCases()) {
		if c.row == "" || strings.HasPrefix(c.row, "R-") {
			continue
		}
		count++
		t.Run(c.name, func(t *testing.T) {
			ways, err := c.store(t, l)
			if c.refused {
				if err == nil {
					t.Error("BigQuery takes the row, want a refusal")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := cmp.Or(c.stored, c.row)
			for _, w := range ways {
				if len(w.Records) != 1 || w.Records[0] != want {
					t.Errorf("%s: %q, want %q", w.Name, w.Records, want)
				}
			}
		})
	}
	if count < 40 {
		t.Errorf("%d cases were stored, want more: the search is broken", count)
	}
}

// TestRandomMessagesStored has random messages of random types stored and read back. JSON, which BigQuery writes in a form of
// its own, is left to the cases.
func TestRandomMessagesStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		md := randomType(r, wellKnownNames[:len(wellKnownNames)-3])
		rows, err := protorow.Of[proto.Message](md, protorow.Options{DeriveRequired: rapid.Bool().Draw(r, "required")})
		if err != nil {
			r.Fatal(err)
		}
		var records []proto.Message
		var want []string
		for range rapid.IntRange(1, 5).Draw(r, "records") {
			m := dynamicpb.NewMessage(md)
			randomMessage(r, m, 0)
			if text := expectedRow(m); !strings.HasPrefix(text, "R-") {
				records, want = append(records, m), append(want, text[1:len(text)-1])
			}
		}
		if len(records) == 0 {
			return
		}
		ways, err := stored.Ways(t.Context(), l, rows, asText{}, true, records...)
		if err != nil {
			r.Fatal(err)
		}
		for _, w := range ways {
			if !slices.Equal(w.Records, want) {
				r.Fatalf("%s: %q, want %q", w.Name, w.Records, want)
			}
		}
	})
}

func (c *conform) store(t *testing.T, l *stored.Local) ([]stored.Way[string], error) {
	t.Helper()
	md := c.compiled(t)
	rows, err := protorow.Of[proto.Message](md, c.options)
	if err != nil {
		t.Fatal(err)
	}
	return stored.Ways(t.Context(), l, row.Serializer[proto.Message](rows), asText{}, true, proto.Message(message(t, md, c.record)))
}
