package localbq_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq"
)

// keyedTable makes a table of columns id and v with id as its key, over REST.
func keyedTable(t *testing.T, bq *localbq.Instance, table string, key ...string) *bqapi.Service {
	t.Helper()
	c, err := bqapi.NewService(context.Background(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	dataset, id, _ := strings.Cut(table, ".")
	_, err = c.Tables.Insert(localbq.DefaultProject, dataset, &bqapi.Table{
		TableReference:   &bqapi.TableReference{ProjectId: localbq.DefaultProject, DatasetId: dataset, TableId: id},
		Schema:           &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{column("id", "INTEGER"), column("v", "STRING"), column("w", "STRING")}},
		TableConstraints: &bqapi.TableConstraints{PrimaryKey: &bqapi.TableConstraintsPrimaryKey{Columns: key}},
	}).Do()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantRows(t *testing.T, bq *localbq.Instance, table string, rows ...string) {
	t.Helper()
	got := strings.Split(contents(t, bq, table), "\n")
	slices.Sort(got)
	if want := strings.Join(rows, "\n"); strings.Join(got, "\n") != want {
		t.Errorf("table %s holds\n%s, want\n%s", table, strings.Join(got, "\n"), want)
	}
}

func upsert(id int, v, sequence string) string {
	return fmt.Sprintf(`id: %d v: %q _CHANGE_TYPE: "UPSERT"`, id, v) + sequenced(sequence)
}

func remove(id int, sequence string) string {
	return fmt.Sprintf(`id: %d _CHANGE_TYPE: "DELETE"`, id) + sequenced(sequence)
}

func sequenced(sequence string) string {
	if sequence == "" {
		return ""
	}
	return fmt.Sprintf(" _CHANGE_SEQUENCE_NUMBER: %q", sequence)
}

func TestChangeDataCapture(t *testing.T) {
	bq := start(t, localbq.Config{})
	rest := keyedTable(t, bq, "d.t", "id")
	c := writeClient(t, bq)
	r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
	call := connect(t, c)
	// each runs changes on a table of its own.
	tables := 0
	setup := func(t *testing.T) (table string, ask func(rows ...string) *storagepb.AppendRowsResponse) {
		tables++
		table = fmt.Sprintf("d.t%d", tables)
		keyedTable(t, bq, table, "id")
		call := connect(t, c)
		return table, func(rows ...string) *storagepb.AppendRowsResponse {
			return call.append(r.first(t, stream(table), rows...))
		}
	}
	t.Run("LBQ-104 UPSERT inserts a new key and replaces an existing one", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "a", ""), upsert(2, "b", ""))
		append(upsert(1, "a2", ""))
		wantRows(t, bq, table, `{"id":1,"v":"a2","w":null}`, `{"id":2,"v":"b","w":null}`)
	})
	t.Run("LBQ-105 DELETE with only the key removes", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "a", ""), upsert(2, "b", ""))
		append(remove(1, ""))
		wantRows(t, bq, table, `{"id":2,"v":"b","w":null}`)
	})
	t.Run("LBQ-106 DELETE of an absent key", func(t *testing.T) {
		table, append := setup(t)
		append(remove(1, ""))
		wantRows(t, bq, table, "")
	})
	t.Run("LBQ-107 a lower sequence does not replace", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "B", "B"))
		append(upsert(1, "A", "A"))
		wantRows(t, bq, table, `{"id":1,"v":"B","w":null}`)
	})
	t.Run("LBQ-108 of equal sequences the later wins", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "first", "1"), upsert(1, "second", "1"))
		wantRows(t, bq, table, `{"id":1,"v":"second","w":null}`)
		append(upsert(1, "third", "1"))
		wantRows(t, bq, table, `{"id":1,"v":"third","w":null}`)
	})
	t.Run("LBQ-109 FF outranks 1/FF", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "FF", "FF"), upsert(1, "1/FF", "1/FF"))
		wantRows(t, bq, table, `{"id":1,"v":"FF","w":null}`)
	})
	t.Run("LBQ-110 F and 000F are equal", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "a", "000F"), upsert(1, "b", "F"), upsert(1, "c", "000f"))
		wantRows(t, bq, table, `{"id":1,"v":"c","w":null}`)
	})
	t.Run("LBQ-111 bad sequences are row errors", func(t *testing.T) {
		answer := call.ask(r.first(t, stream("d.t"), upsert(1, "a", "1/2/3/4/5"), upsert(2, "b", "1"), upsert(3, "c", "00000000000000001"), upsert(4, "d", "G")))
		if e := answer.GetRowErrors(); len(e) != 3 || e[0].Index != 0 || e[1].Index != 2 || e[2].Index != 3 {
			t.Errorf("got %v", answer)
		}
		wantRows(t, bq, "d.t", "")
	})
	t.Run("LBQ-112 a deleted key stays deleted", func(t *testing.T) {
		table, append := setup(t)
		append(remove(1, "5"))
		append(upsert(1, "late", "4"))
		wantRows(t, bq, table, "")
		append(upsert(1, "later", "6"))
		wantRows(t, bq, table, `{"id":1,"v":"later","w":null}`)
	})
	t.Run("LBQ-114 a change type that is none", func(t *testing.T) {
		answer := call.ask(r.first(t, stream("d.t"), `id: 1 _CHANGE_TYPE: "MERGE"`, `id: 2`, upsert(3, "x", "")))
		if e := answer.GetRowErrors(); len(e) != 2 || e[0].Index != 0 || e[1].Index != 1 {
			t.Errorf("got %v", answer)
		}
		wantRows(t, bq, "d.t", "")
	})
	t.Run("LBQ-115 pseudocolumns are not in the schema", func(t *testing.T) {
		table, err := rest.Tables.Get(localbq.DefaultProject, "d", "t").Do()
		if err != nil || len(table.Schema.Fields) != 3 || fmt.Sprint(table.TableConstraints.PrimaryKey.Columns) != "[id]" {
			t.Errorf("got %+v, %v", table, err)
		}
	})
	t.Run("changes of a created stream", func(t *testing.T) {
		table, _ := setup(t)
		made, err := c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{
			Parent: path(table), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_COMMITTED},
		})
		if err != nil {
			t.Fatal(err)
		}
		connect(t, c).refused(r.first(t, made.GetName(), upsert(1, "a", "")), codes.InvalidArgument, "only supported on the default stream")
		wantRows(t, bq, table, "")
	})
	t.Run("a connection that goes on without changes", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "a", ""))
		other := connect(t, c)
		other.append(describe(t, "id int64", "v string").first(t, stream(table), `id: 1 v: "plain"`))
		wantRows(t, bq, table, `{"id":1,"v":"a","w":null}`, `{"id":1,"v":"plain","w":null}`)
		append(upsert(1, "b", ""))
		wantRows(t, bq, table, `{"id":1,"v":"b","w":null}`)
	})
	t.Run("the audit log knows what became of every row", func(t *testing.T) {
		table, append := setup(t)
		append(upsert(1, "a", "2"), upsert(2, "b", "1"), remove(3, "1"))
		append(upsert(1, "late", "1"), upsert(2, "b2", ""), remove(2, "3"))
		visible, err := bq.Audit().Visible(table)
		if err != nil || len(visible) != 1 || visible[0].ID != 0 {
			t.Errorf("visible: %v, %v", visible, err)
		}
		lost, err := bq.Audit().AckedNotVisible(table)
		if err != nil || len(lost) != 0 {
			t.Errorf("lost: %v, %v", lost, err)
		}
		unaccounted, err := bq.Audit().Unaccounted(table)
		if err != nil || len(unaccounted) != 0 {
			t.Errorf("unaccounted: %v, %v", unaccounted, err)
		}
		mixed := false
		for record, err := range bq.Audit().Records() {
			if err != nil {
				t.Fatal(err)
			}
			mixed = mixed || strings.Contains(record.Note, "with and without a sequence number")
		}
		if !mixed {
			t.Error("the log does not flag the key with mixed changes")
		}
	})
}

// TestCommittedChanges is for what an official suite does and no documentation speaks of.
func TestCommittedChanges(t *testing.T) {
	dir := t.TempDir()
	config := localbq.Config{Dir: dir, Profile: localbq.Profile{CommittedChanges: true}}
	bq := start(t, config)
	keyedTable(t, bq, "d.t", "id")
	c := writeClient(t, bq)
	r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
	made := func(kind storagepb.WriteStream_Type) string {
		s, err := c.CreateWriteStream(context.Background(), &storagepb.CreateWriteStreamRequest{Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: kind}})
		if err != nil {
			t.Fatal(err)
		}
		return s.GetName()
	}
	call := connect(t, c)
	call.append(at(r.first(t, made(storagepb.WriteStream_COMMITTED), `id: 1 v: "a" _CHANGE_TYPE: "INSERT"`, upsert(2, "b", "")), 0))
	call.append(at(r.next(t, upsert(1, "c", ""), remove(2, "")), 2))
	wantRows(t, bq, "d.t", `{"id":1,"v":"c","w":null}`)
	connect(t, c).refused(r.first(t, made(storagepb.WriteStream_BUFFERED), upsert(1, "d", "")), codes.InvalidArgument, "only supported on the default stream")
	if err := bq.Close(); err != nil {
		t.Fatal(err)
	}
	bq = start(t, config)
	wantRows(t, bq, "d.t", `{"id":1,"v":"c","w":null}`)
}

func TestFreshness(t *testing.T) {
	bq := start(t, localbq.Config{})
	rest := keyedTable(t, bq, "d.t", "id")
	r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
	connect(t, writeClient(t, bq)).append(r.first(t, stream("d.t"), upsert(1, "a", "")))
	listed := func() int {
		rows, err := rest.Tabledata.List(localbq.DefaultProject, "d", "t").Do()
		if err != nil {
			t.Fatal(err)
		}
		return len(rows.Rows)
	}
	reader, err := storage.NewBigQueryReadClient(context.Background(), bq.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	session := func() error {
		_, err := reader.CreateReadSession(context.Background(), &storagepb.CreateReadSessionRequest{
			Parent: "projects/" + localbq.DefaultProject, ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO},
		})
		return err
	}
	t.Run("LBQ-120 a read session is refused while queries merge", func(t *testing.T) {
		wantStatus(t, status.Convert(session()), codes.InvalidArgument, "merged at query time")
	})
	t.Run("tabledata.list reads the base", func(t *testing.T) {
		if n := listed(); n != 0 {
			t.Errorf("%d rows before the changes are applied", n)
		}
	})
	t.Run("changes are applied on demand", func(t *testing.T) {
		answer, err := http.Post("http://"+bq.REST()+"/local/v1/tables/d.t/changes/apply", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusNoContent {
			t.Fatalf("%s %s %v", answer.Status, text, err)
		}
		if n := listed(); n != 1 {
			t.Errorf("%d rows after", n)
		}
		if err := session(); err != nil {
			t.Error(err)
		}
	})
	t.Run("LBQ-115 pseudocolumns are not in sessions", func(t *testing.T) {
		asked := &storagepb.CreateReadSessionRequest{
			Parent: "projects/" + localbq.DefaultProject, ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_AVRO},
		}
		made, err := reader.CreateReadSession(context.Background(), asked)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"type":"record","name":"__root__","fields":[{"name":"id","type":["null","long"]},{"name":"v","type":["null","string"]},{"name":"w","type":["null","string"]}]}`
		if got := made.GetAvroSchema().GetSchema(); got != want {
			t.Errorf("schema %s, want %s", got, want)
		}
		for _, name := range []string{"_CHANGE_TYPE", "_CHANGE_SEQUENCE_NUMBER"} {
			asked.ReadSession.ReadOptions = &storagepb.ReadSession_TableReadOptions{SelectedFields: []string{name}}
			_, err := reader.CreateReadSession(context.Background(), asked)
			wantStatus(t, status.Convert(err), codes.InvalidArgument, "request failed: The following selected fields do not exist in the table schema: "+name)
		}
	})
	t.Run("LBQ-116 max_staleness over REST is taken and dropped", func(t *testing.T) {
		before, err := rest.Tables.Get(localbq.DefaultProject, "d", "t").Do()
		if err != nil {
			t.Fatal(err)
		}
		patched, err := rest.Tables.Patch(localbq.DefaultProject, "d", "t", &bqapi.Table{MaxStaleness: "0-0 0 0:10:0"}).Do()
		if err != nil || patched.MaxStaleness != "" {
			t.Errorf("patch: %+v, %v", patched, err)
		}
		before.MaxStaleness = "0-0 0 0:10:0"
		updated, err := rest.Tables.Update(localbq.DefaultProject, "d", "t", before).Do()
		if err != nil || updated.MaxStaleness != "" {
			t.Errorf("update: %+v, %v", updated, err)
		}
		before.TableReference.TableId, before.MaxStaleness = "made", "0-0 0 0:10:0"
		made, err := rest.Tables.Insert(localbq.DefaultProject, "d", before).Do()
		if err != nil || made.MaxStaleness != "" {
			t.Errorf("insert: %+v, %v", made, err)
		}
	})
}

// TestManagedWriterChanges has the high-level Go client write changes, unmodified.
func TestManagedWriterChanges(t *testing.T) {
	ctx := context.Background()
	bq := start(t, localbq.Config{})
	keyedTable(t, bq, "d.t", "id")
	r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
	s := managedStream(t, managed(t, bq), "d.t", r)
	for i := range 50 {
		rows := r.rows(t, upsert(i%10, fmt.Sprint("v", i), fmt.Sprintf("%X", i)), remove(i%10, fmt.Sprintf("%X/%d", i, i%2)))
		answer, err := s.AppendRows(ctx, rows)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := answer.GetResult(ctx); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, bq, "d.t", "")
	answer, err := s.AppendRows(ctx, r.rows(t, upsert(3, "last", "FF")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.GetResult(ctx); err != nil {
		t.Fatal(err)
	}
	wantRows(t, bq, "d.t", `{"id":3,"v":"last","w":null}`)
}

// TestChangesSurvive kills nothing but closes and opens the folder: rows, order and the audit log go on.
func TestChangesSurvive(t *testing.T) {
	dir := t.TempDir()
	r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
	bq := start(t, localbq.Config{Dir: dir})
	keyedTable(t, bq, "d.t", "id")
	connect(t, writeClient(t, bq)).append(r.first(t, stream("d.t"), upsert(1, "a", "5"), upsert(2, "b", "5"), remove(2, "6")))
	if err := bq.Close(); err != nil {
		t.Fatal(err)
	}
	bq = start(t, localbq.Config{Dir: dir})
	connect(t, writeClient(t, bq)).append(r.first(t, stream("d.t"), upsert(1, "late", "4"), upsert(2, "late", "5")))
	wantRows(t, bq, "d.t", `{"id":1,"v":"a","w":null}`)
	lost, err := bq.Audit().AckedNotVisible("d.t")
	if err != nil || len(lost) != 0 {
		t.Errorf("lost: %v, %v", lost, err)
	}
}
