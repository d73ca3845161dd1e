package stored_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestDamagedBlocks: blocks of a read session in which bytes were changed, cut out or put in are refused, with the column, or are read
// as the other reader of Avro reads them. What neither can tell is a change that leaves datums of the schema.
func TestDamagedBlocks(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		s := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, s)
		dst := l.NewTable()
		rows := rapid.SliceOfN(rowtest.Rows(s), 1, 4).Draw(r, "rows")
		if err := stored.Write(t.Context(), l, dst, rowtest.OfValues(s), rows...); err != nil {
			r.Fatal(err)
		}
		session, err := stored.Session(t.Context(), l, dst, stored.Keep{})
		if err != nil {
			r.Fatal(err)
		}
		decoder, err := storageread.NewDecoder(session.AvroSchema(), nil)
		if err != nil {
			r.Fatal(err)
		}
		other, err := avrorow.New(session.AvroSchema(), func(b []byte) []byte { return b }, avrorow.Options{RecognizeSQLTypes: true, DeriveRequired: true})
		if err != nil {
			r.Fatal(err)
		}
		for block, err := range session.Blocks(t.Context()) {
			if err != nil {
				r.Fatal(err)
			}
			for range 20 {
				bad, _ := rowtest.Damaged(r, block.Data)
				readDamaged(r, decoder, other, bad)
			}
		}
	})
}

// readDamaged reads rows until one is refused.
func readDamaged(t *rapid.T, decoder *storageread.Decoder, other *avrorow.Serializer[[]byte], block []byte) {
	for len(block) > 0 {
		n, err := decoder.Decode(block)
		if err != nil {
			var e *row.Error
			if !errors.As(err, &e) || e.Path == "" {
				t.Fatalf("%x: %v, want a column", block, err)
			}
			return
		}
		if n <= 0 || n > len(block) {
			t.Fatalf("%x: %d bytes are taken of %d", block, n, len(block))
		}
		data, err := other.AppendRow(nil, table.Destination{}, block[:n])
		var e *row.Error
		switch {
		case err == nil:
			sameRow(t, other, decoder.Row().Values, data)
		case !errors.As(err, &e) || e.Kind != row.KindRange:
			// The reader leaves what values mean to deserializers.
			t.Fatalf("%x: %v, and the reader takes it", block[:n], err)
		}
		block = block[n:]
	}
}

func sameRow(t *rapid.T, rows *avrorow.Serializer[[]byte], got []row.Value, data []byte) {
	s, err := rows.Schema(table.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.Decode(data)
	if err != nil {
		t.Fatalf("%x: %v", data, err)
	}
	if diff := rowtest.Diff(s, want.Values, got); diff != "" {
		t.Fatal(diff)
	}
}
