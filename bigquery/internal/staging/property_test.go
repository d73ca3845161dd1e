package staging_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestAvroHoldsWhatTheRowHolds has a second library read random rows of random schemas.
func TestAvroHoldsWhatTheRowHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rowtest.Schemas(stageable, 4).Draw(r, "schema")
		p := mustPlan(t, s)
		e := staging.NewAvroEncoder(p)
		for range 3 {
			want := rowtest.Rows(s).Draw(r, "row")
			got, err := e.Append(nil, rowtest.Encode(s.Fields, want))
			if err != nil {
				r.Fatal(err)
			}
			if diff := rowtest.Diff(s, want, decode(t, p, got)); diff != "" {
				r.Fatal(diff)
			}
		}
	})
}

// TestOrderOfFields: the bytes of a row may hold fields in any order, lists in packed and unpacked pieces among others,
// values that later ones replace, and STRUCTs in parts.
func TestOrderOfFields(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rowtest.Schemas(stageable, 3).Draw(r, "schema")
		p := mustPlan(t, s)
		values := rowtest.Rows(s).Draw(r, "row")
		data := rowtest.Encode(s.Fields, values)
		want, err := staging.NewAvroEncoder(p).Append(nil, data)
		if err != nil {
			r.Fatal(err)
		}
		seed := rapid.Uint64().Draw(r, "seed")
		got, err := staging.NewAvroEncoder(p).Append(nil, scatter(rand.New(rand.NewPCG(seed, 0)), s.Fields, data))
		if err != nil || !bytes.Equal(got, want) {
			r.Fatalf("%x, %v, want %x", got, err, want)
		}
	})
}

// scatter writes a message in another way that means the same.
func scatter(rnd *rand.Rand, fields []table.Field, data []byte) []byte {
	byField := make([][][]byte, len(fields))
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		size := protowire.ConsumeFieldValue(num, typ, data[n:])
		i := int(num) - 1
		byField[i] = append(byField[i], pieces(rnd, &fields[i], num, data[:n+size], data[n:n+size])...)
		data = data[n+size:]
	}
	var out []byte
	for left := true; left; {
		left = false
		for _, i := range rnd.Perm(len(fields)) {
			if len(byField[i]) > 0 {
				out, byField[i], left = append(out, byField[i][0]...), byField[i][1:], true
			}
		}
	}
	return out
}

func pieces(rnd *rand.Rand, f *table.Field, num protowire.Number, whole, value []byte) [][]byte {
	tag := protowire.AppendTag(nil, num, row.WireType(f))
	switch {
	case f.Mode == table.Repeated && row.Packed(f):
		list, _ := protowire.ConsumeBytes(value)
		var out [][]byte
		for len(list) > 0 {
			n := protowire.ConsumeFieldValue(num, row.WireType(f), list)
			if rnd.IntN(2) == 0 {
				out = append(out, append(slices.Clone(tag), list[:n]...))
			} else {
				out = append(out, protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), list[:n]))
			}
			list = list[n:]
		}
		return out
	case f.Mode == table.Repeated:
		return [][]byte{whole}
	case f.Type == table.Struct:
		content, _ := protowire.ConsumeBytes(value)
		content = scatter(rnd, f.Fields, content)
		_, _, n := protowire.ConsumeField(content)
		n = max(n, 0)
		return [][]byte{protowire.AppendBytes(slices.Clone(tag), content[:n]), protowire.AppendBytes(slices.Clone(tag), content[n:])}
	case row.WireType(f) == protowire.VarintType:
		return [][]byte{append(slices.Clone(tag), 0), whole}
	}
	return [][]byte{whole, whole}
}

// FuzzAvro holds the encoder to the row decoder: both take the same bytes, and they mean the same.
func FuzzAvro(f *testing.F) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "i", Type: table.Int64}, {Name: "b", Type: table.Bool}, {Name: "f", Type: table.Float64}, {Name: "d", Type: table.Date},
		{Name: "t", Type: table.Time}, {Name: "dt", Type: table.DateTime}, {Name: "ts", Type: table.Timestamp}, {Name: "s", Type: table.String},
		{Name: "by", Type: table.Bytes}, {Name: "is", Type: table.Int64, Mode: table.Repeated}, {Name: "fs", Type: table.Float64, Mode: table.Repeated},
		{Name: "ss", Type: table.String, Mode: table.Repeated},
		{Name: "r", Type: table.Struct, Fields: []table.Field{{Name: "a", Type: table.Int64, Mode: table.Required}, {Name: "l", Type: table.Date, Mode: table.Repeated}}},
		{Name: "rs", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "a", Type: table.String}}},
		{Name: "e", Type: table.String},
	}}
	p := mustPlan(f, s)
	d, err := row.NewDecoder(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{8, 1, 66, 1, 'x', 82, 2, 1, 2, 80, 3, 106, 2, 8, 1, 106, 3, 18, 1, 5, 114, 0})
	f.Add([]byte{8, 1, 8, 2, 114, 3, 10, 1, 'y'})
	f.Add([]byte{8, 0x81, 1, 66, 9, 'n', 'i', 'n', 'e', ' ', 't', 'e', 'x', 't', 90, 1, 'a', 90, 0, 122, 1, 'z'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, want := d.Decode(data)
		got, err := staging.NewAvroEncoder(p).Append(nil, data)
		switch {
		case err != nil && want == nil:
			t.Fatalf("%x: the encoder says %v, the decoder takes it", data, err)
		case err != nil:
			return
		case want != nil:
			// The decoder looks at each part of what is there twice by itself; what counts in the end must still be right.
			if _, err := d.Decode(rowtest.Encode(s.Fields, decode(t, p, got))); err != nil {
				t.Fatalf("%x: the encoder takes what the decoder says is %v, and it is %v", data, want, err)
			}
			return
		}
		if diff := rowtest.Diff(s, r.Values, decode(t, p, got)); diff != "" {
			t.Fatal(diff)
		}
	})
}
