package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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

// SourceOptions are the options of a source. The zero value is the default of each.
type SourceOptions struct {
	// ParentProject owns and pays for the read session. Default: the table's project. With FromQuery it is the project
	// given there.
	ParentProject string
	// QueryLocation is where a query runs, "EU" or "us-east1", say. Default: BigQuery infers it from the tables the query
	// names. With FromQuery only.
	QueryLocation string

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
		SnapshotTime:            o.SnapshotTime,
		SamplePercentage:        o.SamplePercentage,
		MaxStreamCount:          f.streams("MaxStreamCount", o.MaxStreamCount),
		PreferredMinStreamCount: f.streams("PreferredMinStreamCount", o.PreferredMinStreamCount),
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
	if o.QueryLocation != "" {
		f.add("QueryLocation applies to a query only, and a table is read: leave it out")
	}
	if badProject(out.Parent) {
		f.add("ParentProject must be a project id: %q", out.Parent)
	}
}

func (f *sourceFaults) queryInput(q storageread.Query, o *SourceOptions, out *storageread.Config) {
	if badProject(q.Project) {
		f.add("FromQuery needs a billing project, since no table names one: %q", q.Project)
	}
	if strings.TrimSpace(q.SQL) == "" {
		f.add("FromQuery needs a query: it is blank")
	}
	if o.ParentProject != "" && o.ParentProject != q.Project {
		f.add("ParentProject is %q and FromQuery bills %q: leave ParentProject out", o.ParentProject, q.Project)
	}
	if o.QueryLocation != strings.TrimSpace(o.QueryLocation) {
		f.add("QueryLocation must be a place such as EU: %q", o.QueryLocation)
	}
	if !o.SnapshotTime.IsZero() {
		f.add("SnapshotTime applies to a table only, and a query is read, whose result has no earlier version:" +
			" write FOR SYSTEM_TIME AS OF in the query")
	}
	q.Location = o.QueryLocation
	out.Query, out.Parent = &q, q.Project
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
		} else if seen[key] {
			f.add("SelectedFields[%d] names %q again", i, name)
		}
		seen[key] = true
	}
	switch {
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

// limits checks counts against each other. A limit is exact because one stream counts it.
func (f *sourceFaults) limits(o *SourceOptions, out *storageread.Config) {
	if o.MaxStreamCount > 0 && o.PreferredMinStreamCount > o.MaxStreamCount {
		f.add("PreferredMinStreamCount must be <= MaxStreamCount: %d > %d", o.PreferredMinStreamCount, o.MaxStreamCount)
	}
	switch {
	case o.Limit < 0:
		f.add("Limit must be positive: %d", o.Limit)
	case o.Limit > 0 && o.MaxStreamCount > 1:
		f.add("Limit reads through one stream, MaxStreamCount is %d: leave it out", o.MaxStreamCount)
	case o.Limit > 0:
		out.MaxStreamCount, out.PreferredMinStreamCount = 1, 0
	}
}
