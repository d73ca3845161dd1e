package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/doctor"
	"github.com/millrace-dev/millrace/localbq"
)

// patient is a job over one file, and the service that it would write to.
type patient struct {
	bq     *localbq.Instance
	dir    string
	parsed *job.Parsed
	around job.Surroundings
	now    func() time.Time
}

// admit makes a job with these keys of its sink.
func admit(t *testing.T, records, sink string) *patient {
	t.Helper()
	bq, err := localbq.Start(t.Context(), localbq.Config{Project: "p", AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &patient{bq: bq, dir: t.TempDir()}
	p.around.Connection = &bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
	if err := os.WriteFile(filepath.Join(p.dir, "in.ndjson"), []byte(records), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "job: j\nsource: { files: { paths: [in.ndjson] } }\ncheckpoint: { store: file://state }\nsink:\n  bigquery:\n"
	for line := range strings.Lines(sink) {
		text += "    " + strings.TrimSpace(line) + "\n"
	}
	if p.parsed, err = job.Parse(filepath.Join(p.dir, "job.yaml"), []byte(text), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

const plain = "table: p.d.t\nschema: { infer: {} }\n"

func (p *patient) table(t *testing.T, schema string) {
	t.Helper()
	var columns bqapi.TableSchema
	if err := json.Unmarshal([]byte(`{"fields": `+schema+`}`), &columns); err != nil {
		t.Fatal(err)
	}
	if err := p.bq.CreateTable("d.t", &columns); err != nil {
		t.Fatal(err)
	}
}

func (p *patient) examine(t *testing.T) *doctor.Report {
	t.Helper()
	r, err := doctor.Examine(t.Context(), p.parsed, p.around, doctor.Options{Now: p.now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// about are the findings on a thing, a line each.
func about(r *doctor.Report, thing string) []string {
	var all []string
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Thing, thing) {
			all = append(all, fmt.Sprintf("%s %s: %s", f.Level, f.Thing, f.Found))
		}
	}
	return all
}

func wants(t *testing.T, r *doctor.Report, thing string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, about(r, thing)); d != "" {
		t.Errorf("findings on %s (-want +got):\n%s", thing, d)
	}
	for _, f := range r.Findings {
		if f.Level == doctor.Error && f.Do == "" {
			t.Errorf("%+v: an error without anything to do about it", f)
		}
	}
}

func TestNothingIsThereYet(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain+"create: { datasets: true }")
	r := p.examine(t)
	wants(t, r, "dataset", "ok dataset p.d: is not there, and would be made; it needs bigquery.datasets.create on the project")
	wants(t, r, "table", "ok table p.d.t: is not there, and would be made; it needs bigquery.tables.create on the dataset, which no call tells ahead")
	wants(t, r, "credentials", "ok credentials: none: it is an emulator that is asked")
	if r.Worst() != doctor.OK {
		t.Errorf("worst is %s: %+v", r.Worst(), r.Findings)
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, "state", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left %v in the store, %v", left, err)
	}
	if _, err := p.bq.NumRows("d.t"); err == nil {
		t.Error("the table was made")
	}

	p = admit(t, `{"n": 1}`, plain+"create: { disposition: never }")
	r = p.examine(t)
	wants(t, r, "dataset", "error dataset p.d: is not there, or the project is not")
	wants(t, r, "table", "error table p.d.t: is not there, and create.disposition is never")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	const name = "permissions on table p.d.t"
	for title, c := range map[string]struct {
		denied []string
		thing  string
		want   []string
	}{
		"none is missing": {nil, name, []string{"ok " + name + ": all that the job needs: bigquery.tables.updateData, bigquery.tables.get"}},
		"writing":         {[]string{"bigquery.tables.updateData"}, name, []string{"error " + name + ": bigquery.tables.updateData is missing, to append rows (AppendRows)"}},
		"both": {[]string{"bigquery.tables.updateData", "bigquery.tables.get"}, name, []string{
			"error " + name + ": bigquery.tables.updateData is missing, to append rows (AppendRows)",
			"error " + name + ": bigquery.tables.get is missing, to find out where its dataset is (GetWriteStream)"}},
		"reading columns": {[]string{"bigquery.tables.get"}, "table", []string{"warn table p.d.t: may not be looked at, or is not there: its columns are not compared"}},
		"looking at the dataset": {[]string{"bigquery.datasets.get"}, "dataset", []string{
			"warn dataset p.d: may not be looked at, or is not there: read dataset p.d: googleapi: Error 403: Access Denied: Dataset p:d: Permission bigquery.datasets.get denied on dataset p:d (or it may not exist)., accessDenied"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			p := admit(t, `{"n": 1}`, plain)
			p.table(t, `[{"name": "n", "type": "INTEGER"}]`)
			if err := p.bq.SetDenials(denials(c.denied)...); err != nil {
				t.Fatal(err)
			}
			wants(t, p.examine(t), c.thing, c.want...)
		})
	}
}

func denials(permissions []string) (all []localbq.Denial) {
	for _, p := range permissions {
		all = append(all, localbq.Denial{Permission: p})
	}
	return all
}

func TestColumns(t *testing.T) {
	t.Parallel()
	const good = "ok table p.d.t: is there, and takes what the job writes"
	for title, c := range map[string]struct {
		live, records, sink string
		want                []string
	}{
		"the same":       {`[{"name": "n", "type": "INTEGER"}]`, `{"n": 1}`, "", []string{good}},
		"more than rows": {`[{"name": "m", "type": "DATE"}, {"name": "N", "type": "INTEGER"}]`, `{"n": 1}`, "", []string{good}},
		"fewer": {`[{"name": "n", "type": "INTEGER"}, {"name": "s", "type": "RECORD", "fields": [{"name": "a", "type": "STRING"}]}]`,
			`{"n": 1, "s": {"a": "x", "b": 2}, "c": true}`, "", []string{
				"error table p.d.t: added: column s.b is missing, wanted INT64 NULLABLE", "error table p.d.t: added: column c is missing, wanted BOOL NULLABLE"}},
		"fewer, and they may be added": {`[{"name": "n", "type": "INTEGER"}]`, `{"n": 1, "c": true}`, "schemaUpdate: { allowNewFields: true }", []string{
			"ok table p.d.t: added: column c is missing, wanted BOOL NULLABLE, which the job would change", good}},
		"of another type": {`[{"name": "n", "type": "STRING"}, {"name": "l", "type": "INTEGER", "mode": "REPEATED"}]`, `{"n": 1, "l": 2}`, "schemaUpdate: { allowNewFields: true }", []string{
			"error table p.d.t: the schemas have no union: column n: is STRING, and INT64 elsewhere: types cannot change",
			"error table p.d.t: the schemas have no union: column l: is REPEATED, and NULLABLE elsewhere: a column cannot become a list, or stop being one"}},
		"REQUIRED": {`[{"name": "n", "type": "INTEGER", "mode": "REQUIRED"}, {"name": "m", "type": "INTEGER", "mode": "REQUIRED"}]`, `{"n": 1}`, "", []string{
			"error table p.d.t: column m is REQUIRED, and rows have no such column", "warn table p.d.t: column n is REQUIRED, and rows may have none"}},
		"REQUIRED, and may be relaxed": {`[{"name": "n", "type": "INTEGER", "mode": "REQUIRED"}]`, `{"n": 1}`, "schemaUpdate: { allowFieldRelaxation: true }", []string{
			"ok table p.d.t: remoded: column n is REQUIRED, wanted NULLABLE, which the job would change", good}},
		"another layout": {`[{"name": "n", "type": "INTEGER"}, {"name": "d", "type": "DATE"}]`, `{"n": 1, "d": "2026-01-01"}`, "create: { partition: { type: day, field: d }, cluster: [n] }", []string{
			good, "warn table p.d.t: is not partitioned by day of d, and stays as it is", "warn table p.d.t: is clustered by [], not by [n], and stays as it is"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			p := admit(t, c.records, plain+c.sink)
			p.table(t, c.live)
			wants(t, p.examine(t), "table", c.want...)
		})
	}
}

func TestPlacesAndClocks(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain+"location: EU")
	p.table(t, `[{"name": "n", "type": "INTEGER"}]`)
	wants(t, p.examine(t), "dataset", "warn dataset p.d: is in US, and sink.bigquery.location says EU")
	wants(t, p.examine(t), "clock", "ok clock of this machine: agrees with that of BigQuery")
	p.now = func() time.Time { return time.Now().Add(-time.Hour) }
	if got := about(p.examine(t), "clock"); len(got) != 1 || !strings.HasPrefix(got[0], "warn clock of this machine: is 1h0m") && !strings.HasPrefix(got[0], "warn clock of this machine: is 59m") {
		t.Errorf("findings %q", got)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	const records = `{"n": 1, "k": "a"}` + "\n" + `{"n": 2, "k": "no.table"}` + "\n"
	p := admit(t, records, "table: p.d.{k}\nschema: { infer: {} }")
	wants(t, p.examine(t), "input", "error input: 1 file of the format ndjson, 45 bytes; 1 of 2 records that were looked at lead to no table")
	p = admit(t, records, "table: p.d.{k}\nschema: { infer: {} }\nfailures: { policy: drop }")
	wants(t, p.examine(t), "input", "warn input: 1 file of the format ndjson, 45 bytes; 1 of 2 records that were looked at lead to no table")

	p = admit(t, records, plain)
	p.parsed.Source.Files.Paths = []string{"-"}
	r := p.examine(t)
	wants(t, r, "input", "ok input: standard input, which is left alone: what it holds is not known")

	p.parsed.Source.Files.Paths = []string{"nowhere"}
	_, err := doctor.Examine(t.Context(), p.parsed, p.around, doctor.Options{})
	if invalid, ok := errors.AsType[*job.InvalidError](err); !ok || !strings.Contains(invalid.Error(), `there is no file "`) {
		t.Errorf("error %v", err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain)
	if err := os.WriteFile(filepath.Join(p.dir, "state"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := about(p.examine(t), "checkpoint store"); len(got) != 1 || !strings.HasPrefix(got[0], "error checkpoint store file://"+filepath.ToSlash(p.dir)+"/state: cannot be written: ") {
		t.Errorf("findings %q", got)
	}
	p.parsed.Checkpoint.Store, p.parsed.Sink.BigQuery.Method = "mem://", "exactly-once"
	wants(t, p.examine(t), "checkpoint store", "warn checkpoint store mem://: is gone with the process: what was written and not made visible by then never is")
}

func TestServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.around.Connection.GRPCEndpoint = nobody
	if got := about(p.examine(t), "Storage Write API"); len(got) != 1 || !strings.HasPrefix(got[0], "error Storage Write API: does not answer: ") {
		t.Errorf("findings %q", got)
	}
	p.around.Connection.GRPCEndpoint, p.around.Connection.RESTEndpoint = p.bq.GRPC(), nobody
	if got := about(p.examine(t), "BigQuery"); len(got) != 1 || !strings.HasPrefix(got[0], "error BigQuery: does not answer: ") {
		t.Errorf("findings %q", got)
	}
}

func TestCredentialsAreNotQuoted(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain)
	secret := filepath.Join(p.dir, "secret\nname.json")
	if err := os.WriteFile(secret, []byte(`{"type": "service_account", "private_key": "secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.around.Connection = &bigquery.Connection{KeyFile: secret}
	r := p.examine(t)
	wants(t, r, "credentials", "error credentials: sink.bigquery.connection.keyFile: "+bigquery.ErrCredentials.Error())
	if text := fmt.Sprint(r); strings.Contains(text, "secret") {
		t.Errorf("quotes the key or its path: %s", text)
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain+"create: { partition: { type: hour, expiration: 20000h } }")
	if got := about(p.examine(t), "quota"); len(got) != 1 || !strings.HasPrefix(got[0], "warn quota: partitions of a table: takes up to 20,001") {
		t.Errorf("findings %q", got)
	}
}

func TestTableThatIsToBeRead(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, "table: p.d.t\nschema: { table: true }")
	r := p.examine(t)
	wants(t, r, "job", "error job j: cannot be planned: sink.bigquery.schema.table: read table p.d.t: does not exist: googleapi: Error 404: Not found: Dataset p:d, notFound")
	wants(t, r, "dataset", "error dataset p.d: is not there, or the project is not")
	wants(t, r, "table", "error table p.d.t: is not there, and the job takes its columns from it")
	p.table(t, `[{"name": "n", "type": "INTEGER"}]`)
	wants(t, p.examine(t), "table", "ok table p.d.t: is there, and takes what the job writes")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := admit(t, `{"n": 1}`, plain)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := doctor.Examine(ctx, p.parsed, p.around, doctor.Options{}); !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
