package localbq_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"errors"

	"github.com/millrace-dev/millrace/localbq"
)

func TestAbsentTable(t *testing.T) {
	bq := start(t, localbq.Config{})
	if err := bq.CreateDataset("d"); err != nil {
		t.Fatal(err)
	}
	ids := describe(t, "id int64")
	denied := "Permission 'TABLES_GET' denied on resource '" + path("d.none") + "' (or it may not exist)."
	t.Run("LBQ-96_first_append", func(t *testing.T) {
		connect(t, writeClient(t, bq)).ends(ids.first(t, stream("d.none"), "id: 1"), codes.PermissionDenied, denied)
	})
	t.Run("a later append is refused within the call", func(t *testing.T) {
		makeTable(t, bq, "d.t", column("id", "INTEGER"))
		call := connect(t, writeClient(t, bq))
		call.append(ids.first(t, stream("d.t"), "id: 1"))
		call.refused(ids.first(t, stream("d.none"), "id: 1"), codes.PermissionDenied, denied)
		q := ids.next(t, "id: 2")
		q.WriteStream = stream("d.t")
		call.append(q)
	})
	t.Run("a table deleted under the connection", func(t *testing.T) {
		makeTable(t, bq, "d.gone", column("id", "INTEGER"))
		call := connect(t, writeClient(t, bq))
		call.append(ids.first(t, stream("d.gone"), "id: 1"))
		if err := bq.DeleteTable("d.gone"); err != nil {
			t.Fatal(err)
		}
		call.refused(ids.next(t, "id: 2"), codes.PermissionDenied, "d/tables/gone")
		makeTable(t, bq, "d.gone", column("id", "INTEGER"), column("more", "STRING"))
		call.append(ids.next(t, "id: 3"))
		wantContents(t, bq, "d.gone", `{"id":3,"more":null}`)
	})
	t.Run("LBQ-98_over_REST", func(t *testing.T) {
		client, err := bigquery.NewClient(context.Background(), localbq.DefaultProject, bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.Dataset("d").Table("none").Metadata(context.Background())
		if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 404 || e.Errors[0].Reason != "notFound" {
			t.Errorf("got %v, want 404 notFound", err)
		}
	})
}

func TestDeny(t *testing.T) {
	bq := start(t, localbq.Config{Deny: []localbq.Denial{{Principal: "mallory", Resource: path("d.t")}}})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	ids := describe(t, "id int64")
	c := writeClient(t, bq)
	connect(t, c).append(ids.first(t, stream("d.t"), "id: 1"))
	connect(t, c, "alice").append(ids.first(t, stream("d.t"), "id: 1"))
	real := connect(t, c, "mallory").ends(ids.first(t, stream("d.t"), "id: 1"), codes.PermissionDenied, "(or it may not exist)")
	absent := connect(t, c, "mallory").ends(ids.first(t, stream("d.none"), "id: 1"), codes.PermissionDenied, "(or it may not exist)")
	if got := strings.ReplaceAll(absent.Message(), "d.none", "d.t"); strings.ReplaceAll(got, "tables/none", "tables/t") != real.Message() {
		t.Errorf("a denial says %q, an absent table %q", real.Message(), absent.Message())
	}
}

func TestDenials(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	makeTable(t, bq, "d.u", column("id", "INTEGER"))
	ids := describe(t, "id int64")
	c := writeClient(t, bq)
	granted := func(table string) []string {
		client, err := bigquery.NewClient(context.Background(), localbq.DefaultProject, bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		got, err := client.Dataset("d").Table(table).IAM().TestPermissions(context.Background(), []string{"bigquery.tables.get", "bigquery.tables.updateData"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	both := []string{"bigquery.tables.get", "bigquery.tables.updateData"}
	if got := granted("t"); !slices.Equal(got, both) {
		t.Errorf("granted %v, want everything", got)
	}
	if err := bq.SetDenials(localbq.Denial{Permission: "bigquery.tables.updateData", Resource: path("d.t")}); err != nil {
		t.Fatal(err)
	}
	if got := granted("t"); !slices.Equal(got, both[:1]) {
		t.Errorf("granted %v on the table, want what is not denied", got)
	}
	if got := granted("u"); !slices.Equal(got, both) {
		t.Errorf("granted %v on another table, want everything", got)
	}
	connect(t, c).ends(ids.first(t, stream("d.t"), "id: 1"), codes.PermissionDenied, "TABLES_UPDATE_DATA")
	connect(t, c).append(ids.first(t, stream("d.u"), "id: 1"))

	// Over HTTP, of a whole dataset, and gone again.
	if code := admin(t, bq, "PUT", "denials", `{"resource": "projects/`+localbq.DefaultProject+`/datasets/d"}`, nil); code != 200 {
		t.Fatalf("code %d", code)
	}
	if got := granted("u"); len(got) != 0 {
		t.Errorf("granted %v, want nothing", got)
	}
	if code := admin(t, bq, "PUT", "denials", `[]`, nil); code != 200 {
		t.Fatalf("code %d", code)
	}
	connect(t, c).append(ids.first(t, stream("d.t"), "id: 1"))

	for _, bad := range []string{`[{"permision": "x"}]`, `[{"permission": "tables.get"}]`, `[{"resource": "d.t"}]`, `[] []`, `7`, "", `null`, `[null]`, `[{"resource": "projects/p/datasets/d/tables/t/streams/s"}]`} {
		if code := admin(t, bq, "PUT", "denials", bad, nil); code != 400 {
			t.Errorf("%s: code %d, want 400", bad, code)
		}
	}
}

// addColumn widens a table over REST, with the official client.
func addColumn(t *testing.T, bq *localbq.Instance, table string, field *bigquery.FieldSchema) {
	t.Helper()
	client, err := bigquery.NewClient(context.Background(), localbq.DefaultProject, bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	dataset, id, _ := strings.Cut(table, ".")
	at := client.Dataset(dataset).Table(id)
	m, err := at.Metadata(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Update(context.Background(), bigquery.TableMetadataToUpdate{Schema: append(m.Schema, field)}, m.ETag); err != nil {
		t.Fatal(err)
	}
}

func TestUpdatedSchema(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	ids, wide := describe(t, "id int64"), describe(t, "id int64", "late string")
	c := writeClient(t, bq)
	call := connect(t, c)
	if r := call.append(ids.first(t, stream("d.t"), "id: 1")); r.GetUpdatedSchema() != nil {
		t.Error("a schema is announced that has not changed")
	}
	addColumn(t, bq, "d.t", &bigquery.FieldSchema{Name: "late", Type: bigquery.StringFieldType})
	t.Run("LBQ-92_once_on_each_open_connection", func(t *testing.T) {
		r := call.append(ids.next(t, "id: 2"))
		if f := r.GetUpdatedSchema().GetFields(); len(f) != 2 || f[1].GetName() != "late" || f[1].GetType() != storagepb.TableFieldSchema_STRING {
			t.Errorf("updated schema %v", r.GetUpdatedSchema())
		}
		if r := call.append(ids.next(t, "id: 3")); r.GetUpdatedSchema() != nil {
			t.Error("it is announced again")
		}
		if r := connect(t, c).append(ids.first(t, stream("d.t"), "id: 4")); r.GetUpdatedSchema() != nil {
			t.Error("it is announced to a connection opened after the change")
		}
	})
	t.Run("LBQ-93_the_wider_descriptor_is_accepted", func(t *testing.T) {
		call.append(wide.first(t, "", `id: 5 late: "x"`))
	})
	wantContents(t, bq, "d.t", `{"id":1,"late":null}`, `{"id":2,"late":null}`, `{"id":3,"late":null}`, `{"id":4,"late":null}`, `{"id":5,"late":"x"}`)
	t.Run("an error announces it too", func(t *testing.T) {
		call := connect(t, c)
		call.append(ids.first(t, stream("d.t"), "id: 6"))
		addColumn(t, bq, "d.t", &bigquery.FieldSchema{Name: "later", Type: bigquery.StringFieldType})
		if r := call.ask(at(ids.next(t, "id: 7"), 3)); r.GetError() == nil || len(r.GetUpdatedSchema().GetFields()) != 3 {
			t.Errorf("got %v", r)
		}
	})
}

func TestWindows(t *testing.T) {
	clock := localbq.NewManualClock()
	bq := start(t, localbq.Config{Profile: localbq.ServiceProfile(), Clock: clock, Seed: 7})
	ids, wide := describe(t, "id int64"), describe(t, "id int64", "late string")
	c := writeClient(t, bq)
	makeTable(t, bq, "d.t", column("id", "INTEGER"))
	t.Run("a fresh table denies appends for 1 to 10 seconds", func(t *testing.T) {
		denied := func() bool {
			call := connect(t, c)
			if err := call.Send(ids.first(t, stream("d.t"), "id: 1")); err != nil {
				t.Fatal(err)
			}
			_, err := call.Recv()
			if err != nil {
				wantStatus(t, status.Convert(err), codes.PermissionDenied, "Permission 'TABLES_UPDATE_DATA' denied on resource '"+path("d.t")+"'")
			}
			return err != nil
		}
		clock.Advance(time.Second - time.Millisecond)
		if !denied() {
			t.Error("accepted before the first second is over")
		}
		clock.Advance(9*time.Second + time.Millisecond)
		if denied() {
			t.Error("denied after ten seconds")
		}
	})
	open := connect(t, c)
	open.append(ids.first(t, stream("d.t"), "id: 2"))
	clock.Advance(time.Second)
	addColumn(t, bq, "d.t", &bigquery.FieldSchema{Name: "late", Type: bigquery.StringFieldType})
	t.Run("LBQ-94_a_new_column_takes_its_time", func(t *testing.T) {
		fresh := connect(t, c)
		fresh.refused(wide.first(t, stream("d.t"), `id: 3 late: "x"`), codes.InvalidArgument, "extra fields: 'late'")
		clock.Advance(time.Second)
		fresh.append(wide.next(t, `id: 3 late: "x"`))
	})
	t.Run("LBQ-92_an_open_connection_hears_of_it_after_7_seconds", func(t *testing.T) {
		clock.Advance(5*time.Second + 999*time.Millisecond)
		if r := open.append(ids.next(t, "id: 4")); r.GetUpdatedSchema() != nil {
			t.Error("announced too early")
		}
		clock.Advance(time.Millisecond)
		if r := open.append(ids.next(t, "id: 5")); len(r.GetUpdatedSchema().GetFields()) != 2 {
			t.Errorf("updated schema %v", r.GetUpdatedSchema())
		}
	})
	wantContents(t, bq, "d.t", `{"id":1,"late":null}`, `{"id":2,"late":null}`, `{"id":3,"late":"x"}`, `{"id":4,"late":null}`, `{"id":5,"late":null}`)
	t.Run("each window drawn is in the audit log", func(t *testing.T) {
		var notes []string
		for r, err := range bq.Audit().Records() {
			if err != nil {
				t.Fatal(err)
			}
			if r.RPC == "window" {
				notes = append(notes, r.Note)
			}
		}
		if len(notes) != 2 || !strings.Contains(notes[1], "unknown to new connections 1s, to open ones 7s") {
			t.Errorf("notes %q", notes)
		}
	})
}
