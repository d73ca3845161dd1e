package bigquery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bqrest "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// local is a local BigQuery with a dataset d in the project p.
type local struct {
	*localbq.Instance
	connection Connection
}

func startLocal(t testing.TB, c localbq.Config) *local {
	t.Helper()
	c.Project = "p"
	i, err := localbq.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := i.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	return &local{i, Connection{GRPCEndpoint: i.GRPC(), RESTEndpoint: i.REST()}}
}

// write puts documents into the table p.d.t, which it creates.
func (l *local) write(t testing.TB, s *table.Schema, docs ...string) {
	t.Helper()
	rows, err := jsonrow.New(func(doc string) []byte { return []byte(doc) }, jsonrow.Fixed(s), jsonrow.Options{JSONColumns: jsonrow.Values})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := NewSink(To[string](*readTable.table), rows, SinkOptions{Connection: l.connection})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if err := w.Write(t.Context(), &stream.Record[string]{Value: doc}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// source reads the table as JSON documents.
func (l *local) source(t testing.TB, o SourceOptions) *Source[string] {
	t.Helper()
	o.Connection = l.connection
	src, err := NewSource(readTable, jsonrow.NewDeserializer(func(doc []byte) string { return string(doc) }, jsonrow.WriteOptions{}), o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// read reads all of it, in the order of the text.
func read(t testing.TB, src *Source[string]) (docs []string) {
	t.Helper()
	for doc, err := range src.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	slices.Sort(docs)
	return docs
}

var everyColumn = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "b", Type: table.Bool},
	{Name: "f", Type: table.Float64},
	{Name: "s", Type: table.String},
	{Name: "y", Type: table.Bytes},
	{Name: "n", Type: table.Numeric},
	{Name: "bn", Type: table.BigNumeric},
	{Name: "n2", Type: table.Numeric, Precision: 10, Scale: 2},
	{Name: "bn2", Type: table.BigNumeric, Precision: 40, Scale: 2},
	{Name: "da", Type: table.Date},
	{Name: "ti", Type: table.Time},
	{Name: "dt", Type: table.DateTime},
	{Name: "ts", Type: table.Timestamp},
	{Name: "iv", Type: table.Interval},
	{Name: "g", Type: table.Geography},
	{Name: "j", Type: table.JSON},
	{Name: "rd", Type: table.Range, Range: table.Date},
	{Name: "rt", Type: table.Range, Range: table.Timestamp},
	{Name: "st", Type: table.Struct, Fields: []table.Field{
		{Name: "x", Type: table.Int64},
		{Name: "in", Type: table.Struct, Fields: []table.Field{{Name: "y", Type: table.String}}}}},
	{Name: "a", Type: table.Int64, Mode: table.Repeated},
	{Name: "as", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{
		{Name: "k", Type: table.String}, {Name: "v", Type: table.Date, Mode: table.Repeated}}},
	{Name: "größe", Type: table.String},
	{Name: "+1", Type: table.Struct, Fields: []table.Field{{Name: "-1", Type: table.Int64}}},
}}

const everyDocument = `{"id":-42,"b":true,"f":1.5,"s":"häé","y":"AP8=","n":-123.456,"bn":578960446186580977117854925043439539266.3,` +
	`"n2":12.34,"bn2":-12345678901234567890123456789012.5,"da":"0001-01-01","ti":"23:59:59.999999","dt":"9999-12-31T23:59:59.999999",` +
	`"ts":"1969-12-31T23:59:59.999999Z","iv":"1-2 3 4:5:6.789","g":"POINT(1 2)","j":{"k":[1,null]},"rd":{"start":"2026-07-26","end":null},` +
	`"rt":{"start":null,"end":"2026-07-26T00:00:00Z"},"st":{"x":7,"in":{"y":"deep"}},"a":[1,2,300],` +
	`"as":[{"k":"one","v":["2026-01-01","2026-01-02"]},{"v":[]}],"größe":"flexible","+1":{"-1":5}}`

// Every value that goes in comes back (LBQ-91: in columns of any name, nested ones too): rows encoded by the sink, stored, encoded as Avro by the service, decoded here.
func TestSourceLocalEveryType(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	const nulls = `{"id":1,"a":[],"as":[]}`
	l.write(t, everyColumn, everyDocument, nulls)
	src := l.source(t, SourceOptions{})
	got := read(t, src)
	if len(got) != 2 {
		t.Fatalf("read %v", got)
	}
	for i, want := range []string{everyDocument, nulls} {
		if diff := cmp.Diff(parse(t, want), parse(t, got[i])); diff != "" {
			t.Error(diff)
		}
	}
	session, err := src.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everyColumn, session.Schema()); diff != "" {
		t.Error("the schema of the session: ", diff)
	}
}

// parse keeps numbers as they are spelt.
func parse(t *testing.T, doc string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

var idName = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64},
	{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}, {Name: "y", Type: table.String}}},
	{Name: "name", Type: table.String},
}}

// idDocs are n documents of idName, in the order of their text.
func idDocs(n int) (docs []string) {
	for i := range n {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"st":{"x":%d,"y":"why"},"name":"name %04d"}`, i, i, i))
	}
	slices.Sort(docs)
	return docs
}

func TestSourceLocalSelection(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	l.write(t, idName, idDocs(1)...)
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{[]string{"name", "id"}, `{"id":0,"name":"name 0000"}`}, // the order of the table
		{[]string{"ST.Y"}, `{"st":{"y":"why"}}`},
		{[]string{"st", "st.x"}, `{"st":{"x":0,"y":"why"}}`},
	} {
		if got := read(t, l.source(t, SourceOptions{SelectedFields: c.fields})); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: got %v, want %s", c.fields, got, c.want)
		}
	}
	_, err := l.source(t, SourceOptions{SelectedFields: []string{"nope"}}).Session(t.Context())
	if p, ok := errors.AsType[*PlanError](err); !ok || !strings.Contains(err.Error(), "nope") || p.What != "p.d.t" {
		t.Errorf("got %v", err)
	}
}

// SRC-87 against a service that compresses where it gains by it.
func TestSourceLocalCompression(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	want := idDocs(500)
	l.write(t, idName, want...)
	if diff := cmp.Diff(want, read(t, l.source(t, SourceOptions{CompressResponses: true}))); diff != "" {
		t.Error(diff)
	}
}

func TestSourceLocalPlanFails(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	_, err := l.source(t, SourceOptions{}).Session(t.Context())
	if _, ok := errors.AsType[*PlanError](err); !ok || !strings.Contains(err.Error(), "failed to plan the BigQuery read of p.d.t") {
		t.Errorf("a table that is not there: %v", err)
	}
	l.write(t, idName)
	e, err := l.source(t, SourceOptions{}).NewEnumerator(t.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1,
		Wake: func() {}, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestSourceLocalEmptyTable(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	if err := l.CreateTable("d.t", &bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "id", Type: "INTEGER"}}}); err != nil {
		t.Fatal(err)
	}
	src := l.source(t, SourceOptions{})
	if got := read(t, src); len(got) != 0 {
		t.Errorf("read %v", got)
	}
	if splits := splitsOf(t, src); len(splits) != 0 {
		t.Errorf("%d splits", len(splits))
	}
}

// Streams share the rows: every row is in one of them.
func TestSourceLocalStreams(t *testing.T) {
	t.Parallel()
	var c localbq.Config
	c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 240, 3
	l := startLocal(t, c)
	want := idDocs(200)
	l.write(t, idName, want...)
	streams := map[string]int{}
	for name, o := range map[string]SourceOptions{
		"all": {}, "capped": {MaxStreamCount: 3}, "preferred": {PreferredMinStreamCount: 5000}, "one column": {SelectedFields: []string{"id"}},
	} {
		src := l.source(t, o)
		got := read(t, src)
		streams[name] = len(splitsOf(t, src))
		if o.SelectedFields == nil && !slices.Equal(want, got) || len(got) != len(want) {
			t.Errorf("%s: %d rows from %d streams: %s", name, len(got), streams[name], cmp.Diff(want, got))
		}
	}
	if streams["capped"] != 3 || streams["all"] <= streams["one column"] || streams["preferred"] <= streams["all"] {
		t.Errorf("streams: %v", streams)
	}
}

// SRC-29, SRC-38, SRC-84 against a service that decides where streams and blocks end.
func TestSourceLocalResumes(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	want := idDocs(200)
	l.write(t, idName, want...)
	src := l.source(t, SourceOptions{MaxRecordsPerFetch: 7})
	splits := splitsOf(t, src)
	var got []string
	for _, s := range splits {
		// A fresh reader for every batch, each at the position behind the one before.
		for {
			n := readBatch(t, src, &s, &got)
			if n == 0 {
				break
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := read(t, l.source(t, SourceOptions{Limit: 12})); len(got) != 12 {
		t.Errorf("%d rows, want the limit of 12", len(got))
	}
}

func readBatch(t *testing.T, src *Source[string], s *stream.Split, got *[]string) int {
	t.Helper()
	r, err := src.NewReader(t.Context(), stream.ReaderContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(t.Context(), *s); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[string]
	if err := r.Fetch(t.Context(), &b); err == io.EOF {
		return 0
	} else if err != nil {
		t.Fatal(err)
	}
	for _, rec := range b.Records() {
		*got = append(*got, rec.Value)
	}
	_, _, s.Position = b.At(b.Len() - 1)
	return b.Len()
}

// SRC-47, LBQ-145: what the service does wrong on purpose leaves no trace in the rows.
func TestSourceLocalFaults(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]localbq.Fault{
		"unavailable":     {Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}, Count: 3},
		"reset":           {Action: localbq.FaultAction{Reset: true}},
		"reset afterward": {Action: localbq.FaultAction{LoseAck: true}},
		"busy":            {Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "RESOURCE_EXHAUSTED", RetryDelay: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLocal(t, localbq.Config{})
			want := idDocs(50)
			l.write(t, idName, want...)
			f.Match = localbq.FaultMatch{Service: "read", Method: "ReadRows"}
			l.arm(t, f)
			if diff := cmp.Diff(want, read(t, l.source(t, SourceOptions{}))); diff != "" {
				t.Error(diff)
			}
			l.Faults().MustAllFire(t)
		})
	}
	t.Run("fatal", func(t *testing.T) {
		t.Parallel()
		l := startLocal(t, localbq.Config{})
		l.write(t, idName, idDocs(5)...)
		l.arm(t, localbq.Fault{Match: localbq.FaultMatch{Service: "read", Method: "ReadRows"},
			Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "ABORTED"}}})
		var last error
		for _, err := range l.source(t, SourceOptions{}).Rows(t.Context()) {
			last = err
		}
		if e, ok := errors.AsType[*ReadError](last); !ok || e.Code != codes.Aborted || e.Offset != 0 || e.Attempts != 1 {
			t.Errorf("got %v", last)
		}
	})
}

func (l *local) arm(t *testing.T, f localbq.Fault) {
	t.Helper()
	if err := l.Faults().Add(f); err != nil {
		t.Fatal(err)
	}
}

// The readers of one session see one instant, whatever happens to the table.
func TestSourceLocalSnapshot(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	docs := idDocs(3)
	l.write(t, idName, docs[:2]...)
	session, err := l.source(t, SourceOptions{}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.write(t, idName, docs[2])
	if err := l.DeleteTable("d.t"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range session.Rows(context.WithoutCancel(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d rows, want the 2 of the session's instant", n)
	}
}
