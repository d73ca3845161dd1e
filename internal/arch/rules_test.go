package arch

// rule says what one room may import beside the standard library. A room is a package or, with a name ending in "/...",
// a package with everything below it; the most specific room counts. A room may always import what lies in the same
// room.
type rule struct {
	room string
	why  string
	// ours lists rooms of this module it may import, theirs the import path prefixes of other modules.
	ours, theirs []string
	// testOurs and testTheirs may be imported by its tests as well.
	testOurs, testTheirs []string
}

const module = "github.com/millrace-dev/millrace"

// Everybody's tests may use these.
var testTheirs = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "golang.org/x/sync"}

var (
	protobuf = []string{"google.golang.org/protobuf"}
	grpc     = []string{"google.golang.org/grpc", "google.golang.org/genproto", "github.com/googleapis/gax-go/v2"}
	google   = append([]string{"cloud.google.com/go", "google.golang.org/api"}, append(grpc, protobuf...)...)
	arrow    = []string{"github.com/apache/arrow-go/v18"}
	jsontext = []string{"github.com/go-json-experiment/json"}
	formats  = []string{"github.com/twmb/avro", "github.com/parquet-go/parquet-go"}
	codecs   = []string{"github.com/klauspost/compress", "github.com/pierrec/lz4/v4"}
)

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// rules go from the leaves to the top.
var rules = []rule{
	{room: "", why: "a map of the packages, no code"},

	{room: "stream", why: "contracts know neither an engine nor a connector"},
	{room: "stream/streamtest/...", why: "the suite of the contracts", ours: []string{"stream"}, theirs: []string{"go.uber.org/goleak"},
		testOurs: []string{"engine"}},
	{room: "engine", why: "an engine knows the contracts only", ours: []string{"stream"}, theirs: []string{"gocloud.dev"},
		testOurs: []string{"engine/enginetest/...", "stream/streamtest/..."}},
	{room: "engine/enginetest/...", why: "suites of the engine", ours: []string{"engine", "stream"},
		theirs: []string{"gocloud.dev", "go.uber.org/goleak"}, testOurs: []string{"stream/streamtest/..."}},

	{room: "internal/retry", why: "backoff schedules: a leaf"},
	{room: "internal/nearest", why: "mistyped names: a leaf"},
	{room: "internal/gcp", why: "the one place that dials and authenticates", theirs: join(google, []string{"golang.org/x/oauth2"})},
	{room: "internal/avro", why: "Avro's schemas and encoding, for all that read it: a leaf",
		testTheirs: []string{"github.com/twmb/avro"}},
	{room: "internal/avro/ocf", why: "Avro's container files, for all that read them", ours: []string{"internal/avro"},
		theirs: join(codecs, []string{"github.com/ulikunitz/xz"}), testTheirs: []string{"github.com/twmb/avro"}},
	{room: "internal/arch", why: "this test"},

	{room: "bigquery/table", why: "values: a leaf"},
	{room: "bigquery/restriction", why: "conditions as restrictions of a read: values", ours: []string{"bigquery/table"}},
	{room: "bigquery/row", why: "one row on the wire", ours: []string{"bigquery/table"}, theirs: protobuf,
		testOurs: []string{"bigquery/row/rowtest"}},
	{room: "bigquery/row/rowtest", why: "the suite of row formats", ours: []string{"bigquery/row", "bigquery/table"}, theirs: join(protobuf, []string{"pgregory.net/rapid"})},
	{room: "bigquery/row/rowtest/stored", why: "what a BigQuery stores of rows: joins the ways in and out for tests of formats",
		ours: []string{"bigquery", "bigquery/table", "bigquery/row", "bigquery/row/rowtest", "bigquery/row/arrowrow", "bigquery/internal/staging/...",
			"bigquery/internal/tableadmin", "localbq", "stream"}, theirs: join(google, arrow),
		testOurs: []string{"bigquery/internal/storageread", "bigquery/row/avrorow"}},
	{room: "bigquery/row/internal/mark", why: "what options mark, the same for every format", ours: []string{"bigquery/row", "bigquery/table"}},
	{room: "bigquery/row/jsonrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/table"},
		theirs: join(protobuf, jsontext), testOurs: []string{"bigquery/row/rowtest/..."}},
	{room: "bigquery/row/sqlrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/row/internal/mark", "bigquery/table"},
		theirs: join(protobuf, jsontext), testOurs: []string{"bigquery/row/rowtest/..."}},
	{room: "bigquery/row/protorow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/row/internal/mark", "bigquery/table", "internal/nearest"},
		theirs: protobuf, testTheirs: []string{"github.com/bufbuild/protocompile"},
		testOurs: []string{"bigquery/row/rowtest/...", "bigquery/row/protorow/internal/testpb"}},
	{room: "bigquery/row/protorow/internal/testpb", why: "generated code for tests", theirs: protobuf},
	{room: "bigquery/row/internal/gotime", why: "Go's dates and times as columns hold them: below the formats", ours: []string{"bigquery/row"},
		theirs: []string{"cloud.google.com/go/civil"}},
	{room: "bigquery/row/added", why: "columns added to the rows of any format", ours: []string{"bigquery/row", "bigquery/table", "bigquery/row/internal/gotime"},
		theirs: []string{"google.golang.org/protobuf", "cloud.google.com/go/civil"}, testOurs: []string{"bigquery", "bigquery/row/jsonrow", "bigquery/row/rowtest/...", "bigquery/row/structrow", "localbq/...", "stream"}},
	{room: "bigquery/row/arrowrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/table", "bigquery/row/internal/mark"},
		theirs: join(protobuf, arrow), testOurs: []string{"bigquery", "bigquery/row/jsonrow", "bigquery/row/rowtest/...", "localbq/...", "stream"}, testTheirs: google},
	{room: "bigquery/row/copyrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/table"},
		theirs: protobuf, testOurs: []string{"bigquery/row/rowtest"}},
	{room: "bigquery/row/csvrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/table"},
		theirs: protobuf, testOurs: []string{"bigquery/row/rowtest/..."}},
	{room: "bigquery/row/structrow", why: "formats never know each other", ours: []string{"bigquery/row", "bigquery/table", "bigquery/row/internal/gotime"},
		theirs: []string{"google.golang.org/protobuf", "cloud.google.com/go/civil"}, testOurs: []string{"bigquery/row/rowtest/..."}},

	{room: "bigquery/row/avrorow/registry", why: "a schema registry over HTTP, apart from the rows",
		ours: []string{"bigquery/row", "bigquery/row/avrorow", "internal/retry"}, testOurs: []string{"bigquery/table"}},
	{room: "bigquery/row/avrorow", why: "formats never know each other",
		ours:   []string{"bigquery/row", "bigquery/row/internal/mark", "bigquery/row/internal/gotime", "bigquery/table", "internal/avro"},
		theirs: []string{"google.golang.org/protobuf", "cloud.google.com/go/civil"}, testOurs: []string{"bigquery/row/rowtest/...", "bigquery/row/jsonrow", "bigquery/internal/staging", "files"},
		testTheirs: []string{"github.com/twmb/avro"}},

	{room: "bigquery/schema/avroschema", why: "schemas in another form: each apart, for what it links", ours: []string{"bigquery/table", "bigquery/row", "bigquery/row/avrorow"},
		testOurs: []string{"bigquery/row/rowtest"}, testTheirs: []string{"github.com/twmb/avro"}},
	{room: "bigquery/schema/arrowschema", why: "schemas in another form: each apart, for what it links", ours: []string{"bigquery/table", "bigquery/row", "bigquery/row/arrowrow"},
		theirs: arrow, testOurs: []string{"bigquery/row/rowtest"}},
	{room: "bigquery/schema/parquetschema", why: "schemas in another form: each apart, for what it links", ours: []string{"bigquery/table", "bigquery/row"},
		theirs: []string{"github.com/parquet-go/parquet-go"}, testOurs: []string{"bigquery/row/rowtest"}},
	{room: "bigquery/schema/protoschema", why: "schemas in another form: each apart, for what it links", ours: []string{"bigquery/table", "bigquery/row", "bigquery/row/protorow"},
		theirs: protobuf, testOurs: []string{"bigquery/row/rowtest"}},
	{room: "bigquery/schema/goschema", why: "schemas in another form: each apart, for what it links", ours: []string{"bigquery/table", "bigquery/row"},
		testOurs: []string{"bigquery/row/rowtest"}},

	{room: "bigquery/schema/schemafile", why: "files of schemas in every form", ours: []string{"bigquery/table", "bigquery/schema/..."},
		theirs: join(protobuf, arrow, []string{"github.com/parquet-go/parquet-go"}), testOurs: []string{"bigquery/row/rowtest"}},

	{room: "bigquery/internal/restcall", why: "calls over REST that fail in passing: below whoever makes them", ours: []string{"internal/retry"}, theirs: google},
	{room: "bigquery/internal/tableadmin", why: "tables over REST", ours: []string{"bigquery/table", "bigquery/internal/restcall", "internal/retry", "internal/gcp"},
		theirs: google, testOurs: []string{"localbq/..."}},
	{room: "bigquery/internal/outcome", why: "what becomes of records: below every method of writing", ours: []string{"stream", "bigquery/table"}},
	{room: "bigquery/internal/objects", why: "staged files on Cloud Storage", ours: []string{"internal/gcp"}, theirs: google, testOurs: []string{"localbq/..."}},
	{room: "bigquery/internal/storagewrite", why: "row bytes to streams; no record type",
		ours:   []string{"stream", "bigquery/table", "bigquery/row", "bigquery/restriction", "bigquery/internal/outcome", "bigquery/internal/tableadmin", "internal/retry", "internal/gcp"},
		theirs: google, testOurs: []string{"localbq/...", "stream/streamtest/..."}, testTheirs: []string{"golang.org/x/net/http2"}},
	{room: "bigquery/internal/storageread", why: "read streams to rows",
		ours:   []string{"stream", "bigquery/table", "bigquery/row", "bigquery/restriction", "bigquery/internal/restcall", "internal/avro", "internal/retry", "internal/gcp"},
		theirs: join(google, codecs), testOurs: []string{"localbq/...", "stream/streamtest/..."}},
	{room: "bigquery/internal/loadplan", why: "which load jobs a commit takes: no job is run, no clock known", ours: []string{"bigquery/table"}},
	{room: "bigquery/internal/staging", why: "row bytes to the files of load jobs", ours: []string{"bigquery/table", "bigquery/row", "bigquery/internal/loadplan"},
		theirs: join(protobuf, codecs), testOurs: []string{"bigquery/row/rowtest"}, testTheirs: []string{"github.com/twmb/avro"}},
	{room: "bigquery/internal/staging/parquetfile", why: "apart, so that who stages Avro does not link the Parquet library",
		ours: []string{"bigquery/table", "bigquery/row", "bigquery/internal/staging", "bigquery/schema/parquetschema"}, theirs: []string{"github.com/parquet-go/parquet-go"},
		testOurs:   []string{"bigquery/row/rowtest/...", "bigquery/row/jsonrow"},
		testTheirs: join(arrow, []string{"github.com/duckdb/duckdb-go/v2"})},
	{room: "bigquery/internal/fileload", why: "row bytes to files, and files to tables by load jobs; no record type",
		ours: []string{"stream", "bigquery/table", "bigquery/row", "bigquery/restriction", "bigquery/internal/outcome", "bigquery/internal/tableadmin", "bigquery/internal/loadplan",
			"bigquery/internal/staging", "bigquery/internal/objects", "bigquery/internal/restcall", "internal/retry", "internal/gcp"},
		theirs: google, testOurs: []string{"localbq/...", "bigquery/internal/staging/parquetfile", "bigquery/row/rowtest/...", "bigquery/row/jsonrow", "stream/streamtest/..."}, testTheirs: arrow},
	{room: "bigquery", why: "the face: options, errors, the generic part; no engine", ours: []string{"stream", "bigquery/table",
		"bigquery/row", "bigquery/restriction", "bigquery/internal/outcome", "bigquery/internal/tableadmin", "bigquery/internal/storagewrite", "bigquery/internal/storageread",
		"bigquery/internal/fileload", "bigquery/internal/loadplan", "bigquery/internal/staging", "internal/retry", "internal/gcp"},
		testOurs:   []string{"localbq/...", "stream/streamtest/...", "bigquery/row/added", "bigquery/row/jsonrow", "bigquery/row/structrow", "bigquery/row/avrorow", "bigquery/internal/staging/parquetfile", "engine", "files"},
		testTheirs: google},

	{room: "bigquery/export", why: "what is read to files, resumably; apart from the face, which links no Arrow",
		ours:   []string{"bigquery", "bigquery/table", "bigquery/row", "bigquery/row/jsonrow", "internal/gcp"},
		theirs: join(arrow, google, codecs, []string{"golang.org/x/sys"}), testOurs: []string{"localbq/...", "stream", "internal/avro/ocf"}, testTheirs: google},
	{room: "bigquery/parquetstaging", why: "apart, so that who stages no Parquet does not link its library", ours: []string{"bigquery", "bigquery/internal/staging/parquetfile"}},

	{room: "files/parquetfile", why: "Parquet files, apart because of what it takes to read them", ours: []string{"files", "bigquery/row/arrowrow"},
		theirs: arrow, testOurs: []string{"stream", "bigquery/table"}},
	{room: "files", why: "records from files; no other connector", ours: []string{"stream", "internal/avro/..."},
		theirs: codecs, testOurs: []string{"stream/streamtest/..."}, testTheirs: []string{"github.com/twmb/avro", "google.golang.org/protobuf"}},

	{room: "deadletter", why: "what a dead letter is, whatever queue it is in", ours: []string{"stream"}},
	{room: "deadletter/filequeue", why: "dead letters in files, and the records in them", ours: []string{"stream", "deadletter", "files"},
		testOurs: []string{"stream/streamtest/..."}},
	{room: "deadletter/pubsubqueue", why: "dead letters in a topic, alone because it links the client of Pub/Sub", ours: []string{"stream", "deadletter", "internal/gcp"}, theirs: google},
	{room: "deadletter/tablequeue", why: "dead letters in a table, written by the connector", ours: []string{"stream", "deadletter", "bigquery", "bigquery/table", "bigquery/row/structrow"},
		testOurs: []string{"localbq/..."}},

	{room: "localbq/duckdb/...", why: "the query engine, alone because it links a large C++ library", ours: []string{"localbq/internal/..."},
		theirs:   join([]string{"github.com/duckdb/duckdb-go/v2", "github.com/duckdb/duckdb-go-bindings"}, jsontext, arrow),
		testOurs: []string{"localbq"}, testTheirs: google},
	{room: "localbq/...", why: "shares no code with the connector, so that a mistake cannot cancel itself out",
		theirs:     join(google, arrow, codecs, jsontext, []string{"github.com/cespare/xxhash/v2", "github.com/ulikunitz/xz", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/sync"}, formats),
		testTheirs: []string{"github.com/twmb/avro"}},

	{room: "lineage", why: "events of OpenLineage, to a file or a server; knows no connector", ours: []string{"stream", "internal/retry"}},
	{room: "job", why: "job files: joins connectors and engine", ours: []string{"stream", "engine", "lineage", "files", "files/parquetfile", "bigquery", "bigquery/parquetstaging", "deadletter/...",
		"bigquery/table", "bigquery/row", "bigquery/row/arrowrow", "bigquery/row/avrorow", "bigquery/row/copyrow", "bigquery/row/csvrow", "bigquery/row/jsonrow", "bigquery/row/protorow",
		"bigquery/schema/schemafile", "internal/nearest"},
		theirs:   join(protobuf, []string{"github.com/goccy/go-yaml"}),
		testOurs: []string{"localbq/...", "bigquery/row/rowtest/..."}, testTheirs: google},
	{room: "job/plan", why: "what a job would do, for every door", ours: []string{"job", "lineage", "bigquery", "bigquery/table"}},
	{room: "job/doctor", why: "what stands between a job and success, for every door", ours: []string{"job", "job/plan", "bigquery", "bigquery/table", "engine"},
		testOurs: []string{"localbq/..."}, testTheirs: google},
	{room: "internal/telemetry", why: "meters for a metrics system", ours: []string{"stream"},
		theirs: []string{"go.opentelemetry.io/otel", "github.com/prometheus/client_golang"}},
	{room: "internal/e2e", why: "tests that join rooms, and kill what they have joined", testOurs: []string{"bigquery", "bigquery/row", "bigquery/table", "engine",
		"localbq", "localbq/killtest", "stream", "stream/streamtest"}, testTheirs: join(arrow, google)},
	{room: "cmd/millrace", why: "the command: joins everything by hand", ours: []string{"stream", "engine", "files", "job", "job/plan", "job/doctor", "bigquery", "deadletter/...",
		"bigquery/export", "bigquery/table", "bigquery/row", "bigquery/row/jsonrow", "bigquery/schema/schemafile", "localbq", "localbq/duckdb", "localbq/killtest", "internal/gcp", "internal/telemetry"},
		theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "gocloud.dev"}, testOurs: []string{"lineage", "bigquery/row/arrowrow"}, testTheirs: join(google, arrow, protobuf, []string{"github.com/rogpeppe/go-internal", "github.com/bufbuild/protocompile"})},
	{room: "examples/...", why: "whole programs, as a user would write them", ours: []string{"..."}, theirs: google},
}
