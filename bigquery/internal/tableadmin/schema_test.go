package tableadmin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	bqrest "google.golang.org/api/bigquery/v2"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/table"
)

func anyFields(t *rapid.T, depth int, name string) []table.Field {
	fields := make([]table.Field, rapid.IntRange(1, 4).Draw(t, name+" fields"))
	for i := range fields {
		fields[i] = anyField(t, depth, fmt.Sprintf("%s_%d", name, i))
	}
	return fields
}

func anyField(t *rapid.T, depth int, name string) table.Field {
	most := table.Struct
	if depth == 0 {
		most = table.Range
	}
	f := table.Field{
		Name:        name,
		Type:        rapid.Custom(func(t *rapid.T) table.Type { return table.Type(rapid.IntRange(1, int(most)).Draw(t, "type")) }).Draw(t, name),
		Mode:        table.Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
		Description: rapid.SampledFrom([]string{"", "what it is"}).Draw(t, "description"),
		Default:     rapid.SampledFrom([]string{"", "CURRENT_DATE()"}).Draw(t, "default"),
	}
	switch f.Type {
	case table.Struct:
		f.Fields = anyFields(t, depth-1, name)
	case table.Range:
		f.Range = rapid.SampledFrom([]table.Type{table.Date, table.DateTime, table.Timestamp}).Draw(t, "range")
	case table.String, table.Bytes:
		f.MaxLength = rapid.Int64Range(0, 1<<40).Draw(t, "length")
	case table.Numeric, table.BigNumeric:
		f.Precision = rapid.Int64Range(0, 38).Draw(t, "precision")
		f.Scale = rapid.Int64Range(0, f.Precision).Draw(t, "scale")
	case table.Timestamp:
		f.TimestampPrecision = rapid.SampledFrom([]int64{0, 6, 12}).Draw(t, "fraction")
	}
	return f
}

func anySchema(t *rapid.T) *table.Schema { return &table.Schema{Fields: anyFields(t, 3, "f")} }

func TestSchemaThroughREST(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anySchema(t)
		f := &want.Fields[0]
		f.Collation, f.RoundingMode, f.PolicyTags = "und:ci", "ROUND_HALF_EVEN", []string{"projects/p/locations/l/taxonomies/1/policyTags/2"}
		data, err := json.Marshal(ToREST(want))
		if err != nil {
			t.Fatal(err)
		}
		var r bqrest.TableSchema
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		got, err := FromREST(&r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestSchemaThroughStorage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anySchema(t)
		data, err := proto.Marshal(ToStorage(want))
		if err != nil {
			t.Fatal(err)
		}
		var p storagepb.TableSchema
		if err := proto.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		got, err := FromStorage(&p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for ty := table.Bool; ty <= table.Struct; ty++ {
		if storageTypes[ty] == storagepb.TableFieldSchema_TYPE_UNSPECIFIED {
			t.Errorf("%v has no storage form", ty)
		}
		if back, err := table.ParseType(restName(ty)); err != nil || back != ty {
			t.Errorf("%v comes back from REST as %v, %v", ty, back, err)
		}
	}
}

// SER-125: a column without a mode is NULLABLE.
func TestNoMode(t *testing.T) {
	t.Parallel()
	want := &table.Schema{Fields: []table.Field{{Name: "a", Type: table.Int64, Mode: table.Nullable}}}
	rest, err := FromREST(&bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "a", Type: "INTEGER"}}})
	if err != nil || !rest.Equal(want) {
		t.Errorf("REST: %v, %v", rest, err)
	}
	storage, err := FromStorage(&storagepb.TableSchema{Fields: []*storagepb.TableFieldSchema{{Name: "a", Type: storagepb.TableFieldSchema_INT64}}})
	if err != nil || !storage.Equal(want) {
		t.Errorf("storage: %v, %v", storage, err)
	}
}

func TestUnknownColumnTypes(t *testing.T) {
	t.Parallel()
	_, err := FromREST(&bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "a", Type: "RECORD",
		Fields: []*bqrest.TableFieldSchema{{Name: "b", Type: "QUATERNION"}}}}})
	if err == nil || !strings.Contains(err.Error(), "column a.b") || !strings.Contains(err.Error(), "QUATERNION") {
		t.Errorf("REST: %v", err)
	}
	_, err = FromStorage(&storagepb.TableSchema{Fields: []*storagepb.TableFieldSchema{{Name: "a", Type: 999}}})
	if err == nil || !strings.Contains(err.Error(), "column a") || !strings.Contains(err.Error(), "999") {
		t.Errorf("storage: %v", err)
	}
}

func TestCreateOptions(t *testing.T) {
	t.Parallel()
	for _, want := range []table.CreateOptions{
		{},
		{Description: "d", Labels: map[string]string{"team": "x"}, Cluster: []string{"a", "b"}},
		{Partition: table.Partition{Type: table.PartitionHour}},
		{Partition: table.Partition{Type: table.PartitionDay, Field: "at", ExpirationMs: 1000, RequireFilter: true}},
		{Partition: table.Partition{Type: table.PartitionMonth, Field: "at"}},
		{Partition: table.Partition{Type: table.PartitionYear, Field: "at"}},
		{Partition: table.Partition{Type: table.PartitionRange, Field: "id", Start: 0, End: 100, Interval: 10}},
	} {
		var sent bqrest.Table
		setCreateOptions(&sent, want)
		data, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if want.Partition.Type == table.PartitionRange && !strings.Contains(string(data), `"start":"0"`) {
			t.Errorf("a range that starts at 0 is sent without a start: %s", data)
		}
		var answered bqrest.Table
		if err := json.Unmarshal(data, &answered); err != nil {
			t.Fatal(err)
		}
		got, err := createOptions(&answered)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}
