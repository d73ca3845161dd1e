package avrorow

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	peer "github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
)

// TestDatumsStored: records of any schema are stored bit for bit, as datums and as the maps that another library reads of them.
func TestDatumsStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		a := drawRecords(r, rapid.IntRange(1, 4).Draw(r, "records"))
		if _, err := stored.Check(t.Context(), l, a.fromDatum, a.want, a.datums...); err != nil {
			r.Fatalf("%s: datums: %v", a.schema, err)
		}
		if _, err := stored.Check(t.Context(), l, a.fromRecord, a.want, a.converted...); err != nil {
			r.Fatalf("%s: maps: %v", a.schema, err)
		}
		messages, err := NewMessages(a.schema, framed, one42(a.schema), Options{})
		if err != nil {
			r.Fatal(err)
		}
		holds(r, messages, a.want, a.datums)
	})
}

// framed is the message of a datum, under the id 42.
func framed(datum []byte) []byte { return append([]byte{0, 0, 0, 0, 42}, datum...) }

// one42 is a registry of one schema.
type one42 string

func (s one42) Schema(_ context.Context, id uint32) (Registered, error) {
	if id != 42 {
		return Registered{}, ErrNoSchema
	}
	return Registered{Text: string(s)}, nil
}

// readFile reads a container file as a job does.
func readFile(t *testing.T, r *rapid.T, path string) (records []written) {
	source, err := files.NewSource([]string{path}, files.Options{Format: files.Avro})
	if err != nil {
		r.Fatal(err)
	}
	for rec, err := range source.Records(t.Context()) {
		if err != nil {
			r.Fatal(err)
		}
		records = append(records, written{rec.Value.Schema, bytes.Clone(rec.Value.Bytes)})
	}
	return records
}

// peerWrites has another library write records to a container file, with some codec and a block for each. It answers where each block
// ends.
func peerWrites(t *rapid.T, a anyRecord) (data []byte, ends []int) {
	opts := []ocf.WriterOpt{ocf.WithBlockCount(1)}
	codecs := []ocf.Codec{ocf.DeflateCodec(-1), ocf.SnappyCodec(), ocf.MustZstdCodec(nil, nil)}
	if n := rapid.IntRange(0, len(codecs)).Draw(t, "codec"); n < len(codecs) {
		opts = append(opts, ocf.WithCodec(codecs[n]))
	}
	var file bytes.Buffer
	w, err := ocf.NewWriter(&file, peer.MustParse(a.schema), opts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range a.converted {
		err := w.Encode(rec)
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			t.Fatalf("%s: the other library: %v", a.schema, err)
		}
		ends = append(ends, file.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), ends
}

// TestDamagedFiles: a file in which bytes were changed, cut out or put in gives the records before the damage as they were. What comes
// then is an error, or records: damage is told by what a codec's checksum covers, by sync markers, and by datums that are none.
func TestDamagedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.avro")
	rapid.Check(t, func(r *rapid.T) {
		a := drawRecords(r, rapid.IntRange(1, 4).Draw(r, "records"))
		file, ends := peerWrites(r, a)
		bad, at := rowtest.Damaged(r, file)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			r.Fatal(err)
		}
		rows, err := NewWritten(a.schema, written.parts, Options{})
		if err != nil {
			r.Fatal(err)
		}
		source, err := files.NewSource([]string{path}, files.Options{Format: files.Avro})
		if err != nil {
			r.Fatal(err)
		}
		good := 0
		for good < len(ends) && ends[good] <= at {
			good++
		}
		n := 0
		for rec, err := range source.Records(t.Context()) {
			if err != nil {
				break
			}
			got, err := rows.AppendRow(nil, table.Destination{}, written{rec.Value.Schema, rec.Value.Bytes})
			if n < good {
				if want, _ := a.fromDatum.AppendRow(nil, table.Destination{}, a.datums[n]); err != nil || !bytes.Equal(got, want) {
					r.Fatalf("row %d is %x, %v, want %x: it lies before the damage at byte %d", n, got, err, want, at)
				}
			}
			n++
		}
		if n < good {
			r.Fatalf("%d records are read, want the %d before the damage at byte %d", n, good, at)
		}
	})
}

// TestFilesStored: what another library writes to a container file, of any schema and with any codec, is stored bit for bit.
func TestFilesStored(t *testing.T) {
	l := stored.Start(t)
	path := filepath.Join(t.TempDir(), "f.avro")
	rowtest.Sparingly(t, func(r *rapid.T) {
		a := drawRecords(r, rapid.IntRange(1, 4).Draw(r, "records"))
		file, _ := peerWrites(r, a)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			r.Fatal(err)
		}
		rows, err := NewWritten(a.schema, written.parts, Options{})
		if err != nil {
			r.Fatal(err)
		}
		if _, err := stored.Check(t.Context(), l, rows, a.want, readFile(t, r, path)...); err != nil {
			r.Fatalf("%s: %v", a.schema, err)
		}
	})
}

// TestStagedFilesRead: the files that rows of any table are staged as are read as the rows they were, for the same table.
func TestStagedFilesRead(t *testing.T) {
	l := stored.Start(t)
	path := filepath.Join(t.TempDir(), "f.avro")
	types := slices.DeleteFunc(rowtest.Types(), func(t table.Type) bool { return t == table.Interval || t == table.Range })
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := rowtest.Schemas(types, 5).Draw(r, "schema")
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		data, err := stored.Stage(l.NewTable(), staging.Avro, rowtest.OfValues(schema), want...)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			r.Fatal(err)
		}
		rows, err := NewWritten("", written.parts, Options{Table: schema, RecognizeSQLTypes: true})
		if err != nil {
			r.Fatal(err)
		}
		if _, err := stored.Check(t.Context(), l, rows, want, readFile(t, r, path)...); err != nil {
			r.Fatal(err)
		}
	})
}

// TestSessionsRead: a table of any schema is read as maps, in Avro and in Arrow, and as the datums of its blocks. With the session's
// schema they make the rows that were read, but for RANGE and INTERVAL, which are records there.
func TestSessionsRead(t *testing.T) {
	l := stored.Start(t)
	maps := NewDeserializer(itself[map[string]any])
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		dst := l.NewTable()
		if err := stored.Write(t.Context(), l, dst, rowtest.OfValues(schema), want...); err != nil {
			r.Fatal(err)
		}
		session, err := stored.Session(t.Context(), l, dst, maps)
		if err != nil {
			r.Fatal(err)
		}
		o := Options{DeriveRequired: true, RecognizeSQLTypes: true}
		fromMaps, err := NewRecords(session.AvroSchema(), itself[map[string]any], o)
		if err != nil {
			r.Fatalf("%s: %v", session.AvroSchema(), err)
		}
		avro, err := stored.Read(t.Context(), l, dst, maps)
		if err != nil {
			r.Fatal(err)
		}
		holds(r, fromMaps, want, avro)
		if arrow, err := stored.ReadArrow(t.Context(), l, dst, maps); err == nil {
			holds(r, fromMaps, want, arrow)
		} else if !has(schema.Fields, table.Interval) { // Arrow does not count all their nanoseconds
			r.Fatal(err)
		}
		fromDatums, err := New(session.AvroSchema(), itself[[]byte], o)
		if err != nil {
			r.Fatal(err)
		}
		var datums [][]byte
		for block, err := range session.Blocks(t.Context()) {
			if err != nil {
				r.Fatal(err)
			}
			datums = append(datums, cut(r, session.AvroSchema(), block.Data)...)
		}
		holds(r, fromDatums, want, datums)
		if has(schema.Fields, table.Range, table.Interval) {
			return
		}
		intoTable, err := NewWritten("", written.parts, Options{Table: schema, RecognizeSQLTypes: true})
		if err != nil {
			r.Fatal(err)
		}
		var records []written
		for _, d := range datums {
			records = append(records, written{session.AvroSchema(), d})
		}
		holds(r, intoTable, want, records)
	})
}

func has(fields []table.Field, types ...table.Type) bool {
	return slices.ContainsFunc(fields, func(f table.Field) bool { return slices.Contains(types, f.Type) || has(f.Fields, types...) })
}

// cut cuts a block into its datums, by another library.
func cut(t *rapid.T, schema string, block []byte) (datums [][]byte) {
	s, err := peer.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	for len(block) > 0 {
		var v any
		rest, err := s.Decode(block, &v)
		if err != nil {
			t.Fatalf("%s: the other library: %v", schema, err)
		}
		datums, block = append(datums, block[:len(block)-len(rest)]), rest
	}
	return datums
}

// holds makes rows of records, and holds them to values.
func holds[T any](t *rapid.T, rows row.Serializer[T], want [][]row.Value, records []T) {
	if len(records) != len(want) {
		t.Fatalf("%d records, want %d", len(records), len(want))
	}
	schema, err := rows.Schema(table.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	decoder := mustDecoder(t, schema)
	for i, rec := range records {
		data, err := rows.AppendRow(nil, table.Destination{}, rec)
		if err != nil {
			t.Fatalf("%v: %v", rec, err)
		}
		got, err := decoder.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := rowtest.Diff(schema, want[i], got.Values); diff != "" {
			t.Fatalf("%v: %s", rec, diff)
		}
	}
}
