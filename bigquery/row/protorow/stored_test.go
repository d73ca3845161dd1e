package protorow_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// asText renders rows that are read as members does.
type asText struct{}

func (asText) Deserialize(r *row.Row, emit func(string) error) error {
	text := members(r.Schema.Fields, r.Values)
	return emit(text[1 : len(text)-1])
}

// startLocal starts a BigQuery with the dataset d in the project p.
func startLocal(t *testing.T) bigquery.Connection {
	t.Helper()
	bq, err := localbq.Start(t.Context(), localbq.Config{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := bq.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	return bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
}

// TestStoredValues writes the rows of all cases to tables of their own, over the default stream, and reads them back.
func TestStoredValues(t *testing.T) {
	at := startLocal(t)
	stored := 0
	for i, c := range slices.Concat(valueCases(), modeCases(), markerCases()) {
		if c.row == "" || strings.HasPrefix(c.row, "R-") {
			continue
		}
		stored++
		t.Run(c.name, func(t *testing.T) {
			dst := table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprintf("t%d", i)}
			err := c.store(t, at, dst)
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
			if got := readBack(t, at, dst); len(got) != 1 || got[0] != want {
				t.Errorf("stored %q, want %q", got, want)
			}
		})
	}
	if stored < 40 {
		t.Errorf("%d cases were stored, want more: the search is broken", stored)
	}
}

// TestRandomMessagesStored has random messages of random types stored and read back. JSON, which BigQuery writes in a form of
// its own, is left to the cases.
func TestRandomMessagesStored(t *testing.T) {
	at := startLocal(t)
	tables := 0
	rapid.Check(t, func(r *rapid.T) {
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
		tables++
		dst := table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprintf("t%d", tables)}
		if err := store(t, at, dst, rows, records...); err != nil {
			r.Fatal(err)
		}
		if got := readBack(t, at, dst); !slices.Equal(got, want) {
			r.Fatalf("stored %q, want %q", got, want)
		}
	})
}

func (c *conform) store(t *testing.T, at bigquery.Connection, dst table.Destination) error {
	t.Helper()
	if c.syntax == "" {
		c.syntax = proto3
	}
	md := compiled(t, map[string]string{"m.proto": source(c.syntax, c.fields)})
	rows, err := protorow.Of[proto.Message](md, c.options)
	if err != nil {
		t.Fatal(err)
	}
	return store(t, at, dst, rows, message(t, md, c.record))
}

// store writes records over the default stream.
func store(t *testing.T, at bigquery.Connection, dst table.Destination, rows row.Serializer[proto.Message], records ...proto.Message) error {
	t.Helper()
	sink, err := bigquery.NewSink(bigquery.To[proto.Message](dst), rows, bigquery.SinkOptions{Connection: at})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range records {
		if err := w.Write(t.Context(), &stream.Record[proto.Message]{Value: m}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Flush(t.Context(), true), w.Close())
}

func readBack(t *testing.T, at bigquery.Connection, dst table.Destination) (all []string) {
	t.Helper()
	src, err := bigquery.NewSource(bigquery.FromTable(dst), asText{}, bigquery.SourceOptions{Connection: at})
	if err != nil {
		t.Fatal(err)
	}
	for text, err := range src.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}
