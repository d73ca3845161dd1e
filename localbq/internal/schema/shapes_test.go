package schema

import (
	"encoding/json"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// every has one column of each type, and everything a column can say.
const every = `{"fields":[
	{"name":"b","type":"BOOLEAN","mode":"NULLABLE"},{"name":"i","type":"INTEGER","mode":"REQUIRED","description":"d","defaultValueExpression":"1"},
	{"name":"f","type":"FLOAT","mode":"NULLABLE"},{"name":"n","type":"NUMERIC","mode":"NULLABLE"},
	{"name":"np","type":"NUMERIC","mode":"NULLABLE","precision":"10","scale":"2","roundingMode":"ROUND_HALF_EVEN"},
	{"name":"bn","type":"BIGNUMERIC","mode":"NULLABLE"},{"name":"s","type":"STRING","mode":"NULLABLE","maxLength":"10","collation":"und:ci","policyTags":{"names":["p"]}},
	{"name":"by","type":"BYTES","mode":"REPEATED"},{"name":"d","type":"DATE","mode":"NULLABLE"},{"name":"t","type":"TIME","mode":"NULLABLE"},
	{"name":"dt","type":"DATETIME","mode":"NULLABLE"},{"name":"ts","type":"TIMESTAMP","mode":"NULLABLE"},
	{"name":"tp","type":"TIMESTAMP","mode":"NULLABLE","timestampPrecision":"12"},{"name":"iv","type":"INTERVAL","mode":"NULLABLE"},
	{"name":"g","type":"GEOGRAPHY","mode":"NULLABLE"},{"name":"j","type":"JSON","mode":"NULLABLE"},
	{"name":"r","type":"RANGE","mode":"NULLABLE","rangeElementType":{"type":"DATE"}},
	{"name":"st","type":"RECORD","mode":"REPEATED","fields":[{"name":"x","type":"INTEGER","mode":"NULLABLE"},{"name":"y","type":"STRING","mode":"REPEATED"}]}]}`

func everySchema(t *testing.T) *Schema {
	t.Helper()
	var in bqapi.TableSchema
	if err := json.Unmarshal([]byte(every), &in); err != nil {
		t.Fatal(err)
	}
	s, err := FromREST(&in)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestREST(t *testing.T) {
	s := everySchema(t)
	b, err := json.Marshal(s.REST())
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte(every), &want) != nil {
		t.Fatal("not JSON")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
	t.Run("the store's JSON", func(t *testing.T) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var again Schema
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, &again); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a clone shares nothing", func(t *testing.T) {
		c := s.Clone()
		c.Fields[17].Fields[0].Name = "changed"
		c.Fields[6].PolicyTags[0] = "changed"
		if s.Fields[17].Fields[0].Name != "x" || s.Fields[6].PolicyTags[0] != "p" {
			t.Error("the original changed")
		}
	})
	t.Run("names of types in any spelling", func(t *testing.T) {
		for name, want := range map[string]Type{"int64": Int64, "INTEGER": Int64, "Float64": Float64, "double": Float64, "BOOL": Bool, "STRUCT": Struct, "decimal": Numeric, "BIGDECIMAL": BigNumeric} {
			if got, ok := ParseType(name); !ok || got != want {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
	for name, f := range map[string]*bqapi.TableFieldSchema{
		"unknown type": {Name: "x", Type: "TEXT"}, "unknown mode": {Name: "x", Type: "INTEGER", Mode: "MAYBE"},
		"unknown range element": {Name: "x", Type: "RANGE", RangeElementType: &bqapi.TableFieldSchemaRangeElementType{Type: "TEXT"}},
	} {
		if _, err := FromREST(&bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{f}}); !refusal.Is(err, refusal.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]*bqapi.TableFieldSchema{
		"generated": {Name: "x", Type: "INTEGER", GeneratedColumn: &bqapi.GeneratedColumn{}}, "foreign": {Name: "x", Type: "INTEGER", ForeignTypeDefinition: "i"},
		"data policy": {Name: "x", Type: "INTEGER", DataPolicies: []*bqapi.DataPolicyOption{{}}},
	} {
		_, err := FromREST(&bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{{Name: "s", Type: "RECORD", Fields: []*bqapi.TableFieldSchema{f}}}})
		if refusal.Of(err) == nil || refusal.Of(err).Code() != 501 {
			t.Errorf("%s: %v, want 501", name, err)
		}
	}
}

func TestStorage(t *testing.T) {
	const text = `
		fields { name: "b" type: BOOL mode: NULLABLE } fields { name: "i" type: INT64 mode: REQUIRED description: "d" default_value_expression: "1" }
		fields { name: "f" type: DOUBLE mode: NULLABLE } fields { name: "n" type: NUMERIC mode: NULLABLE }
		fields { name: "np" type: NUMERIC mode: NULLABLE precision: 10 scale: 2 } fields { name: "bn" type: BIGNUMERIC mode: NULLABLE }
		fields { name: "s" type: STRING mode: NULLABLE max_length: 10 } fields { name: "by" type: BYTES mode: REPEATED }
		fields { name: "d" type: DATE mode: NULLABLE } fields { name: "t" type: TIME mode: NULLABLE } fields { name: "dt" type: DATETIME mode: NULLABLE }
		fields { name: "ts" type: TIMESTAMP mode: NULLABLE } fields { name: "tp" type: TIMESTAMP mode: NULLABLE timestamp_precision { value: 12 } }
		fields { name: "iv" type: INTERVAL mode: NULLABLE } fields { name: "g" type: GEOGRAPHY mode: NULLABLE } fields { name: "j" type: JSON mode: NULLABLE }
		fields { name: "r" type: RANGE mode: NULLABLE range_element_type { type: DATE } }
		fields { name: "st" type: STRUCT mode: REPEATED fields { name: "x" type: INT64 mode: NULLABLE } fields { name: "y" type: STRING mode: REPEATED } }`
	want := &storagepb.TableSchema{}
	if err := prototext.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	if got := everySchema(t).Storage(); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (*Schema)(nil).Storage(); len(got.GetFields()) != 0 {
		t.Errorf("no schema becomes %v", got)
	}
}

func TestArrow(t *testing.T) {
	want := map[string]string{
		"b": "bool", "i": "int64", "f": "float64", "n": "decimal(38, 9)", "np": "decimal(10, 2)", "bn": "decimal256(76, 38)", "s": "utf8",
		"by": "list<item: binary>", "d": "date32", "t": "time64[us]", "dt": "timestamp[us]", "ts": "timestamp[us, tz=UTC]", "tp": "utf8",
		"iv": "struct<months: int32, days: int32, micros: int64>", "g": "utf8", "j": "utf8", "r": "struct<start: date32 nullable, end: date32 nullable>",
		"st": "list<item: struct<x: int64 nullable, y: list<item: utf8>>>",
	}
	s := everySchema(t)
	for _, f := range s.Arrow().Fields() {
		if got := f.Type.String(); got != want[f.Name] {
			t.Errorf("%s is %s, want %s", f.Name, got, want[f.Name])
		}
		if f.Nullable != (s.Field(f.Name).Mode == Nullable) {
			t.Errorf("%s nullable: %v", f.Name, f.Nullable)
		}
	}
	for _, f := range s.ReadArrow().Fields() {
		switch got := f.Type.String(); f.Name {
		case "iv":
			if got != "month_day_nano_interval" {
				t.Errorf("iv is read as %s", got)
			}
		case "tp":
			if got != "timestamp[us, tz=UTC]" {
				t.Errorf("tp is read as %s", got)
			}
		default:
			if got != want[f.Name] {
				t.Errorf("%s is read as %s, want %s", f.Name, got, want[f.Name])
			}
		}
	}
	for name, want := range map[string]string{"j": "google:sqlType:json", "g": "google:sqlType:geography", "dt": "google:sqlType:datetime", "iv": "google:sqlType:interval", "r": "google:sqlType:range"} {
		f, _ := s.Arrow().FieldsByName(name)
		if got, _ := f[0].Metadata.GetValue("ARROW:extension:name"); got != want {
			t.Errorf("%s says it is %q, want %q", name, got, want)
		}
	}
}
