package bigquery

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// texts makes a record of the first column.
type texts struct{}

func (texts) Deserialize(r *row.Row, emit func(string) error) error {
	return emit(string(r.Values[0].Bytes))
}

var readTable = FromTable(table.Destination{Project: "p", Dataset: "d", Table: "t"})

func TestSourceOptions(t *testing.T) {
	t.Parallel()
	query := FromQuery("bill", "SELECT 1")
	for _, c := range []struct {
		name string
		from Input
		o    SourceOptions
		want []string // in the error; none is no error
	}{
		{"a table", readTable, SourceOptions{}, nil},
		{"a query", query, SourceOptions{}, nil},
		{"SRC-1 neither", Input{}, SourceOptions{}, []string{"bigquery.FromTable or bigquery.FromQuery"}},
		{"SRC-1 nobody pays", FromQuery("", "SELECT 1"), SourceOptions{}, []string{"billing"}},
		{"a blank query", FromQuery("bill", " \n"), SourceOptions{}, []string{"query", "blank"}},
		{"two who pay", query, SourceOptions{ParentProject: "other"}, []string{"ParentProject", "FromQuery"}},
		{"one who pays, twice", query, SourceOptions{ParentProject: "bill"}, nil},
		{"a bad table", FromTable(table.Destination{Project: "p", Dataset: "d/e"}), SourceOptions{}, []string{"dataset", "table is empty"}},
		{"a bad payer", readTable, SourceOptions{ParentProject: "a/b"}, []string{"ParentProject"}},
		{"SRC-1 a query that is a view", query, SourceOptions{MaterializeViews: true}, []string{"MaterializeViews applies to a table only"}},
		{"SRC-2 options of queries for a table", readTable, SourceOptions{QueryLocation: "EU", QueryResultDataset: "d", QueryResultProject: "q",
			QueryResultExpiration: 7 * time.Hour, ReuseQueryResultWithin: time.Hour, QueryPriority: QueryBatch},
			[]string{"QueryLocation applies to a query or view only", "QueryResultDataset applies", "QueryResultProject applies", "QueryResultExpiration applies",
				"ReuseQueryResultWithin applies", "QueryPriority applies"}},
		{"SRC-2 options of queries for a view", readTable, SourceOptions{MaterializeViews: true, QueryLocation: "EU", QueryResultDataset: "d", QueryResultProject: "q",
			QueryResultExpiration: 7 * time.Hour, ReuseQueryResultWithin: time.Hour, QueryPriority: QueryBatch}, nil},
		{"SRC-3 an instant of a view", readTable, SourceOptions{MaterializeViews: true, SnapshotTime: time.Now()}, []string{"SnapshotTime", "FOR SYSTEM_TIME AS OF"}},
		{"a view of a partition", FromTable(table.Destination{Project: "p", Dataset: "d", Table: "t$2026"}), SourceOptions{MaterializeViews: true}, []string{"partition"}},
		{"SRC-6 for a day", query, SourceOptions{QueryLocation: "EU", ReuseQueryResultWithin: 24 * time.Hour}, nil},
		{"SRC-6 for longer", query, SourceOptions{QueryLocation: "EU", ReuseQueryResultWithin: 24*time.Hour + time.Millisecond}, []string{"ReuseQueryResultWithin", "24h"}},
		{"SRC-6 backwards", query, SourceOptions{QueryLocation: "EU", ReuseQueryResultWithin: -1}, []string{"ReuseQueryResultWithin must be positive"}},
		{"SRC-6 nowhere", query, SourceOptions{ReuseQueryResultWithin: time.Hour}, []string{"needs QueryLocation: a lookup without a location"}},
		{"SRC-7 for longer than the result is kept", query, SourceOptions{QueryLocation: "EU", QueryResultDataset: "d",
			QueryResultExpiration: 6 * time.Hour, ReuseQueryResultWithin: 12 * time.Hour}, []string{"ReuseQueryResultWithin is 12h0m0s", "QueryResultExpiration"}},
		{"a short life", query, SourceOptions{QueryResultDataset: "d", QueryResultExpiration: 6*time.Hour - 1}, []string{"QueryResultExpiration must be at least 6h"}},
		{"a life of nothing", query, SourceOptions{QueryResultExpiration: 7 * time.Hour, QueryResultProject: "q"}, []string{"QueryResultExpiration needs", "QueryResultProject needs"}},
		{"a dataset that is a path", query, SourceOptions{QueryResultDataset: "d/../e"}, []string{"QueryResultDataset"}},
		{"a dataset with a back-tick", query, SourceOptions{QueryResultDataset: "d`; DROP TABLE x; --"}, []string{"QueryResultDataset"}},
		{"a dataset with a line feed", query, SourceOptions{QueryResultDataset: "d\n", QueryResultProject: "p\x00"}, []string{"QueryResultDataset"}},
		{"a place with a quote", query, SourceOptions{QueryLocation: "EU'"}, []string{"QueryLocation must be a place"}},
		{"a view with a back-tick", FromTable(table.Destination{Project: "p", Dataset: "d", Table: "v`--"}), SourceOptions{MaterializeViews: true}, []string{"has the character"}},
		{"parameters of a table", readTable, SourceOptions{QueryParameters: []QueryParameter{{Type: "INT64"}}}, []string{"QueryParameters apply to a query only"}},
		{"parameters", query, SourceOptions{QueryParameters: []QueryParameter{{Name: "a", Type: "int64"}, {Name: "b", Type: "STRING", Values: []string{}}}}, nil},
		{"parameters of two kinds", query, SourceOptions{QueryParameters: []QueryParameter{{Type: "INT64"}, {Name: "a", Type: "INT64"}}}, []string{"either all parameters"}},
		{"a parameter twice", query, SourceOptions{QueryParameters: []QueryParameter{{Name: "a", Type: "INT64"}, {Name: "A", Type: "INT64"}}}, []string{`names "A" again`}},
		{"a parameter of no type", query, SourceOptions{QueryParameters: []QueryParameter{{Type: "int"}, {Type: "INT64", Value: new("1"), Values: []string{"1"}}}},
			[]string{"QueryParameters[0].Type", "QueryParameters[1] has Value and Values"}},
		{"streams asked for twice", readTable, SourceOptions{StreamsPerLane: 3, MaxStreamCount: 5}, []string{"StreamsPerLane"}},
		{"SRC-84 streams for lanes with a limit", readTable, SourceOptions{StreamsPerLane: 3, Limit: 5}, []string{"Limit", "StreamsPerLane"}},
		{"a location for a query", query, SourceOptions{QueryLocation: "EU"}, nil},
		{"SRC-3 an instant of a query", query, SourceOptions{SnapshotTime: time.Now()}, []string{"SnapshotTime", "FOR SYSTEM_TIME AS OF"}},
		{"SRC-4 minimum above maximum", readTable, SourceOptions{PreferredMinStreamCount: 5, MaxStreamCount: 4},
			[]string{"PreferredMinStreamCount must be <= MaxStreamCount: 5 > 4"}},
		{"SRC-4 minimum without maximum", readTable, SourceOptions{PreferredMinStreamCount: 5}, nil},
		{"SRC-5 a field twice", readTable, SourceOptions{SelectedFields: []string{"a", "a"}}, []string{`SelectedFields[1] names "a" again`}},
		{"SRC-5 a field twice but for its case", readTable, SourceOptions{SelectedFields: []string{"a", "A"}}, []string{"SelectedFields[1]"}},
		{"SRC-5 a field without a name", readTable, SourceOptions{SelectedFields: []string{"a..b", ".a", "a."}}, []string{"SelectedFields[0] has a dot", "SelectedFields[1] has a dot", "SelectedFields[2] has a dot"}},
		{"text that is no UTF-8", readTable, SourceOptions{SelectedFields: []string{"\xff"}, RowRestriction: "\xfe"}, []string{`SelectedFields[0] must be UTF-8: "\xff"`, `RowRestriction must be UTF-8: "\xfe"`}},
		{"a query that is no UTF-8", FromQuery("p", "SELECT '\xff'"), SourceOptions{}, []string{"the query must be UTF-8"}},
		{"SRC-5 a blank field", readTable, SourceOptions{SelectedFields: []string{" "}}, []string{"SelectedFields[0] must not be blank"}},
		{"SRC-8 below zero", readTable, SourceOptions{RetryMaxAttempts: -1, MaxRecordsPerFetch: -1, MaxBytesPerFetch: -1, FetchQueue: -1,
			MaxStreamCount: -1, PreferredMinStreamCount: -1, Limit: -1},
			[]string{"RetryMaxAttempts", "MaxRecordsPerFetch", "MaxBytesPerFetch", "FetchQueue", "MaxStreamCount", "PreferredMinStreamCount", "Limit"}},
		{"SRC-86 batches that are packed, of rows", readTable, SourceOptions{ArrowCompression: ArrowLZ4}, []string{"ArrowCompression applies to batches of Arrow only"}},
		{"packed twice", readTable, SourceOptions{ArrowCompression: ArrowLZ4, CompressResponses: true}, []string{"ArrowCompression", "CompressResponses", "leave one out"}},
		{"packed in no way", readTable, SourceOptions{ArrowCompression: 9}, []string{"ArrowCompression must be"}},
		{"a blank restriction", readTable, SourceOptions{RowRestriction: " "}, []string{"RowRestriction"}},
		{"a long restriction", readTable, SourceOptions{RowRestriction: strings.Repeat("x", 1_000_001)}, []string{"RowRestriction has 1000001 bytes"}},
		{"the longest restriction", readTable, SourceOptions{RowRestriction: strings.Repeat("x", 1_000_000)}, nil},
		{"a share below zero", readTable, SourceOptions{SamplePercentage: -1}, []string{"SamplePercentage"}},
		{"more than all", readTable, SourceOptions{SamplePercentage: 100.1}, []string{"SamplePercentage"}},
		{"a short stall", readTable, SourceOptions{StallTimeout: time.Millisecond, CreateSessionTimeout: -1}, []string{"StallTimeout", "CreateSessionTimeout"}},
		{"a long trace id", readTable, SourceOptions{TraceID: strings.Repeat("x", 257)}, []string{"TraceID"}},
		{"SRC-84 a limit through many streams", readTable, SourceOptions{Limit: 5, MaxStreamCount: 2}, []string{"Limit", "MaxStreamCount"}},
		{"SRC-10 a key for an emulator", readTable, SourceOptions{Connection: Connection{KeyFile: "k", GRPCEndpoint: "h:1"}}, []string{"KeyFile"}},
		{"SRC-10 a key for a REST emulator", readTable, SourceOptions{Connection: Connection{KeyFile: "k", RESTEndpoint: "h:1"}}, []string{"KeyFile"}},
		{"SRC-10 no port", readTable, SourceOptions{Connection: Connection{GRPCEndpoint: "h:70000"}}, []string{"GRPCEndpoint", "h:70000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewSource(c.from, texts{}, c.o)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, words := range c.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in: %v", words, err)
				}
			}
		})
	}
}

func TestSourceDefaults(t *testing.T) {
	t.Parallel()
	got, err := SourceOptions{}.resolve(readTable)
	if err != nil {
		t.Fatal(err)
	}
	// SRC-8
	if got.RetryMaxAttempts != 25 || got.MaxRecordsPerFetch != 10_000 || got.MaxBytesPerFetch != 8_388_608 || got.FetchQueue != 2 {
		t.Errorf("got %+v", got)
	}
	if got.Parent != "p" || got.CreateSessionTimeout != 10*time.Minute || got.StallTimeout != 0 {
		t.Errorf("got %+v", got)
	}
	limited, err := SourceOptions{Limit: 5, PreferredMinStreamCount: 3}.resolve(readTable)
	if err != nil || limited.MaxStreamCount != 1 || limited.PreferredMinStreamCount != 0 || limited.Limit != 5 {
		t.Errorf("SRC-84: got %+v: %v", limited, err)
	}
}

type selective struct {
	texts
	schema *table.Schema
}

func (s selective) ReaderSchema() *table.Schema { return s.schema }

func TestNewSourceChecksTheDeserializer(t *testing.T) {
	t.Parallel()
	if _, err := NewSource[string](readTable, nil, SourceOptions{FetchQueue: -1}); err == nil ||
		!strings.Contains(err.Error(), "deserializer") || !strings.Contains(err.Error(), "FetchQueue") {
		t.Errorf("got %v", err)
	}
	for name, fields := range map[string][]table.Field{
		"no name":  {{Type: table.String}},
		"no type":  {{Name: "a"}},
		"twice":    {{Name: "a", Type: table.String}, {Name: "A", Type: table.String}},
		"a member": {{Name: "s", Type: table.Struct, Fields: []table.Field{{Name: "a"}}}},
	} {
		if _, err := NewSource(readTable, selective{schema: &table.Schema{Fields: fields}}, SourceOptions{}); err == nil ||
			!strings.Contains(err.Error(), "reader schema") {
			t.Errorf("SRC-9 %s: got %v", name, err)
		}
	}
	for name, s := range map[string]*table.Schema{"none": nil, "no columns": {}} {
		if _, err := NewSource(readTable, selective{schema: s}, SourceOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSourceLineage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from Input
		o    SourceOptions
		want string
	}{{readTable, SourceOptions{}, "p.d.t"}, {readTable, SourceOptions{MaterializeViews: true, QueryResultDataset: "scratch"}, "p.d.t"},
		{FromQuery("bill", "SELECT 1"), SourceOptions{QueryResultDataset: "scratch"}, ""}} {
		s, err := NewSource(c.from, texts{}, c.o)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range s.Lineage() {
			got += d.Name
		}
		if got != c.want || !s.Bounded() {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
