package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Input is what a source reads: FromTable or FromQuery.
type Input struct {
	table *table.Destination
	query *storageread.Query
}

// FromTable reads a table as it is at one instant.
func FromTable(t table.Destination) Input { return Input{table: &t} }

// FromQuery runs a GoogleSQL query and reads its result. billingProject runs and pays for the query and for reading its
// result. BigQuery keeps the result for about a day, without charge, in a dataset that only the same identity can read
// (BigQuery documentation, "Using cached query results"); a restart that has no checkpoint runs the query again.
func FromQuery(billingProject, sql string) Input {
	return Input{query: &storageread.Query{Project: billingProject, SQL: sql}}
}

// Table is the table that is read, if it is one.
func (i Input) Table() (t table.Destination, ok bool) {
	if i.table == nil {
		return t, false
	}
	return *i.table, true
}

// Query is the query that is run, if it is one, and the project that pays.
func (i Input) Query() (billingProject, sql string, ok bool) {
	if i.query == nil {
		return "", "", false
	}
	return i.query.Project, i.query.SQL, true
}

// QueryPriority says when a query runs.
type QueryPriority uint8

const (
	QueryInteractive QueryPriority = iota // as soon as it can
	QueryBatch                            // when BigQuery has resources to spare; it may wait for hours
)

// QueryParameter is a value of a query: Name, Type (as GoogleSQL calls it, "INT64"), and Value, the value's text, of which nil
// is NULL. Values instead makes it an array of Type. Either all parameters of a query have names, or none.
type QueryParameter = storageread.QueryParameter

// ArrowCompression is how the buffers of Arrow batches are packed (Arrow's Message.fbs, BodyCompression).
type ArrowCompression = storageread.ArrowCompression

const (
	ArrowUncompressed = storageread.ArrowUncompressed
	ArrowLZ4          = storageread.ArrowLZ4 // frames of LZ4
	ArrowZSTD         = storageread.ArrowZSTD
)

// SourceOptions are the options of a source. The zero value is the default of each.
type SourceOptions struct {
	// ParentProject owns and pays for the read session. Default: the table's project. With FromQuery it is the project
	// given there.
	ParentProject string
	// MaterializeViews reads a view, logical or materialized, by running a query that selects SelectedFields of it. A table is
	// read as it is. It takes one call to find out which. With FromTable only.
	MaterializeViews bool

	// QueryLocation is where a query runs, "EU" or "us-east1", say. Default: BigQuery infers it from the tables the query
	// names. This and the options of queries below are for FromQuery and MaterializeViews only.
	QueryLocation string
	// QueryResultDataset is where a query leaves its result, in a table named like the query job; it must exist, in the query's
	// location. Default: BigQuery's anonymous dataset, see FromQuery.
	QueryResultDataset string
	// QueryResultProject is the project of QueryResultDataset. Default: the project that pays.
	QueryResultProject string
	// QueryResultExpiration is how long a result is kept in QueryResultDataset. Default 24 h; at least 6 h, for so long a session
	// may read from it.
	QueryResultExpiration time.Duration
	// ReuseQueryResultWithin lets attempts of a job share one run of a query: attempts of one job name, with the same query and
	// options, that begin within this time. A job that is started over on purpose within it reads the old result too; another
	// name makes it run anew. It needs QueryLocation. Default: off; at most 24 h and QueryResultExpiration, at least 1 ms.
	ReuseQueryResultWithin time.Duration
	// QueryPriority is when a query runs. Default: QueryInteractive.
	QueryPriority QueryPriority
	// QueryParameters are the values of @names, or of each ? in turn, in a query. With FromQuery only.
	QueryParameters []QueryParameter

	// SelectedFields are the columns to read; dotted paths select members of STRUCTs. Only they are billed. Rows keep the
	// order of the table. Default: all.
	SelectedFields []string
	// ReaderSchema is an Avro schema that rows are read with, instead of the session's: rows hold the fields of that record, in its
	// order, found by name or alias, converted to its types where Avro allows; fields that the table lacks are their defaults. What can
	// never fit fails the plan, with D-SCHEMA; a NULL that its type does not allow fails the read, with D-NULL. ReadArrow refuses it.
	// Default: rows are as the session has them.
	ReaderSchema string
	// RowRestriction is the body of a WHERE clause, at most 1,000,000 bytes (stream.proto,
	// ReadSession.TableReadOptions.row_restriction). It cuts what is transferred; what is billed, only on partitioning
	// and clustering columns. Default: every row.
	RowRestriction string
	// Partitions are those of the table's partitions that are read, called as ListPartitions calls them. It takes one call to find
	// out how the table is partitioned. With FromTable only. Default: all.
	Partitions []string
	// SnapshotTime reads the table as it was then, within its time travel window of up to 7 days. Default: as it is when
	// the session is created. With FromTable only; in a query, write FOR SYSTEM_TIME AS OF.
	SnapshotTime time.Time
	// SamplePercentage reads about that share of the table's blocks, chosen anew for each session: above 0, at most 100.
	// Default: every block.
	SamplePercentage float64
	// Limit reads that many rows in all and no more, also across restarts, through a single stream. Which rows is
	// BigQuery's choice. Default: every row.
	Limit int64

	// MaxStreamCount caps how many streams, and so how many lanes at once, read the table. Default: BigQuery decides, at
	// most 1,000 (storage.proto, CreateReadSessionRequest.max_stream_count).
	MaxStreamCount int
	// PreferredMinStreamCount asks for at least that many streams, without a promise. Default: no request. At most
	// MaxStreamCount where both are set.
	PreferredMinStreamCount int
	// StreamsPerLane asks for so many streams for each lane, without a promise. Default: no request. It cannot be combined with
	// MaxStreamCount, PreferredMinStreamCount or Limit.
	StreamsPerLane int
	// CompressResponses has rows travel compressed, with LZ4: fewer bytes for more work on both sides. Default: as they are.
	CompressResponses bool
	// ArrowCompression has the buffers of Arrow batches packed by the service: fewer bytes for more work on both sides. It stays with
	// the batches, so that files that they are written to are smaller too. For NewArrowSource and ReadArrow only, and not together
	// with CompressResponses. Default: as they are.
	ArrowCompression ArrowCompression
	// TraceID marks the session for BigQuery's support, at most 256 bytes. Default: the job's name.
	TraceID string
	// CreateSessionTimeout bounds how long creating the session is tried. Default 10 min; at least 1 s. Raise it for very
	// large tables.
	CreateSessionTimeout time.Duration

	// MaxRecordsPerFetch is how many rows one fetch hands over. Default 10,000.
	MaxRecordsPerFetch int
	// MaxBytesPerFetch is how many serialized bytes of rows one fetch hands over; a larger row comes alone. Default
	// 8,388,608.
	MaxBytesPerFetch int
	// FetchQueue is how many fetches' bytes are received ahead of a lane. Default 2. A lane holds up to FetchQueue ×
	// MaxBytesPerFetch, one response of the service more, and the one it is decoding; responses have 128 MiB at most and
	// some MiB in practice.
	FetchQueue int

	// RetryMaxAttempts is how many calls in a row may give no row before a read fails. Default 25, which takes 181 s at
	// most while the service is unavailable.
	RetryMaxAttempts int
	// StallTimeout ends a call that has been silent for so long, and opens it again; that counts as an attempt. Off by
	// default; at least 1 s.
	StallTimeout time.Duration

	// Connection is which service to read from, and as whom. The default is the real one, with application default
	// credentials.
	Connection Connection
}

// maxRestriction is in bytes: "1 MB" (stream.proto, ReadSession.TableReadOptions.row_restriction).
const maxRestriction = 1_000_000

// resolve reports every fault at once.
func (o SourceOptions) resolve(from Input) (storageread.Config, error) {
	var f sourceFaults
	out := storageread.Config{
		Parent:                  o.ParentProject,
		SelectedFields:          o.SelectedFields,
		RowRestriction:          o.RowRestriction,
		Partitions:              o.Partitions,
		SnapshotTime:            o.SnapshotTime,
		SamplePercentage:        o.SamplePercentage,
		MaxStreamCount:          f.streams("MaxStreamCount", o.MaxStreamCount),
		PreferredMinStreamCount: f.streams("PreferredMinStreamCount", o.PreferredMinStreamCount),
		StreamsPerLane:          f.streams("StreamsPerLane", o.StreamsPerLane),
		Compressed:              o.CompressResponses,
		ArrowCompression:        o.ArrowCompression,
		TraceID:                 o.TraceID,
		CreateSessionTimeout:    f.seconds("CreateSessionTimeout", o.CreateSessionTimeout, 10*time.Minute),
		MaxRecordsPerFetch:      f.count("MaxRecordsPerFetch", o.MaxRecordsPerFetch, 10_000),
		MaxBytesPerFetch:        f.count("MaxBytesPerFetch", o.MaxBytesPerFetch, 8<<20),
		FetchQueue:              f.count("FetchQueue", o.FetchQueue, 2),
		RetryMaxAttempts:        f.count("RetryMaxAttempts", o.RetryMaxAttempts, 25),
		StallTimeout:            f.seconds("StallTimeout", o.StallTimeout, 0),
		Limit:                   o.Limit,
		Connection:              o.Connection,
	}
	if o.ReaderSchema != "" {
		var err error
		out.ReaderSchema, err = storageread.ParseReaderSchema(o.ReaderSchema)
		f.all = append(f.all, err)
	}
	f.input(from, &o, &out)
	f.selection(&o)
	f.limits(&o, &out)
	f.compression(&o)
	f.all = append(f.all, o.Connection.Validate())
	return out, errors.Join(f.all...)
}

type sourceFaults struct{ all []error }

func (f *sourceFaults) add(format string, args ...any) {
	f.all = append(f.all, fmt.Errorf(format, args...))
}

func (f *sourceFaults) count(name string, v, standard int) int {
	if v < 0 {
		f.add("%s must be positive: %d", name, v)
	}
	return cmp.Or(v, standard)
}

// text refuses what would arrive as another text.
func (f *sourceFaults) text(name, s string) {
	if !utf8.ValidString(s) {
		f.add("%s must be UTF-8: %q", name, s)
	}
}

func (f *sourceFaults) streams(name string, v int) int {
	if v < 0 || v > math.MaxInt32 {
		f.add("%s must be 0, to let BigQuery decide, or a number of streams: %d", name, v)
	}
	return v
}

func (f *sourceFaults) seconds(name string, v, standard time.Duration) time.Duration {
	if v != 0 && v < time.Second {
		f.add("%s must be at least 1s: %v", name, v)
	}
	return cmp.Or(v, standard)
}

// input checks what is read, and the options that go with one kind of input only.
func (f *sourceFaults) input(from Input, o *SourceOptions, out *storageread.Config) {
	switch {
	case from.table != nil:
		f.tableInput(*from.table, o, out)
	case from.query != nil:
		f.queryInput(*from.query, o, out)
	default:
		f.add("there is nothing to read: give bigquery.FromTable or bigquery.FromQuery")
	}
}

func (f *sourceFaults) tableInput(t table.Destination, o *SourceOptions, out *storageread.Config) {
	f.all = append(f.all, t.Validate())
	out.Table, out.Parent = t, cmp.Or(o.ParentProject, t.Project)
	if badProject(out.Parent) {
		f.add("ParentProject must be a project id: %q", out.Parent)
	}
	if len(o.QueryParameters) > 0 {
		f.add("QueryParameters apply to a query only, and a table is read: leave them out")
	}
	if o.MaterializeViews {
		if strings.Contains(t.Table, "$") {
			f.add("MaterializeViews is for views, and %s names a partition: leave one out", t)
		}
		f.noSnapshot(o, "a view is read, whose result")
		if o.Partitions != nil {
			f.add("Partitions applies to a table only, and MaterializeViews reads views, which have none: leave one out")
		}
		out.Views = f.query(storageread.Query{Project: out.Parent}, o)
		return
	}
	for _, of := range []given{
		{"QueryLocation", o.QueryLocation != ""}, {"QueryResultDataset", o.QueryResultDataset != ""}, {"QueryResultProject", o.QueryResultProject != ""},
		{"QueryResultExpiration", o.QueryResultExpiration != 0}, {"ReuseQueryResultWithin", o.ReuseQueryResultWithin != 0},
		{"QueryPriority", o.QueryPriority != QueryInteractive},
	} {
		if of.set {
			f.add("%s applies to a query or view only, and a table is read: leave it out, or set MaterializeViews", of.name)
		}
	}
}

// given is an option and whether it is set.
type given struct {
	name string
	set  bool
}

func (f *sourceFaults) noSnapshot(o *SourceOptions, what string) {
	if !o.SnapshotTime.IsZero() {
		f.add("SnapshotTime applies to a table only, and %s has no earlier version:"+
			" write FOR SYSTEM_TIME AS OF in the query", what)
	}
}

func (f *sourceFaults) queryInput(q storageread.Query, o *SourceOptions, out *storageread.Config) {
	if badProject(q.Project) {
		f.add("FromQuery needs a billing project, since no table names one: %q", q.Project)
	}
	if strings.TrimSpace(q.SQL) == "" {
		f.add("FromQuery needs a query: it is blank")
	}
	f.text("the query", q.SQL)
	if o.ParentProject != "" && o.ParentProject != q.Project {
		f.add("ParentProject is %q and FromQuery bills %q: leave ParentProject out", o.ParentProject, q.Project)
	}
	if o.MaterializeViews {
		f.add("MaterializeViews applies to a table only, and a query is read, which may name views: leave it out")
	}
	f.noSnapshot(o, "a query is read, whose result")
	if o.Partitions != nil {
		f.add("Partitions applies to a table only, and a query is read: leave it out")
	}
	f.parameters(o.QueryParameters)
	q.Parameters = o.QueryParameters
	out.Query, out.Parent = f.query(q, o), q.Project
}

// query checks how a query runs and where its result goes.
func (f *sourceFaults) query(q storageread.Query, o *SourceOptions) *storageread.Query {
	if strings.ContainsFunc(o.QueryLocation, func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') }) {
		f.add("QueryLocation must be a place such as EU: %q", o.QueryLocation)
	}
	switch o.QueryPriority {
	case QueryInteractive, QueryBatch:
	default:
		f.add("QueryPriority must be QueryInteractive or QueryBatch: %d", o.QueryPriority)
	}
	q.Location, q.Batch, q.ReuseWithin = o.QueryLocation, o.QueryPriority == QueryBatch, o.ReuseQueryResultWithin
	q.Landing = f.landing(q.Project, o)
	f.reuse(o)
	return &q
}

func (f *sourceFaults) landing(pays string, o *SourceOptions) storageread.Landing {
	if o.QueryResultDataset == "" {
		for _, of := range []given{{"QueryResultProject", o.QueryResultProject != ""}, {"QueryResultExpiration", o.QueryResultExpiration != 0}} {
			if of.set {
				f.add("%s needs QueryResultDataset, which says where the result goes", of.name)
			}
		}
		return storageread.Landing{}
	}
	l := storageread.Landing{Project: cmp.Or(o.QueryResultProject, pays), Dataset: o.QueryResultDataset,
		Expiration: cmp.Or(o.QueryResultExpiration, storageread.DefaultExpiration)}
	if err := (table.Destination{Project: l.Project, Dataset: l.Dataset, Table: "t"}).Validate(); err != nil {
		f.add("QueryResultDataset %q of project %q cannot be one: %w", l.Dataset, l.Project, err)
	}
	if l.Expiration < minExpiration {
		f.add("QueryResultExpiration must be at least %v, because a session reads from the result for so long: %v", minExpiration, o.QueryResultExpiration)
	}
	return l
}

// minExpiration is the life of a session (measured 2026-08).
const minExpiration = 6 * time.Hour

const maxReuse = 24 * time.Hour

func (f *sourceFaults) reuse(o *SourceOptions) {
	within := o.ReuseQueryResultWithin
	switch {
	case within == 0:
		return
	case within < time.Millisecond || within > maxReuse:
		f.add("ReuseQueryResultWithin must be positive and at most %v: %v", maxReuse, within)
	case o.QueryResultDataset != "" && within > cmp.Or(o.QueryResultExpiration, storageread.DefaultExpiration):
		f.add("ReuseQueryResultWithin is %v, and QueryResultExpiration deletes the result after %v: make it at least as long", within, o.QueryResultExpiration)
	}
	if o.QueryLocation == "" {
		f.add("ReuseQueryResultWithin needs QueryLocation: a lookup without a location only sees the US and EU multi-regions")
	}
}

// parameterTypes are the types of values that text can give.
var parameterTypes = map[string]bool{"BOOL": true, "INT64": true, "FLOAT64": true, "NUMERIC": true, "BIGNUMERIC": true, "STRING": true, "BYTES": true,
	"DATE": true, "TIME": true, "DATETIME": true, "TIMESTAMP": true, "INTERVAL": true, "GEOGRAPHY": true, "JSON": true}

func (f *sourceFaults) parameters(all []QueryParameter) {
	seen := map[string]bool{}
	for i, p := range all {
		key := strings.ToLower(p.Name)
		switch {
		case (p.Name == "") != (all[0].Name == ""):
			f.add("QueryParameters[%d]: either all parameters have names or none", i)
		case p.Name != "" && seen[key]:
			f.add("QueryParameters[%d] names %q again", i, p.Name)
		case !parameterTypes[strings.ToUpper(p.Type)]:
			f.add("QueryParameters[%d].Type must be a type of GoogleSQL such as INT64: %q", i, p.Type)
		case p.Value != nil && p.Values != nil:
			f.add("QueryParameters[%d] has Value and Values: leave one out", i)
		}
		seen[key] = true
	}
}

// badProject reports whether s would change the meaning of a resource name.
func badProject(s string) bool {
	return s == "" || strings.ContainsAny(s, "/ \t\r\n")
}

// selection checks what is read of the input.
func (f *sourceFaults) selection(o *SourceOptions) {
	seen := map[string]bool{}
	for i, name := range o.SelectedFields {
		key := strings.ToLower(name)
		if strings.TrimSpace(name) == "" {
			f.add("SelectedFields[%d] must not be blank", i)
		} else if slices.Contains(strings.Split(name, "."), "") {
			f.add("SelectedFields[%d] has a dot without a name on both sides: %q", i, name)
		} else if seen[key] {
			f.add("SelectedFields[%d] names %q again", i, name)
		}
		seen[key] = true
		f.text(fmt.Sprintf("SelectedFields[%d]", i), name)
	}
	f.text("RowRestriction", o.RowRestriction)
	switch {
	case o.Partitions != nil && len(o.Partitions) == 0:
		f.add("Partitions is empty, which reads nothing: name some, or leave it out")
	case o.RowRestriction != "" && strings.TrimSpace(o.RowRestriction) == "":
		f.add("RowRestriction must not be blank: leave it empty to read every row")
	case len(o.RowRestriction) > maxRestriction:
		f.add("RowRestriction has %d bytes: expected at most %d", len(o.RowRestriction), maxRestriction)
	}
	if p := o.SamplePercentage; !(p >= 0 && p <= 100) {
		f.add("SamplePercentage must be above 0 and at most 100: %v", p)
	}
	if len(o.TraceID) > storageread.MaxTraceID || !utf8.ValidString(o.TraceID) {
		f.add("TraceID must be valid UTF-8 of at most %d bytes: it has %d", storageread.MaxTraceID, len(o.TraceID))
	}
}

// compression checks that batches are packed once, and in a way that there is.
func (f *sourceFaults) compression(o *SourceOptions) {
	switch {
	case o.ArrowCompression > ArrowZSTD:
		f.add("ArrowCompression must be ArrowUncompressed, ArrowLZ4 or ArrowZSTD: %d", o.ArrowCompression)
	case o.ArrowCompression != ArrowUncompressed && o.CompressResponses:
		f.add("ArrowCompression packs batches, and CompressResponses would once more, which the service refuses: leave one out")
	}
}

// errArrowCompression is for readers of rows.
var errArrowCompression = errors.New("ArrowCompression applies to batches of Arrow only, and rows are read in Avro: leave it out, or see CompressResponses")

// limits checks counts against each other. A limit is exact because one stream counts it.
func (f *sourceFaults) limits(o *SourceOptions, out *storageread.Config) {
	if o.MaxStreamCount > 0 && o.PreferredMinStreamCount > o.MaxStreamCount {
		f.add("PreferredMinStreamCount must be <= MaxStreamCount: %d > %d", o.PreferredMinStreamCount, o.MaxStreamCount)
	}
	if o.StreamsPerLane > 0 && (o.MaxStreamCount > 0 || o.PreferredMinStreamCount > 0) {
		f.add("StreamsPerLane says how many streams to ask for, and so does MaxStreamCount or PreferredMinStreamCount: leave one out")
	}
	switch {
	case o.Limit > 0 && o.StreamsPerLane > 0:
		f.add("Limit reads through one stream, and StreamsPerLane asks for more: leave one out")
	case o.Limit < 0:
		f.add("Limit must be positive: %d", o.Limit)
	case o.Limit > 0 && o.MaxStreamCount > 1:
		f.add("Limit reads through one stream, MaxStreamCount is %d: leave it out", o.MaxStreamCount)
	case o.Limit > 0:
		out.MaxStreamCount, out.PreferredMinStreamCount = 1, 0
	}
}
