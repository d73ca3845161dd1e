//go:build cgo

package duckdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"
)

// ask runs a statement and answers its rows as text, or what refused it.
func (s *service) ask(sql string) string {
	s.Helper()
	_, answer := s.do("POST", "/queries", fmt.Sprintf(`{"query": %q, "useLegacySql": false}`, sql), "")
	if message := at(answer, "error", "message"); message != nil {
		return "error: " + message.(string)
	}
	rows, _ := at(answer, "rows").([]any)
	var out []string
	for _, row := range rows {
		var values []string
		for _, cell := range at(row, "f").([]any) {
			values = append(values, fmt.Sprint(at(cell, "v")))
		}
		out = append(out, strings.Join(values, " "))
	}
	return strings.Join(out, "\n")
}

// mustDefine runs statements that answer nothing.
func (s *service) mustDefine(statements ...string) {
	s.Helper()
	for _, sql := range statements {
		if got := s.ask(sql); got != "" {
			s.Fatalf("%s: %s", sql, got)
		}
	}
}

func (s *service) wantQuery(sql, want string) {
	s.Helper()
	if got := s.ask(sql); got != want {
		s.Errorf("%s\n got %s\nwant %s", sql, got, want)
	}
}

// change is a row of the columns id and v with what it does.
func change(id int, v, kind string) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(id))
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), v)
	return protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), kind)
}

func (s *service) change(table string, rows ...[]byte) {
	s.Helper()
	c, err := bqstorage.NewBigQueryWriteClient(s.Context(), s.GRPCClientOptions()...)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	call, err := c.AppendRows(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	err = call.Send(&storagepb.AppendRowsRequest{
		WriteStream: "projects/p/datasets/d/tables/" + table + "/streams/_default",
		Rows: &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{
			WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, descriptorpb.FieldDescriptorProto_TYPE_INT64), field("v", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING),
				field("_CHANGE_TYPE", 3, descriptorpb.FieldDescriptorProto_TYPE_STRING),
			}}},
			Rows: &storagepb.ProtoRows{SerializedRows: rows},
		}},
	})
	if err != nil {
		s.Fatal(err)
	}
	answer, err := call.Recv()
	if err != nil || answer.GetError() != nil {
		s.Fatal(answer, err)
	}
}

func (s *service) session(table string) error {
	s.Helper()
	c, err := bqstorage.NewBigQueryReadClient(s.Context(), s.GRPCClientOptions()...)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	_, err = c.CreateReadSession(s.Context(), &storagepb.CreateReadSessionRequest{
		Parent: "projects/p", ReadSession: &storagepb.ReadSession{Table: "projects/p/datasets/d/tables/" + table, DataFormat: storagepb.DataFormat_AVRO},
	})
	return err
}

func TestMaxStaleness(t *testing.T) {
	s := start(t)
	if err := s.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	options := "SELECT table_catalog, table_schema, table_name, option_name, option_type, option_value FROM d.INFORMATION_SCHEMA.TABLE_OPTIONS WHERE table_name = 't'"
	t.Run("LBQ-116 REST does not set it", func(t *testing.T) {
		body := `{"tableReference": {"tableId": "t"}, "maxStaleness": "0-0 0 0:10:0", "schema": {"fields": [{"name": "id", "type": "INTEGER"}, {"name": "v", "type": "STRING"}]}}`
		if code, answer := s.do("POST", "/datasets/d/tables", body, ""); code != 200 || at(answer, "maxStaleness") != nil {
			t.Fatalf("%d %s", code, text(answer))
		}
		for _, method := range []string{"PATCH", "PUT"} {
			if code, answer := s.do(method, "/datasets/d/tables/t", body, ""); code != 200 || at(answer, "maxStaleness") != nil {
				t.Errorf("%s: %d %s", method, code, text(answer))
			}
		}
		s.wantQuery(options, "")
	})
	t.Run("LBQ-117 DDL sets it, TABLE_OPTIONS shows it, tables.get does not", func(t *testing.T) {
		s.mustDefine("ALTER TABLE d.t SET OPTIONS (max_staleness = INTERVAL 10 MINUTE)")
		s.wantQuery(options, "p d t max_staleness INTERVAL 0-0 0 0:10:0")
		s.wantQuery("SELECT o.option_value FROM `p.d.INFORMATION_SCHEMA.TABLE_OPTIONS` AS o WHERE TABLE_OPTIONS IS NULL", "error: Unrecognized name: TABLE_OPTIONS at [1:78]")
		s.wantQuery("SELECT option_value FROM p.d.information_schema.table_options", "0-0 0 0:10:0")
		if _, answer := s.do("GET", "/datasets/d/tables/t", "", ""); at(answer, "maxStaleness") != nil {
			t.Errorf("got %s", text(answer))
		}
		body := `{"schema": {"fields": [{"name": "id", "type": "INTEGER"}, {"name": "v", "type": "STRING"}]}, "maxStaleness": "0-0 0 1:0:0"}`
		if code, _ := s.do("PUT", "/datasets/d/tables/t", body, ""); code != 200 {
			t.Errorf("update: %d", code)
		}
		s.wantQuery(options, "p d t max_staleness INTERVAL 0-0 0 0:10:0")
		s.mustDefine("ALTER TABLE d.t SET OPTIONS (max_staleness = INTERVAL 600000001 MICROSECOND)")
		s.wantQuery(options, "p d t max_staleness INTERVAL 0-0 0 0:10:0.000001")
		s.mustDefine("ALTER TABLE d.t SET OPTIONS (max_staleness = INTERVAL '1:30:0' HOUR TO SECOND)")
		s.wantQuery(options, "p d t max_staleness INTERVAL 0-0 0 1:30:0")
	})
	t.Run("LBQ-118 NULL leaves a row of nothing", func(t *testing.T) {
		s.mustDefine("ALTER TABLE d.t SET OPTIONS (max_staleness = NULL)")
		s.wantQuery(options, "p d t max_staleness INTERVAL 0-0 0 0:0:0")
	})
	t.Run("LBQ-119 the old row, and after ten minutes the new", func(t *testing.T) {
		s.mustDefine("CREATE TABLE d.fresh (id INT64, v STRING, PRIMARY KEY(id) NOT ENFORCED) OPTIONS(max_staleness = INTERVAL 10 MINUTE)")
		s.clock.Advance(time.Second)
		s.change("fresh", change(1, "old", "UPSERT"))
		s.clock.Advance(11 * time.Minute)
		s.wantQuery("SELECT * FROM d.fresh", "1 old")
		s.change("fresh", change(1, "new", "UPSERT"))
		s.wantQuery("SELECT * FROM d.fresh", "1 old")
		if err := s.session("fresh"); err != nil {
			t.Errorf("a read session of the base: %v", err)
		}
		s.clock.Advance(11 * time.Minute)
		s.wantQuery("SELECT * FROM d.fresh", "1 new")
		s.wantQuery("SELECT v FROM d.fresh FOR SYSTEM_TIME AS OF TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 2 MINUTE)", "old")
	})
	t.Run("LBQ-120 merging at query time", func(t *testing.T) {
		s.mustDefine("CREATE TABLE d.merge (id INT64, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
		s.change("merge", change(1, "a", "UPSERT"), change(2, "b", "UPSERT"), change(1, "", "DELETE"))
		s.wantQuery("SELECT * FROM d.merge", "2 b")
		if got := status.Convert(s.session("merge")); got.Code() != codes.InvalidArgument || !strings.Contains(got.Message(), "merged at query time") {
			t.Errorf("got %v", got)
		}
		copyJob := `{"configuration": {"copy": {"sourceTable": {"projectId": "p", "datasetId": "d", "tableId": "merge"}, "destinationTable": {"projectId": "p", "datasetId": "d", "tableId": "copied"}}}, "jobReference": {"jobId": "copies"}}`
		s.do("POST", "/jobs", copyJob, "")
		for range 100 {
			if _, job := s.do("GET", "/jobs/copies", "", ""); at(job, "status", "state") == "DONE" {
				if got := text(at(job, "status", "errorResult")); !strings.Contains(got, "merged at query time") || !strings.Contains(got, `"invalid"`) {
					t.Errorf("copy: %s", got)
				}
				break
			}
		}
		for _, sql := range []string{"INSERT d.merge (id) VALUES (9)", "TRUNCATE TABLE d.merge", "DELETE FROM d.merge WHERE TRUE",
			"UPDATE d.merge SET v = 'x' WHERE TRUE", "MERGE d.merge USING UNNEST([2]) AS k ON id = k WHEN MATCHED THEN DELETE"} {
			if got := s.run(sql); !strings.Contains(got, "merged at query time") {
				t.Errorf("%s: %q", sql, got)
			}
		}
		if err := s.ApplyChanges("d.merge"); err != nil {
			t.Fatal(err)
		}
		if err := s.session("merge"); err != nil {
			t.Error(err)
		}
		s.mustDefine("INSERT d.merge (id, v) VALUES (9, 'dml')")
		s.wantQuery("SELECT * FROM d.merge ORDER BY id", "2 b\n9 dml")
	})
	t.Run("LBQ-113 a key that is added and dropped", func(t *testing.T) {
		s.mustDefine("ALTER TABLE d.t ADD PRIMARY KEY (id) NOT ENFORCED")
		s.change("t", change(1, "a", "UPSERT"), change(1, "b", "UPSERT"))
		s.wantQuery("SELECT * FROM d.t", "1 b")
	})
	t.Run("LBQ-115 pseudocolumns cannot be queried", func(t *testing.T) {
		s.wantQuery("SELECT _CHANGE_TYPE FROM d.t", "error: Unrecognized name: _CHANGE_TYPE at [1:8]")
		s.wantQuery("SELECT _CHANGE_SEQUENCE_NUMBER FROM d.t", "error: Unrecognized name: _CHANGE_SEQUENCE_NUMBER at [1:8]")
	})
	t.Run("hostile texts in options", func(t *testing.T) {
		s.mustDefine("ALTER TABLE d.t SET OPTIONS (description = '\"; DROP TABLE d.t; --\\n\\\\')")
		s.wantQuery("SELECT option_value FROM d.INFORMATION_SCHEMA.TABLE_OPTIONS WHERE option_name = 'description'", `"\"; DROP TABLE d.t; --\n\\"`)
	})
	t.Run("refusals", func(t *testing.T) {
		for sql, want := range map[string]string{
			"ALTER TABLE d.t SET OPTIONS(max_staleness = 'x')":                                           "Expected an INTERVAL literal as the value of this option at [1:45]",
			"ALTER TABLE d.t SET OPTIONS(max_staleness = INTERVAL -1 DAY)":                               "max_staleness must not be negative",
			"ALTER TABLE d.t SET OPTIONS(max_staleness = INTERVAL 1 FORTNIGHT)":                          "Invalid interval literal",
			"ALTER TABLE d.t SET OPTIONS(max_staleness = INTERVAL 'x' DAY)":                              "INTERVAL",
			"ALTER TABLE d.t SET OPTIONS(max_staleness = INTERVAL 9223372036854775807 HOUR)":             "out of range",
			"ALTER TABLE d.t SET OPTIONS(max_staleness = INTERVAL CAST('1' AS INT64) DAY)":               "Invalid interval literal",
			"CREATE TABLE d.INFORMATION_SCHEMA.TABLE_OPTIONS (a INT64)":                                  "cannot be changed",
			"INSERT d.INFORMATION_SCHEMA.TABLE_OPTIONS (table_name) VALUES ('x')":                        "cannot be changed",
			"SELECT * FROM none.INFORMATION_SCHEMA.TABLE_OPTIONS":                                        "Not found: Dataset p:none was not found in location US",
			"SELECT * FROM d.INFORMATION_SCHEMA.NOTHING":                                                 "Not supported by local BigQuery: INFORMATION_SCHEMA.NOTHING at [1:15]",
			"SELECT * FROM d.INFORMATION_SCHEMA.TABLE_OPTIONS FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()": "Not supported by local BigQuery: FOR SYSTEM_TIME",
		} {
			if got := s.run(sql); !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", sql, got, want)
			}
		}
	})
}
