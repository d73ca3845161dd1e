package job

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
)

// copyJob runs a job file with what it needs around it.
func copyJob(t testing.TB, l *stored.Local, dir, text string) (engine.Result, *Pipeline, error) {
	t.Helper()
	name := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(name, nil)
	if err != nil {
		return engine.Result{}, nil, err
	}
	pl, err := p.Prepare(context.Background(), Surroundings{Connection: &l.Connection})
	if err != nil {
		return engine.Result{}, nil, err
	}
	r, err := pl.Run(context.Background(), RunOptions{})
	return r, pl, err
}

// Every row of every type is in the copy once, as both of the service's formats tell.
func TestCopiesEveryType(t *testing.T) {
	l := stored.Start(t)
	for _, method := range []string{"default", "exactly-once"} {
		t.Run(method, func(t *testing.T) {
			rowtest.Sparingly(t, func(rt *rapid.T) {
				s := rowtest.Schemas(rowtest.Types(), 2).Draw(rt, "schema")
				rowtest.Flexible(rt, s)
				var rows [][]row.Value
				for range rapid.IntRange(1, 4).Draw(rt, "rows") {
					rows = append(rows, rowtest.Rows(s).Draw(rt, "row"))
				}
				from, to := l.NewTable(), l.NewTable()
				if err := stored.Write(t.Context(), l, from, rowtest.OfValues(s), rows...); err != nil {
					rt.Fatal(err)
				}
				streaming := ""
				if rapid.Bool().Draw(rt, "streaming") {
					streaming = ", every: 10ms"
				}
				r, _, err := copyJob(t, l, t.TempDir(), fmt.Sprintf(`
job: copy
source: { bigquery: { table: %s } }
sink: { bigquery: { method: %s, table: %s, schema: { infer: {} } } }
checkpoint: { store: "file://checkpoints"%s }
restart: { policy: none }
parallelism: 1
`, from, method, to, streaming))
				if err != nil {
					rt.Fatal(err)
				}
				if r.Tally.Read != int64(len(rows)) || r.Tally.Written != int64(len(rows)) {
					rt.Errorf("%+v of %d rows", r.Tally, len(rows))
				}
				if err := l.Holds(t.Context(), to, s, rows); err != nil {
					rt.Fatal(err)
				}
				made, err := bigquery.TableSchema(t.Context(), l.Connection, to)
				if err != nil {
					rt.Fatal(err)
				}
				had, err := bigquery.TableSchema(t.Context(), l.Connection, from)
				if err != nil || fmt.Sprint(made) != fmt.Sprint(had) {
					rt.Errorf("made %v of %v: %v", made, had, err)
				}
			})
		})
	}
}

// everyColumn is a schema with columns of every type in every mode.
func everyColumn() *table.Schema {
	s := &table.Schema{}
	add := func(f table.Field) {
		for _, mode := range []table.Mode{table.Required, table.Nullable, table.Repeated} {
			f.Name, f.Mode = fmt.Sprintf("c%d", len(s.Fields)), mode
			s.Fields = append(s.Fields, f)
		}
	}
	for _, t := range rowtest.Types() {
		switch t {
		case table.Struct:
			add(table.Field{Type: t, Fields: slices.Clone(s.Fields)})
		case table.Range:
			for _, of := range []table.Type{table.Date, table.DateTime, table.Timestamp} {
				add(table.Field{Type: t, Range: of})
			}
		case table.Numeric, table.BigNumeric:
			add(table.Field{Type: t})
			add(table.Field{Type: t, Precision: 10, Scale: 2})
		default:
			add(table.Field{Type: t})
		}
	}
	return s
}

// One table with columns of every type in every mode, NULL and empty lists among the values, and its copy: what Storage Read says of
// both is the same, byte for byte.
func TestCopyIsTheSameThroughStorageRead(t *testing.T) {
	l := stored.Start(t)
	s := everyColumn()
	from := l.NewTable()
	rows := rowtest.Rows(s)
	var values [][]row.Value
	for i := range 20 {
		values = append(values, rows.Example(i))
	}
	if err := stored.Write(t.Context(), l, from, rowtest.OfValues(s), values...); err != nil {
		t.Fatal(err)
	}
	schema, blocks := raw(t, l, from)
	for _, method := range []string{"default", "exactly-once"} {
		t.Run(method, func(t *testing.T) {
			to := l.NewTable()
			if _, _, err := copyJob(t, l, t.TempDir(), fmt.Sprintf(`
job: copy
source: { bigquery: { table: %s } }
sink: { bigquery: { method: %s, table: %s, schema: { infer: {} } } }
checkpoint: { store: "file://checkpoints" }
restart: { policy: none }
parallelism: 1
`, from, method, to)); err != nil {
				t.Fatal(err)
			}
			copied, rows := raw(t, l, to)
			if diff := cmp.Diff(schema, copied); diff != "" {
				t.Errorf("the schema of the session: %s", diff)
			}
			if !bytes.Equal(blocks, rows) || len(rows) == 0 {
				t.Errorf("the rows are other %d bytes than the %d that were copied", len(rows), len(blocks))
			}
			for _, dst := range []table.Destination{from, to} { // in Arrow, too
				if err := l.Holds(t.Context(), dst, s, values); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// raw are the schema and the rows of a table as a session in Avro has them.
func raw(t *testing.T, l *stored.Local, dst table.Destination) (schema string, rows []byte) {
	t.Helper()
	session, err := stored.Session(t.Context(), l, dst, stored.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range session.Blocks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, b.Data...)
	}
	return session.AvroSchema(), rows
}

var cities = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "kind", Type: table.String}, {Name: "n", Type: table.BigNumeric},
	{Name: "st", Type: table.Struct, Fields: []table.Field{{Name: "day", Type: table.Date}}},
}}

func city(id int64, kind any, n string, day int64) []row.Value {
	k := row.Value{Null: true}
	if text, ok := kind.(string); ok {
		k = rowtest.Text(text)
	}
	return []row.Value{{Int: id}, k, rowtest.Decimal(table.BigNumeric, n), rowtest.List(row.Value{Int: day})}
}

// documents are the rows of a table as JSON, in the order of the text.
func documents(t *testing.T, l *stored.Local, dst string) []string {
	t.Helper()
	to, err := table.ParseDestination(dst)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := stored.Read(t.Context(), l, to, jsonrow.NewDeserializer(func(doc []byte) string { return string(doc) }, jsonrow.WriteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(docs)
	return docs
}

func TestCopiesWhere(t *testing.T) {
	l := stored.Start(t)
	from := l.NewTable()
	if err := stored.Write(t.Context(), l, from, rowtest.OfValues(cities), city(1, "a", "1.5", 20_000), city(2, "b", "2", 20_001), city(3, "a", "1e30", 20_000)); err != nil {
		t.Fatal(err)
	}
	job := func(source, sink string) string {
		return "job: copy\nsource: { bigquery: { table: " + from.String() + source + " } }\nsink: { bigquery: { " + sink + " } }\ncheckpoint: { store: \"file://checkpoints\" }\nrestart: { policy: none }\n"
	}
	t.Run("placeholders are fields of the row", func(t *testing.T) {
		if _, _, err := copyJob(t, l, t.TempDir(), job("", `table: "p.d.of_{kind}_{st.day}", schema: { infer: {} }`)); err != nil {
			t.Fatal(err)
		}
		if got := documents(t, l, "p.d.of_a_2024-10-04"); len(got) != 2 {
			t.Errorf("got %v", got)
		}
		if got := documents(t, l, "p.d.of_b_2024-10-05"); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("selected fields", func(t *testing.T) {
		if _, _, err := copyJob(t, l, t.TempDir(), job(", selectedFields: [ID, st.day], limit: 2", `table: p.d.selected, schema: { infer: {} }`)); err != nil {
			t.Fatal(err)
		}
		if got := documents(t, l, "p.d.selected"); len(got) != 2 || got[0] != `{"id":1,"st":{"day":"2024-10-04"}}` {
			t.Errorf("got %v", got)
		}
	})
	t.Run("columns of the table that is written, and rows that do not fit", func(t *testing.T) {
		to := table.Destination{Project: "p", Dataset: "d", Table: "narrow"}
		narrow := &table.Schema{Fields: []table.Field{{Name: "n", Type: table.Numeric}, {Name: "ID", Type: table.Int64}, {Name: "more", Type: table.Bool}}}
		if err := stored.Write[[]row.Value](t.Context(), l, to, rowtest.OfValues(narrow)); err != nil {
			t.Fatal(err)
		}
		sink := `table: p.d.narrow, schema: { table: true, unknownFields: ignore }`
		if err := stored.Write(t.Context(), l, to, rowtest.OfValues(narrow), []row.Value{{Null: true}, {Int: 0}, {Null: true}}); err != nil {
			t.Fatal(err)
		}
		_, _, err := copyJob(t, l, t.TempDir(), job("", sink))
		if err == nil || !strings.Contains(err.Error(), "R-RANGE: field n") {
			t.Errorf("got %v", err)
		}
		dir := t.TempDir()
		r, _, err := copyJob(t, l, dir, job("", sink+`, failures: { policy: dead-letter, deadLetter: { file: dead.ndjson } }`))
		if err != nil || r.Tally.DeadLettered != 1 || r.Tally.Written != 2 {
			t.Fatalf("%+v: %v", r.Tally, err)
		}
		letters, err := os.ReadFile(filepath.Join(dir, "dead.ndjson"))
		if err != nil || !strings.Contains(string(letters), `{\"id\":3,\"kind\":\"a\"`) && !strings.Contains(string(letters), `"id":3`) {
			t.Errorf("letters %s: %v", letters, err)
		}
		t.Run("are replayed once they do", func(t *testing.T) {
			again := "job: copy\nsource: { bigquery: { table: " + from.String() + " } }\nsink: { bigquery: { table: p.d.wide, schema: { infer: {} }, failures: { policy: dead-letter, deadLetter: { file: dead.ndjson } } } }\ncheckpoint: { store: \"file://checkpoints\" }\n"
			if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(again), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Load(filepath.Join(dir, "job.yaml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			pl, err := p.PrepareReplay(t.Context(), Surroundings{Connection: &l.Connection}, Replay{Queues: []string{filepath.Join(dir, "dead.ndjson")}})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := pl.Run(t.Context(), RunOptions{}); err != nil || r.Tally.Written != 1 {
				t.Fatalf("%+v: %v", r.Tally, err)
			}
			if got := documents(t, l, "p.d.wide"); len(got) != 1 || !strings.HasPrefix(got[0], `{"id":3,"kind":"a","n":1000000000000000000000000000000,`) {
				t.Errorf("got %v", got)
			}
		})
	})
	t.Run("no rows fit", func(t *testing.T) {
		_, _, err := copyJob(t, l, t.TempDir(), job("", `table: p.d.narrow, schema: { table: true }, failures: { policy: drop }`))
		if err == nil || !strings.Contains(err.Error(), "C-SCHEMA: field kind") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no such column", func(t *testing.T) {
		_, _, err := copyJob(t, l, t.TempDir(), job(", selectedFields: [none]", `table: p.d.none, schema: { infer: {} }`))
		if err == nil || !strings.Contains(err.Error(), `there is no column "none"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a row without a field that it is routed by", func(t *testing.T) {
		nameless := l.NewTable()
		if err := stored.Write(t.Context(), l, nameless, rowtest.OfValues(cities), city(1, nil, "1", 1)); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(job("", `table: "p.d.{kind}", schema: { infer: {} }`), from.String(), nameless.String(), 1)
		if _, _, err := copyJob(t, l, t.TempDir(), text); err == nil || !strings.Contains(err.Error(), "kind") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what it is", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(job("", `table: p.d.plan, schema: { infer: {} }`)), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(filepath.Join(dir, "job.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := p.Survey(t.Context(), Surroundings{Connection: &l.Connection})
		if err != nil || found.From != "the table "+from.String() || len(found.Tables) != 1 || len(found.Tables[0].Schema.Fields) != 4 {
			t.Errorf("found %+v: %v", found, err)
		}
		in, out, err := p.Datasets()
		if err != nil || len(in) != 1 || in[0].Name != from.String() || len(out) != 1 {
			t.Errorf("lineage from %v to %v: %v", in, out, err)
		}
	})
}

func TestReadIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, sink, want string }{
		{"nothing", "{}", "", "source.bigquery: expected one of table, query"},
		{"both", "{table: p.d.t, query: SELECT 1}", "", "source.bigquery: has table and query: expected only one of them"},
		{"nobody pays", "{query: SELECT 1}", "", "parentProject"},
		{"a blank query", "{query: ' ', parentProject: p}", "", "source.bigquery.query: is blank"},
		{"no table", "{table: p.d}", "", "source.bigquery.table"},
		{"placeholders", "{table: 'p.d.{x}'}", "", "source.bigquery.table: \"p.d.{x}\" has placeholders"},
		{"a field twice", "{table: p.d.t, selectedFields: [a, A]}", "", `source.bigquery.selectedFields: [1] names "A" again`},
		{"an unknown key", "{table: p.d.t, fields: [a]}", "", "unknown key"},
		{"a location of a table", "{table: p.d.t, queryLocation: EU}", "", "source.bigquery.queryLocation: applies to a query or view only"},
		{"reuse without a place", "{query: SELECT 1, parentProject: p, reuseQueryResultWithin: 1h}", "", "source.bigquery.reuseQueryResultWithin: needs source.bigquery.queryLocation"},
		{"another priority", "{query: SELECT 1, parentProject: p, queryPriority: later}", "", `unknown value "later"`},
		{"no instant", "{table: p.d.t, snapshotTime: yesterday}", "", "source.bigquery.snapshotTime"},
		{"zero", "{table: p.d.t, fetchQueue: 0}", "", "source.bigquery.fetchQueue: must be positive: 0"},
		{"a parameter without a type", "{query: SELECT @a, parentProject: p, queryParameters: [{name: a}]}", "", "source.bigquery.queryParameters[0].type: this key is missing"},
		{"a key for an emulator", "{table: p.d.t, connection: {keyFile: k, grpcEndpoint: 'h:1'}}", "", "source.bigquery.connection"},
		{"records are looked at", "{table: p.d.t}", "schema: {infer: {sample: 5}}", "sink.bigquery.schema.infer.sample: means nothing for rows of BigQuery"},
		{"columns of many tables", "{table: p.d.t}", "table: 'p.d.{x}', schema: {table: true}", "sink.bigquery.schema.table"},
		{"itself", "{table: p.d.t}", "table: p.d.t", "sink.bigquery.table: is the table that is read"},
		{"all is well", "{table: p.d.t, selectedFields: [a], rowRestriction: 'a > 1', snapshotTime: 2026-08-12T10:00:00Z, partitions: ['20260812'], limit: 5}", "", ""},
		{"a query", "{query: SELECT @a, parentProject: p, queryLocation: EU, reuseQueryResultWithin: 1h, queryPriority: batch, queryResultDataset: d, queryParameters: [{name: a, type: INT64, value: '1'}]}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := c.sink
			if !strings.Contains(sink, "table:") || strings.HasPrefix(sink, "schema") {
				sink = "table: p.d.copy, " + sink
			}
			if !strings.Contains(sink, "schema:") {
				sink += ", schema: {infer: {}}"
			}
			sink = strings.ReplaceAll(sink, ", ,", ",")
			_, err := Parse("job.yaml", []byte("job: j\nsource: {bigquery: "+c.source+"}\nsink: {bigquery: {"+sink+"}}\n"), nil)
			if c.want == "" && err == nil {
				return
			}
			if c.want == "" || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func BenchmarkCopied(b *testing.B) {
	s := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "score", Type: table.Float64}, {Name: "ok", Type: table.Bool}}}
	r := &row.Row{Schema: s, Values: []row.Value{{Int: 1234567}, {Int: 1785027723456789}, rowtest.Text("a name of some length, 1234"), rowtest.Float(1.5), {Int: 1}}}
	c, err := newCopied(s, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var buf []byte
	emit := func(r files.Record) (err error) {
		buf, err = c.AppendRow(buf[:0], table.Destination{}, r)
		return err
	}
	for b.Loop() {
		if err := c.Deserialize(r, emit); err != nil {
			b.Fatal(err)
		}
	}
}
