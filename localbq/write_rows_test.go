package localbq_test

import (
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq"
)

// The rules of types, descriptors and missing values have their table in internal/decode; here is what the wire shows of them.

func TestRows(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)

	t.Run("LBQ-52_LBQ-53_LBQ-54_bad_rows", func(t *testing.T) {
		makeTable(t, bq, "d.bad", &bqapi.TableFieldSchema{Name: "foo", Type: "STRING", MaxLength: 10}, column("bar", "TIMESTAMP"))
		r := describe(t, "foo string", "bar int64")
		call := connect(t, c)
		answer := call.ask(r.first(t, stream("d.bad"), `foo: "twelve chars"`, "bar: -9223372036854775808", `foo: "twelve chars"`, `foo: "fine"`))
		if code := codes.Code(answer.GetError().GetCode()); code != codes.InvalidArgument {
			t.Errorf("code %v", code)
		}
		want := "Errors found while processing rows. Please refer to the row_errors field for details. The list may not be complete because of the size limitations. Entity: " + stream("d.bad")
		if got := answer.GetError().GetMessage(); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if answer.GetAppendResult() != nil {
			t.Error("a refused append has a result")
		}
		messages := []string{
			"Field foo: STRING(10) has maximum length 10 but got a value with length 12 on field foo.",
			"Timestamp field value is out of range: -9223372036854775808 on field bar.",
			"Field foo: STRING(10) has maximum length 10 but got a value with length 12 on field foo.",
		}
		if len(answer.GetRowErrors()) != len(messages) {
			t.Fatalf("row errors %v", answer.GetRowErrors())
		}
		for i, e := range answer.GetRowErrors() {
			if e.GetIndex() != int64(i) || e.GetCode() != storagepb.RowError_FIELDS_ERROR || e.GetMessage() != messages[i] {
				t.Errorf("row error %d: %v", i, e)
			}
		}
		wantContents(t, bq, "d.bad")
		call.append(r.next(t, `foo: "fine"`))
		wantContents(t, bq, "d.bad", `{"bar":null,"foo":"fine"}`)
	})
	t.Run("at most 100 row errors, or as many as set", func(t *testing.T) {
		for limit, want := range map[int]int{0: 100, 7: 7} {
			p := localbq.FriendlyProfile()
			p.Limits.RowErrors = limit
			bq := start(t, localbq.Config{Profile: p})
			makeTable(t, bq, "d.t", column("d", "DATE"))
			var rows []string
			for range 150 {
				rows = append(rows, `d: "x"`)
			}
			answer := connect(t, writeClient(t, bq)).ask(describe(t, "d string").first(t, stream("d.t"), rows...))
			if got := len(answer.GetRowErrors()); got != want {
				t.Errorf("limit %d: %d row errors, want %d", limit, got, want)
			}
		}
	})
	t.Run("LBQ-55_extra_field", func(t *testing.T) {
		makeTable(t, bq, "d.extra", column("id", "INTEGER"))
		call := connect(t, c)
		s := call.refused(describe(t, "id int64", "more string", "most string").first(t, stream("d.extra"), "id: 1"), codes.InvalidArgument,
			"Input schema has more fields than BigQuery schema, extra fields: 'more,most' Entity: "+stream("d.extra"))
		if code := storageCode(t, s); code != storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS {
			t.Errorf("StorageError %v", code)
		}
		call.append(describe(t, "id int64").first(t, "", "id: 1"))
	})
	t.Run("LBQ-57_required_column_left_out", func(t *testing.T) {
		makeTable(t, bq, "d.required", column("id", "INTEGER", "REQUIRED"), column("s", "STRING"))
		answer := connect(t, c).ask(describe(t, "s string").first(t, stream("d.required"), `s: "x"`))
		if codes.Code(answer.GetError().GetCode()) != codes.InvalidArgument || len(answer.GetRowErrors()) != 0 {
			t.Errorf("got %v", answer)
		}
	})
	t.Run("LBQ-58_required_value_missing", func(t *testing.T) {
		answer := connect(t, c).ask(describe(t, "id int64", "s string").first(t, stream("d.required"), "id: 1", `s: "x"`))
		if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 1 || e[0].GetMessage() != "Field value of id cannot be empty." {
			t.Errorf("got %v", e)
		}
	})
	t.Run("LBQ-74_mismatch", func(t *testing.T) {
		connect(t, c).refused(describe(t, "id uint64").first(t, stream("d.extra"), "id: 1"), codes.InvalidArgument,
			"The proto field mismatched with BigQuery field at extra.id, the proto field type uint64, BigQuery field type INTEGER")
	})
	t.Run("LBQ-113 changes of a table without a key", func(t *testing.T) {
		connect(t, c).refused(describe(t, "id int64", "_CHANGE_TYPE string").first(t, stream("d.extra"), `id: 1 _CHANGE_TYPE: "UPSERT"`), codes.InvalidArgument, "requires a primary key")
	})
}

func TestMissingValues(t *testing.T) {
	bq := start(t, localbq.Config{})
	makeTable(t, bq, "d.t", column("id", "INTEGER"),
		&bqapi.TableFieldSchema{Name: "status", Type: "STRING", DefaultValueExpression: "'new'"},
		&bqapi.TableFieldSchema{Name: "absent", Type: "INTEGER", DefaultValueExpression: "7"})
	r := describe(t, "id int64", "status string")
	call := connect(t, writeClient(t, bq))

	call.append(r.first(t, stream("d.t"), "id: 1")) // LBQ-69: NULL, and the default of the column left out
	q := r.next(t, "id: 2")
	q.DefaultMissingValueInterpretation = storagepb.AppendRowsRequest_DEFAULT_VALUE
	call.append(q)
	call.append(r.next(t, "id: 3")) // LBQ-70: still in force
	q = r.next(t, "id: 4")
	q.MissingValueInterpretations = map[string]storagepb.AppendRowsRequest_MissingValueInterpretation{"status": storagepb.AppendRowsRequest_NULL_VALUE}
	call.append(q)                  // LBQ-71: overridden
	call.append(r.next(t, "id: 5")) // LBQ-71: for that request only
	wantContents(t, bq, "d.t",
		`{"absent":7,"id":1,"status":null}`,
		`{"absent":7,"id":2,"status":"new"}`,
		`{"absent":7,"id":3,"status":"new"}`,
		`{"absent":7,"id":4,"status":null}`,
		`{"absent":7,"id":5,"status":"new"}`)
}

func TestModes(t *testing.T) {
	bq := start(t, localbq.Config{Modes: map[string]localbq.Mode{"d.null": localbq.ModeNull, "local-project.d.checked": localbq.ModeValidate}})
	c := writeClient(t, bq)
	for table, checks := range map[string]bool{"d.null": false, "d.checked": true, "d.stored": true} {
		t.Run(table, func(t *testing.T) {
			makeTable(t, bq, table, column("d", "DATE"))
			r := describe(t, "d string")
			call := connect(t, c)
			call.append(r.first(t, stream(table), `d: "2024-01-01"`, `d: "2024-01-02"`))
			if answer := call.ask(r.next(t, `d: "no date"`)); (answer.GetError() != nil) != checks {
				t.Errorf("a bad row: %v", answer)
			}
			call.refused(describe(t, "x string").first(t, "", `x: "1"`), codes.InvalidArgument, "extra fields")
			rows, err := bq.NumRows(table)
			if want := map[bool]int64{true: 2, false: 3}[checks]; err != nil || rows != want {
				t.Errorf("%d rows, %v, want %d", rows, err, want)
			}
			if _, err := bq.Batches(table); (err == nil) != (table == "d.stored") {
				t.Errorf("reading: %v", err)
			}
		})
	}
}
