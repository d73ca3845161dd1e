package arrowrow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bqapi "google.golang.org/api/bigquery/v2"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// service is a local BigQuery and its clients.
type service struct {
	t     testing.TB
	local *localbq.Instance
	write *bqstorage.BigQueryWriteClient
	read  *bqstorage.BigQueryReadClient
	made  int
}

func newService(t testing.TB) *service {
	t.Helper()
	ctx := context.Background()
	local, err := localbq.Start(ctx, localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := bqstorage.NewBigQueryWriteClient(ctx, local.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bqstorage.NewBigQueryReadClient(ctx, local.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), r.Close(), local.Close()); err != nil {
			t.Error(err)
		}
	})
	return &service{t: t, local: local, write: w, read: r}
}

// table makes a table and returns its path.
func (s *service) table(schema *table.Schema) (string, error) {
	s.made++
	name := fmt.Sprintf("d.t%d", s.made)
	var fields []*bqapi.TableFieldSchema
	if err := json.Unmarshal(schema.JSON(), &fields); err != nil {
		s.t.Fatal(err)
	}
	path := "projects/" + localbq.DefaultProject + "/datasets/d/tables/" + name[2:]
	return path, s.local.CreateTable(name, &bqapi.TableSchema{Fields: fields})
}

// append sends batches and returns the first refusal.
func (s *service) append(path string, schema []byte, batches ...[]byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := s.write.AppendRows(ctx)
	if err != nil {
		return err
	}
	for _, b := range batches {
		data := &storagepb.AppendRowsRequest_ArrowData{Rows: &storagepb.ArrowRecordBatch{SerializedRecordBatch: b}}
		if schema != nil {
			data.WriterSchema, schema = &storagepb.ArrowSchema{SerializedSchema: schema}, nil
		}
		if err := c.Send(&storagepb.AppendRowsRequest{WriteStream: path + "/streams/_default", Rows: &storagepb.AppendRowsRequest_ArrowRows{ArrowRows: data}}); err != nil {
			return err
		}
		answer, err := c.Recv()
		switch {
		case err != nil:
			return err
		case answer.GetError() != nil || len(answer.GetRowErrors()) > 0:
			return fmt.Errorf("%v %v", answer.GetError(), answer.GetRowErrors())
		}
	}
	return nil
}

// batches reads a table in Arrow.
func (s *service) batches(path string) []arrow.RecordBatch {
	s.t.Helper()
	ctx := context.Background()
	session, err := s.read.CreateReadSession(ctx, &storagepb.CreateReadSessionRequest{
		Parent: "projects/" + localbq.DefaultProject, MaxStreamCount: 1,
		ReadSession: &storagepb.ReadSession{Table: path, DataFormat: storagepb.DataFormat_ARROW}})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []arrow.RecordBatch
	for _, stream := range session.GetStreams() {
		rows, err := s.read.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: stream.GetName()})
		if err != nil {
			s.t.Fatal(err)
		}
		all := slices.Clone(session.GetArrowSchema().GetSerializedSchema())
		for {
			answer, err := rows.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, answer.GetArrowRecordBatch().GetSerializedRecordBatch()...)
		}
		r, err := ipc.NewReader(bytes.NewReader(all))
		if err != nil {
			s.t.Fatal(err)
		}
		for r.Next() {
			b := r.RecordBatch()
			b.Retain()
			out = append(out, b)
		}
		if r.Err() != nil {
			s.t.Fatal(r.Err())
		}
	}
	return out
}

// TestDirectRoundTrip sends batches as they are and reads them back in Arrow, and holds the rows of what was read to the
// values that the batches were built of.
func TestDirectRoundTrip(t *testing.T) {
	s := newService(t)
	rapid.Check(t, func(rt *rapid.T) {
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(rt, "schema")
		plain(schema.Fields)
		rows := make([][]row.Value, rapid.IntRange(1, 4).Draw(rt, "rows"))
		var want []string
		for i := range rows {
			rows[i] = rowtest.Rows(schema).Draw(rt, "row")
			tame(schema.Fields, rows[i])
			want = append(want, string(rowtest.Encode(schema.Fields, rows[i])))
		}
		path, err := s.table(schema)
		if err != nil {
			rt.Fatal(err)
		}
		a := arrowSchema(first, schema)
		d, err := NewDirect(a, schema)
		if err != nil {
			rt.Fatal(err)
		}
		b := newBatch(t, build(t, a, schema, rows))
		if err := d.Check(b); err != nil {
			rt.Fatal(err)
		}
		var parts [][]byte
		cut := rapid.IntRange(0, len(rows)-1).Draw(rt, "cut")
		for _, r := range [][2]int{{0, cut}, {cut, len(rows)}} {
			if r[0] == r[1] {
				continue
			}
			part, err := d.AppendBatch(nil, b, r[0], r[1])
			if err != nil {
				rt.Fatal(err)
			}
			parts = append(parts, part)
		}
		if err := s.append(path, d.Schema(), parts...); err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, r := range s.batches(path) {
			ser, err := New(r.Schema(), Options{Schema: schema})
			if err != nil {
				rt.Fatal(err)
			}
			back := newBatch(t, r)
			for i := range back.Len() {
				out, err := ser.AppendRow(nil, dst, Row{back, i})
				if err != nil {
					rt.Fatal(err)
				}
				got = append(got, string(out))
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("read %x, want %x", got, want)
		}
	})
}

func TestDirectRefuses(t *testing.T) {
	scalar := func(t table.Type) table.Field { return table.Field{Name: "c", Type: t} }
	for name, c := range map[string]struct {
		typ    arrow.DataType
		column table.Field
	}{
		"uint64":          {arrow.PrimitiveTypes.Uint64, scalar(table.Int64)},
		"float16":         {arrow.FixedWidthTypes.Float16, scalar(table.Float64)},
		"int to FLOAT64":  {arrow.PrimitiveTypes.Int64, scalar(table.Float64)},
		"large text":      {arrow.BinaryTypes.LargeString, scalar(table.String)},
		"text view":       {arrow.BinaryTypes.StringView, scalar(table.String)},
		"dictionary":      {&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, scalar(table.String)},
		"fixed bytes":     {&arrow.FixedSizeBinaryType{ByteWidth: 2}, scalar(table.Bytes)},
		"date64":          {arrow.FixedWidthTypes.Date64, scalar(table.Date)},
		"time32":          {arrow.FixedWidthTypes.Time32ms, scalar(table.Time)},
		"time in ns":      {arrow.FixedWidthTypes.Time64ns, scalar(table.Time)},
		"datetime in ms":  {&arrow.TimestampType{Unit: arrow.Millisecond}, scalar(table.DateTime)},
		"timestamp in ns": {&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, scalar(table.Timestamp)},
		"finer decimal":   {&arrow.Decimal128Type{Precision: 20, Scale: 4}, table.Field{Name: "c", Type: table.Numeric, Precision: 10, Scale: 2}},
		"wider decimal":   {&arrow.Decimal128Type{Precision: 12, Scale: 2}, table.Field{Name: "c", Type: table.Numeric, Precision: 10, Scale: 2}},
		"narrow decimal":  {&arrow.Decimal64Type{Precision: 10, Scale: 2}, scalar(table.Numeric)},
		"months":          {arrow.FixedWidthTypes.MonthInterval, scalar(table.Interval)},
		"large list":      {arrow.LargeListOf(arrow.PrimitiveTypes.Int64), table.Field{Name: "c", Type: table.Int64, Mode: table.Repeated}},
		"map": {arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), table.Field{Name: "c", Type: table.Struct, Mode: table.Repeated,
			Fields: []table.Field{{Name: "key", Type: table.String}, {Name: "value", Type: table.Int64}}}},
		"in a struct": {arrow.StructOf(optional("x", arrow.PrimitiveTypes.Uint64)), table.Field{Name: "c", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewDirect(arrow.NewSchema([]arrow.Field{optional("c", c.typ)}, nil), &table.Schema{Fields: []table.Field{c.column}})
			if !errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "column c") {
				t.Errorf("%v, want ErrConvert that names the column", err)
			}
		})
	}
	// A schema that no way fits is no matter of converting.
	_, err := NewDirect(arrow.NewSchema([]arrow.Field{optional("c", arrow.BinaryTypes.String)}, nil), &table.Schema{Fields: []table.Field{scalar(table.Int64)}})
	var e *row.Error
	if errors.Is(err, ErrConvert) || !errors.As(err, &e) || e.Kind != row.KindColType {
		t.Errorf("%v, want C-TYPE", err)
	}
}

// TestDirectChecksBatches: the schema may fit and a batch not.
func TestDirectChecksBatches(t *testing.T) {
	list := arrow.ListOf(arrow.BinaryTypes.String)
	names := &table.Schema{Fields: []table.Field{{Name: "c", Type: table.String, Mode: table.Repeated}}}
	text := &table.Schema{Fields: []table.Field{{Name: "c", Type: table.String}}}
	wanted := &table.Schema{Fields: []table.Field{{Name: "c", Type: table.String, Mode: table.Required}}}
	raw := func(offsets []byte, data string) arrow.RecordBatch {
		d := damagedData(arrow.BinaryTypes.String, len(offsets)/4-1, 0, [][]byte{nil, offsets, []byte(data)})
		return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{optional("c", arrow.BinaryTypes.String)}, nil), []arrow.Array{array.MakeFromData(d)}, -1)
	}
	for name, c := range map[string]struct {
		record arrow.RecordBatch
		schema *table.Schema
		good   bool
	}{
		"null list":          {fromJSON(t, `[{"c": null}]`, optional("c", list)), names, false},
		"null in a list":     {fromJSON(t, `[{"c": ["a", null]}]`, optional("c", list)), names, false},
		"null for REQUIRED":  {fromJSON(t, `[{"c": null}]`, optional("c", arrow.BinaryTypes.String)), wanted, false},
		"no UTF-8":           {raw([]byte{0, 0, 0, 0, 1, 0, 0, 0}, "\xff"), text, false},
		"a character in two": {raw([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, "é"), text, false},
		"UTF-8":              {raw([]byte{0, 0, 0, 0, 1, 0, 0, 0, 11, 0, 0, 0, 13, 0, 0, 0}, "aabcdefghijé"), text, true},
		"all fine":           {fromJSON(t, `[{"c": ["a"]}, {"c": []}]`, optional("c", list)), names, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := NewDirect(c.record.Schema(), c.schema)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Check(newBatch(t, c.record)); (err == nil) != c.good || err != nil && !errors.Is(err, ErrConvert) {
				t.Errorf("%v", err)
			}
		})
	}
	d, err := NewDirect(arrow.NewSchema([]arrow.Field{optional("c", arrow.BinaryTypes.String)}, nil), text)
	if err != nil {
		t.Fatal(err)
	}
	other := newBatch(t, fromJSON(t, `[{"c": 1}]`, optional("c", arrow.PrimitiveTypes.Int64)))
	if err := d.Check(other); !errors.Is(err, ErrConvert) {
		t.Errorf("%v for a batch of another schema", err)
	}
	if _, err := d.AppendBatch(nil, other, 1, 3); err == nil {
		t.Error("rows 1 to 3 of 1: want an error")
	}
}

// TestZonesAreSentAsUTC: the instants of a column do not depend on its zone, and the service takes one zone only.
func TestZonesAreSentAsUTC(t *testing.T) {
	s := newService(t)
	schema := &table.Schema{Fields: []table.Field{{Name: "at", Type: table.Timestamp}, {Name: "l", Type: table.Timestamp, Mode: table.Repeated}}}
	path, err := s.table(schema)
	if err != nil {
		t.Fatal(err)
	}
	zone := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Vienna"}
	record := fromJSON(t, `[{"at": 7, "l": [8]}]`, extended(optional("AT", zone), "some.extension"), optional("l", arrow.ListOf(zone)))
	record = array.NewRecordBatch(arrow.NewSchema([]arrow.Field{extended(optional("AT", zone), "some.extension"), optional("l", arrow.ListOf(zone))}, nil),
		fromJSON(t, `[{"at": 7, "l": [8]}]`, optional("at", zone), optional("l", arrow.ListOf(zone))).Columns(), record.NumRows())
	d, err := NewDirect(record.Schema(), schema)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.AppendBatch([]byte("before"), newBatch(t, record), 0, 1)
	if err != nil || !bytes.HasPrefix(part, []byte("before")) {
		t.Fatal(err)
	}
	if err := s.append(path, d.Schema(), part[len("before"):]); err != nil {
		t.Fatal(err)
	}
	got := s.batches(path)
	if len(got) != 1 || got[0].Column(0).(*array.Timestamp).Value(0) != 7 {
		t.Errorf("%v", got)
	}
}

func BenchmarkDirect(b *testing.B) {
	batch, s := githubLike(b, 10_000)
	d, err := NewDirect(batch.Schema(), s.first.schema)
	if err != nil {
		b.Fatal(err)
	}
	buf, err := d.AppendBatch(nil, batch, 0, batch.Len())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	rows := 0
	for b.Loop() {
		x, err := NewBatch(batch.Record())
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Check(x); err != nil {
			b.Fatal(err)
		}
		if buf, err = d.AppendBatch(buf[:0], x, 0, x.Len()); err != nil {
			b.Fatal(err)
		}
		x.Release()
		rows += x.Len()
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// FuzzBatch damages the memory of arrays: what NewBatch lets pass makes rows or errors, and nothing is read beyond its memory.
func FuzzBatch(f *testing.F) {
	schema := &table.Schema{Fields: []table.Field{{Name: "i", Type: table.Int64}, {Name: "s", Type: table.String},
		{Name: "l", Type: table.String, Mode: table.Repeated}, {Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "d", Type: table.Numeric}, {Name: "b", Type: table.Bytes}}}}}
	var records []arrow.RecordBatch
	for k := range 4 {
		records = append(records, build(f, arrowSchema(func(n int) int { return k % n }, schema), schema, [][]row.Value{
			{{Int: 1}, rowtest.Text("a text of more than twelve bytes"), rowtest.List(rowtest.Text("x")), rowtest.List(rowtest.Decimal(table.Numeric, "1.5"), rowtest.Text("y"))},
			{rowtest.Null, rowtest.Null, {}, rowtest.Null},
		}))
		f.Add([]byte{byte(k)})
		f.Add([]byte{byte(k), 1, 2, 3, 200, 255, 7, 0, 9, 128, 4})
	}
	f.Fuzz(func(t *testing.T, how []byte) {
		d := damage(how)
		record := records[int(d.byte())%len(records)]
		b := &Batch{record: record, rows: int(d.byte()) % 5}
		for _, c := range record.Columns() {
			v, err := take(d.data(c.Data()), b.rows)
			if err != nil {
				return
			}
			b.columns = append(b.columns, *v)
		}
		s, err := New(record.Schema(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			_, _ = s.AppendRow(nil, dst, Row{b, i})
		}
		if d, err := NewDirect(b.Schema(), s.first.schema); err == nil {
			_ = d.Check(b)
		}
	})
}

// TestDamagedBatches: a batch of any schema in whose memory something was changed is refused, or its rows are rows of its columns, or
// errors that name one. What no reader of Arrow can tell is a change that leaves values of the types, and lengths within memory.
func TestDamagedBatches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(rt, "schema")
		plain(schema.Fields)
		rows := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(rt, "rows")
		for _, values := range rows {
			tame(schema.Fields, values)
		}
		a := arrowSchema(drawn(rt), schema)
		record := build(t, a, schema, rows)
		defer record.Release()
		s, err := New(a, Options{Schema: schema})
		if err != nil {
			rt.Fatal(err)
		}
		decoder, err := row.NewDecoder(schema)
		if err != nil {
			rt.Fatal(err)
		}
		for range 10 {
			d := damage(rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(rt, "damage"))
			b := &Batch{record: record, rows: len(rows)}
			for _, c := range record.Columns() {
				v, err := take(d.data(c.Data()), b.rows)
				if err != nil {
					break
				}
				b.columns = append(b.columns, *v)
			}
			if len(b.columns) == len(schema.Fields) {
				rowsOrErrors(rt, s, decoder, b)
			}
		}
	})
}

func rowsOrErrors(t *rapid.T, s *Serializer, decoder *row.Decoder, b *Batch) {
	for i := range b.Len() {
		data, err := s.AppendRow(nil, dst, Row{b, i})
		var e *row.Error
		if err != nil && (!errors.As(err, &e) || e.Path == "") {
			t.Fatalf("%v, want a field", err)
		}
		if err != nil {
			continue
		}
		if _, err := decoder.Decode(data); err != nil {
			t.Fatalf("%x: %v", data, err)
		}
	}
}

// damage says what to do to an array, byte after byte; its end leaves the rest as it is.
type damage []byte

func (d *damage) byte() (b byte) {
	if len(*d) > 0 {
		b, *d = (*d)[0], (*d)[1:]
	}
	return b
}

func (d *damage) data(from arrow.ArrayData) arrow.ArrayData {
	buffers := make([]*memory.Buffer, len(from.Buffers()))
	for i, b := range from.Buffers() {
		if b == nil {
			continue
		}
		data := slices.Clone(b.Bytes())
		if n := d.byte(); n >= 128 && len(data) > 0 {
			data = data[:len(data)*int(n-128)/128]
		} else if n > 0 && len(data) > 0 {
			data[int(n)%len(data)] = d.byte()
		}
		buffers[i] = memory.NewBufferBytes(data)
	}
	var children []arrow.ArrayData
	for _, c := range from.Children() {
		children = append(children, d.data(c))
	}
	length, offset := from.Len(), from.Offset()
	switch d.byte() {
	case 1:
		length = int(d.byte())
	case 2:
		offset = int(d.byte())
	case 3:
		offset = 1<<62 + int(d.byte())
	}
	if dict, _ := from.Dictionary().(*array.Data); dict != nil {
		return array.NewDataWithDictionary(from.DataType(), length, buffers, array.UnknownNullCount, offset, d.data(dict).(*array.Data))
	}
	return array.NewData(from.DataType(), length, buffers, children, array.UnknownNullCount, offset)
}
