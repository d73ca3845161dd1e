package localbq_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq"
)

// listed is a table's rows as tabledata.list answers them: of each row its values as JSON.
func listed(t testing.TB, bq *localbq.Instance, table string) string {
	t.Helper()
	c, err := bqapi.NewService(t.Context(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	dataset, id, _ := strings.Cut(table, ".")
	page, err := c.Tabledata.List(localbq.DefaultProject, dataset, id).Do()
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Rows) == 0 {
		return "[]"
	}
	var out []string
	for _, r := range page.Rows {
		values := make([]any, len(r.F))
		for i, cell := range r.F {
			values[i] = cell.V
		}
		b, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return strings.Join(out, " ")
}

// TestValues writes over gRPC and reads over REST. The rules have their tables in internal/decode, value by value.
func TestValues(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)
	sized := func(typ string, precision, scale int64) *bqapi.TableFieldSchema {
		return &bqapi.TableFieldSchema{Name: "v", Type: typ, Precision: precision, Scale: scale}
	}
	v := func(typ string) *bqapi.TableFieldSchema { return column("v", typ) }
	many := func(typ string) *bqapi.TableFieldSchema { return column("v", typ, "REPEATED") }
	for i, k := range []struct {
		name   string
		column *bqapi.TableFieldSchema
		field  string
		row    string
		want   string // the row of tabledata.list; what the row error says behind "!"
	}{
		{"LBQ-62 unset", v("INTEGER"), "v int64", "", `[null]`},
		{"LBQ-73 fixed-width", many("INTEGER"), "v repeated sfixed64", "v: 1 v: -2 v: 3", `[[{"v":"1"},{"v":"-2"},{"v":"3"}]]`},
		{"LBQ-73 sint", many("INTEGER"), "v repeated sint64", "v: 1 v: -2", `[[{"v":"1"},{"v":"-2"}]]`},
		{"LBQ-73 bool", many("BOOLEAN"), "v repeated bool", "v: true v: false", `[[{"v":"true"},{"v":"false"}]]`},
		{"LBQ-75 infinity", v("FLOAT"), "v double", "v: inf", `["Infinity"]`},
		{"LBQ-76 NUMERIC bytes", v("NUMERIC"), "v bytes", `v: "\000\222\066\273\034"`, `["123.4"]`},
		{"LBQ-76 NUMERIC bytes below zero", v("NUMERIC"), "v bytes", `v: "\000\200\005\065\214\006\340"`, `["-9000000"]`},
		{"LBQ-77 the least significant byte first", v("NUMERIC"), "v bytes", `v: "\000\312\232\073"`, `["1"]`},
		{"LBQ-78 NUMERIC(10, 2) rounds", sized("NUMERIC", 10, 2), "v string", `v: "1.245"`, `["1.25"]`},
		{"LBQ-79 BIGNUMERIC of 30 and 10 digits", v("BIGNUMERIC"), "v string", `v: "123456789012345678901234567890.1234567891"`, `["123456789012345678901234567890.1234567891"]`},
		{"LBQ-80 TIME", v("TIME"), "v int64", "v: 102806536767", `["23:59:59.999999"]`},
		{"LBQ-80 TIME early", v("TIME"), "v int64", fmt.Sprint("v: ", 1<<32|2<<26|3<<20|4), `["01:02:03.000004"]`},
		{"LBQ-81 DATETIME", v("DATETIME"), "v int64", fmt.Sprint("v: ", 2020<<46|10<<42|1<<37|12<<32), `["2020-10-01T12:00:00"]`},
		{"LBQ-82 DATE", v("DATE"), "v int32", "v: 300", `["1970-10-28"]`},
		{"LBQ-85 no such day", v("DATETIME"), "v string", `v: "2026-02-30"`, `!Invalid datetime string "2026-02-30" on field v.`},
		{"LBQ-86 a JSON null is not NULL", v("JSON"), "v string", `v: "null"`, `["null"]`},
		{"LBQ-86 no JSON", v("JSON"), "v string", `v: ""`, "!on field v."},
		{"LBQ-87 REPEATED JSON", many("JSON"), "v repeated string", `v: "{\"a\":1}" v: "2"`, `[[{"v":"{\"a\":1}"},{"v":"2"}]]`},
		{"LBQ-88 WKT", v("GEOGRAPHY"), "v string", `v: "POINT(1 2)"`, `["POINT(1 2)"]`},
		{"LBQ-88 GeoJSON", v("GEOGRAPHY"), "v string", `v: "{\"type\":\"Point\",\"coordinates\":[1,2]}"`, `["POINT(1 2)"]`},
		{"LBQ-88 no geography", v("GEOGRAPHY"), "v string", `v: "POINT"`, "!on field v."},
	} {
		t.Run(k.name, func(t *testing.T) {
			table := fmt.Sprint("d.t", i)
			makeTable(t, bq, table, k.column)
			answer := connect(t, c).ask(describe(t, k.field).first(t, stream(table), k.row))
			if message, bad := strings.CutPrefix(k.want, "!"); bad {
				if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 0 || !strings.HasSuffix(e[0].GetMessage(), message) {
					t.Errorf("answered %v", answer)
				}
				k.want = "[]"
			} else if answer.GetError() != nil {
				t.Errorf("refused: %v %v", answer.GetError(), answer.GetRowErrors())
			}
			if got := listed(t, bq, table); got != k.want {
				t.Errorf("got %s, want %s", got, k.want)
			}
		})
	}
}

// nest gives the last field of a type the message or enum of that name, and the type that message or enum.
func (r *rowType) nest(t *testing.T, name string, message *descriptorpb.DescriptorProto, enum *descriptorpb.EnumDescriptorProto) *rowType {
	t.Helper()
	d := proto.CloneOf(r.proto)
	last := d.Field[len(d.Field)-1]
	last.TypeName = new(".Row." + name)
	last.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
	if message != nil {
		message.Name = &name
		d.NestedType = append(d.NestedType, message)
	} else {
		enum.Name = &name
		d.EnumType = append(d.EnumType, enum)
		last.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
	}
	return &rowType{d, official(t, d)}
}

// named gives the fields of a type the columns they feed.
func (r *rowType) named(t *testing.T, columns ...string) *rowType {
	t.Helper()
	d := proto.CloneOf(r.proto)
	for i, f := range d.Field {
		f.Options = &descriptorpb.FieldOptions{}
		proto.SetExtension(f.Options, storagepb.E_ColumnName, columns[i])
	}
	return &rowType{d, official(t, d)}
}

func TestDescriptors(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)
	written := 0
	// holds writes a row and compares what is listed.
	holds := func(t *testing.T, r *rowType, row, want string, columns ...*bqapi.TableFieldSchema) {
		t.Helper()
		written++
		table := fmt.Sprint("d.t", written)
		makeTable(t, bq, table, columns...)
		connect(t, c).append(r.first(t, stream(table), row))
		if got := listed(t, bq, table); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	record := func(typ string, fields ...*bqapi.TableFieldSchema) *bqapi.TableFieldSchema {
		return &bqapi.TableFieldSchema{Name: "v", Type: typ, Fields: fields}
	}
	t.Run("LBQ-56 a field on the wire that the descriptor lacks", func(t *testing.T) {
		makeTable(t, bq, "d.extra", column("v", "INTEGER"))
		q := describe(t, "v int64").first(t, stream("d.extra"), "v: 1")
		rows := q.GetProtoRows().GetRows()
		rows.SerializedRows[0] = protowire.AppendString(protowire.AppendTag(rows.SerializedRows[0], 99, protowire.BytesType), "more")
		connect(t, c).append(q)
		if got := listed(t, bq, "d.extra"); got != `["1"]` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-59 a message that is not nested", func(t *testing.T) {
		makeTable(t, bq, "d.broken", column("v", "INTEGER"))
		bad := describe(t, "v int64")
		whole := bad.proto
		bad.proto = proto.CloneOf(whole)
		bad.proto.Field[0].Type, bad.proto.Field[0].TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), new(".Composer")
		connect(t, c).refused(bad.first(t, stream("d.broken"), "v: 1"), codes.InvalidArgument, `Invalid proto schema: BqMessage.proto: Row.v: ".Composer" is not defined.`)
		t.Run("LBQ-60 proto3_optional left set", func(t *testing.T) {
			bad.proto = proto.CloneOf(whole)
			bad.proto.Field[0].Proto3Optional = new(true)
			connect(t, c).refused(bad.first(t, stream("d.broken"), "v: 1"), codes.InvalidArgument, "Invalid proto schema")
		})
		if got := listed(t, bq, "d.broken"); got != "[]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-61 the default of a field that is unset", func(t *testing.T) {
		r := describe(t, "v int32")
		r.proto.Field[0].DefaultValue = new("4")
		holds(t, r, "", `["4"]`, column("v", "INTEGER"))
	})
	t.Run("LBQ-63 packed rows, an unpacked descriptor", func(t *testing.T) {
		makeTable(t, bq, "d.packed", column("v", "INTEGER", "REPEATED"))
		q := describe(t, "v repeated int64").first(t, stream("d.packed"), "")
		q.GetProtoRows().GetRows().SerializedRows[0] = []byte{0x0a, 4, 1, 2, 0xac, 2}
		connect(t, c).append(q)
		if got := listed(t, bq, "d.packed"); got != `[[{"v":"1"},{"v":"2"},{"v":"300"}]]` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-64 names swapped", func(t *testing.T) {
		holds(t, describe(t, "a string", "b string").named(t, "b", "a"), `a: "1" b: "2"`, `["2","1"]`, column("a", "STRING"), column("b", "STRING"))
	})
	t.Run("LBQ-72 an enum's number", func(t *testing.T) {
		r := describe(t, "v int32").nest(t, "E", nil, &descriptorpb.EnumDescriptorProto{Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: new("A"), Number: new(int32(0))}, {Name: new("B"), Number: new(int32(10))},
		}})
		holds(t, r, "v: B", `["10"]`, column("v", "INTEGER"))
	})
	t.Run("LBQ-83 microseconds, and a message whose nanoseconds are cut", func(t *testing.T) {
		at := func(answer string) string { return `["` + answer + `"]` }
		holds(t, describe(t, "v int64"), "v: 1785027723456789", at("1785027723.456789"), column("v", "TIMESTAMP"))
		moment := describe(t, "seconds int64", "nanos int32").proto
		holds(t, describe(t, "v int64").nest(t, "Timestamp", moment, nil), "v { seconds: 1785027723 nanos: 456789999 }", at("1785027723.456789"), column("v", "TIMESTAMP"))
	})
	t.Run("LBQ-84 a TIMESTAMP as text", func(t *testing.T) {
		holds(t, describe(t, "v string"), `v: "2022-02-02 01:02:03"`, `["1643763723.000000"]`, column("v", "TIMESTAMP"))
	})
	t.Run("LBQ-89 a range without an end", func(t *testing.T) {
		ends := describe(t, "start int32", "end int32").proto
		dates := record("RANGE")
		dates.RangeElementType = &bqapi.TableFieldSchemaRangeElementType{Type: "DATE"}
		holds(t, describe(t, "v int64").nest(t, "R", ends, nil), "v { start: 300 }", `["[1970-10-28, UNBOUNDED)"]`, dates)
	})
	t.Run("LBQ-90 a wrapper into a RECORD", func(t *testing.T) {
		text := describe(t, "value string").proto
		holds(t, describe(t, "v int64").nest(t, "StringValue", text, nil), `v { value: "x" }`, `[{"f":[{"v":"x"}]}]`, record("RECORD", column("value", "STRING")))
	})
	t.Run("LBQ-91 flexible names, written and read", func(t *testing.T) {
		inner := describe(t, "col_1 int64").named(t, "-1").proto
		r := describe(t, "col_1 int64", "col_2 int64").nest(t, "S", inner, nil).named(t, "größe-%", "+1")
		nested := record("RECORD", column("-1", "INTEGER"))
		nested.Name = "+1"
		makeTable(t, bq, "d.flexible", column("größe-%", "INTEGER"), nested)
		connect(t, c).append(r.first(t, stream("d.flexible"), "col_1: 1 col_2 { col_1: 2 }"))
		if got := listed(t, bq, "d.flexible"); got != `["1",{"f":[{"v":"2"}]}]` {
			t.Errorf("got %s", got)
		}
		reader, err := storage.NewBigQueryReadClient(t.Context(), bq.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		asked := &storagepb.CreateReadSessionRequest{Parent: "projects/" + localbq.DefaultProject,
			ReadSession: &storagepb.ReadSession{Table: path("d.flexible"), DataFormat: storagepb.DataFormat_AVRO}}
		_, err = reader.CreateReadSession(t.Context(), asked) // as storage.proto says of enable_display_name_attribute
		wantStatus(t, status.Convert(err), codes.InvalidArgument, "größe-%")
		asked.ReadSession.DataFormat = storagepb.DataFormat_ARROW
		session, err := reader.CreateReadSession(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		call, err := reader.ReadRows(t.Context(), &storagepb.ReadRowsRequest{ReadStream: session.GetStreams()[0].GetName()})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := call.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call.Recv(); err == nil || err.Error() != "EOF" {
			t.Errorf("behind the row: %v", err)
		}
		message := append(bytes.Clone(session.GetArrowSchema().GetSerializedSchema()), answer.GetArrowRecordBatch().GetSerializedRecordBatch()...)
		batches, err := ipc.NewReader(bytes.NewReader(message))
		if err != nil || !batches.Next() {
			t.Fatal(err)
		}
		defer batches.Release()
		text, err := batches.RecordBatch().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.TrimSpace(string(text)), `[{"+1":{"-1":2},"größe-%":1}`; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
