package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const good = `job: github-events
source:
  files: { paths: [events/*.ndjson.gz], format: ndjson }
sink:
  bigquery:
    method: default
    table: my-project.github.{event}
    schema: { infer: { sample: 1000 } }
    create: { disposition: if-needed, partition: { type: day, field: received_at }, cluster: [repository] }
    failures: { policy: dead-letter, deadLetter: { file: dlq.ndjson } }
checkpoint: { every: 10s, store: file://.millrace/checkpoints }
`

// faults parses and returns what is wrong, a line each.
func faults(t *testing.T, text string, set ...string) []string {
	t.Helper()
	_, err := Parse("job.yaml", []byte(text), set)
	var invalid *InvalidError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if err == nil {
		return nil
	}
	return strings.Split(invalid.Error(), "\n")
}

func TestGoodFile(t *testing.T) {
	p, err := Parse("dir/job.yaml", []byte(good), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := p.Sink.BigQuery
	if p.Job != "github-events" || p.Checkpoint.Every != 10*time.Second || b.Create.Partition.Field != "received_at" ||
		b.Schema.Infer.Sample != 1000 || b.Failures.DeadLetter.File != "dlq.ndjson" || p.Source.Files.Paths[0] != "events/*.ndjson.gz" {
		t.Errorf("got %+v", p.File)
	}
	if got := p.path("a"); got != filepath.Join("dir", "a") {
		t.Errorf("relative path leads to %q", got)
	}
	if got := p.path("/a"); got != "/a" {
		t.Errorf("absolute path leads to %q", got)
	}
	wd, _ := os.Getwd()
	if got, want := p.StoreURL(), "file://"+filepath.ToSlash(wd)+"/dir/.millrace/checkpoints"; got != want {
		t.Errorf("store is %q, want %q", got, want)
	}
}

// The four mistakes are found at once, each with its place and the nearest right spelling.
func TestEveryFaultAtOnceWithItsPlace(t *testing.T) {
	text := strings.NewReplacer(
		"method: default", "methud: default",
		"sample: 1000", "sample: many",
		"every: 10s", "every: 10 seconds",
		"{event}", "{event",
	).Replace(good)
	want := []string{
		`job.yaml:6:5: sink.bigquery.methud: unknown key; did you mean method?`,
		`job.yaml:7:30: sink.bigquery.table: `,
		`job.yaml:8:32: sink.bigquery.schema.infer.sample: expected a whole number; got the text "many"`,
		`job.yaml:11:22: checkpoint.every: "10 seconds" is not a duration: expected a number with a unit, such as 500ms, 10s, 5m or 1h30m`,
	}
	got := faults(t, text)
	if len(got) != len(want) {
		t.Fatalf("got %d faults, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("fault %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown value":           {"method: default", "method: defualt", `job.yaml:6:13: sink.bigquery.method: unknown value "defualt"; did you mean default?`},
		"method unknown":          {"method: default", "method: file-load", `job.yaml:6:13: sink.bigquery.method: unknown value "file-load"; did you mean file-loads?`},
		"FL-2 nowhere to stage":   {"method: default", "method: file-loads", "sink.bigquery.fileLoads.stagingPath: is required"},
		"FL-1 bad staging path":   {"method: default", "method: file-loads\n    fileLoads: { stagingPath: \"gs://b/*\" }", `job.yaml:7:31: sink.bigquery.fileLoads.stagingPath: is "gs://b/*"`},
		"FL-7 too often":          {"method: default", "method: file-loads\n    fileLoads: { stagingPath: gs://b }", "checkpoint.every: checkpoints come every 10s, and sink.bigquery.fileLoads.minCheckpointInterval is 2m0s"},
		"FL-9 replacing too soon": {"method: default", "method: file-loads\n    fileLoads: { stagingPath: gs://b, minCheckpointInterval: 1s, writeDisposition: write-truncate }", "sink.bigquery.fileLoads.writeDisposition: is WRITE_TRUNCATE, and a job that checkpoints"},
		"knobs of file loads":     {"method: default", "method: default\n    fileLoads: { stagingPath: gs://b }", "sink.bigquery.fileLoads: is only for method file-loads"},
		"zero for a default":      {"method: default", "method: file-loads\n    fileLoads: { stagingPath: gs://b, maxOpenDestinations: 0, minCheckpointInterval: 1s }", "fileLoads.maxOpenDestinations: must be positive: 0"},
		"key twice":               {"method: default", "method: default\n    method: default", `job.yaml:7:5: mapping key "method" already defined at [6:5]`},
		"missing key":             {"job: github-events\n", "", "job.yaml:1:1: job: this key is missing"},
		"number for a name":       {"job: github-events", "job: 12", "job.yaml:1:6: job: expected text"},
		"empty name":              {"job: github-events", `job: ""`, "job.yaml:1:6: job: is empty"},
		"text for a list":         {"[events/*.ndjson.gz]", "events", `job.yaml:3:19: source.files.paths: expected a list`},
		"no paths":                {"[events/*.ndjson.gz]", "[]", "job.yaml:3:19: source.files.paths: is empty"},
		"list of numbers":         {"[repository]", "[repository, 5]", "sink.bigquery.create.cluster[1]: expected text"},
		"too many columns":        {"[repository]", "[a, b, c, d, e]", "sink.bigquery.create.cluster: has 5 columns"},
		"two sections":            {"infer: { sample: 1000 }", "infer: { sample: 1000 }, table: true", "has table and infer: expected only one"},
		"no section":              {"{ infer: { sample: 1000 } }", "{}", "sink.bigquery.schema: expected one of file, table, infer"},
		"two parts":               {"my-project.github.{event}", "github.{event}", "sink.bigquery.table:"},
		"bad table":               {"my-project.github.{event}", "my-project.github.a/b", "sink.bigquery.table:"},
		"dead letters nowhere":    {", deadLetter: { file: dlq.ndjson }", "", "sink.bigquery.failures.policy: is dead-letter, and"},
		"dead letters unwanted":   {"policy: dead-letter", "policy: drop", "sink.bigquery.failures.deadLetter: means nothing"},
		"scheme":                  {"file://.millrace", "fiel://.millrace", `unknown scheme "fiel"; did you mean file?`},
		"no scheme":               {"file://.millrace", ".millrace", "is not a URL"},
		"negative":                {"sample: 1000", "sample: -1", "sink.bigquery.schema.infer.sample: -1 is negative"},
		"negative duration":       {"every: 10s", "every: -10s", "is negative"},
		"duration without unit":   {"every: 10s", "every: 10", `"10" is not a duration`},
		"nothing for a section":   {"infer: { sample: 1000 }", "infer: [1]", "expected keys below it"},
		"tab":                     {"  bigquery:", "\tbigquery:", "job.yaml:5:"},
		"second document":         {"checkpoint:", "---\ncheckpoint:", "a second document begins here"},
		"knobs of another method": {"method: default", "method: exactly-once\n    defaultStream: { maxAppendBytes: 1MB }", "job.yaml:7:20: sink.bigquery.defaultStream: is only for method default"},
		"knobs of exactly-once":   {"method: default", "method: default\n    bufferedStream: { maxAppendBytes: 1MB }", "sink.bigquery.bufferedStream: is only for method exactly-once"},
		"knob out of bounds":      {"method: default", "method: exactly-once\n    bufferedStream: { maxAppendBytes: 10MB }", ".maxAppendBytes: must be at most 9437184"},
		"option out of bounds":    {"method: default", "method: default\n    defaultStream: { maxAppendBytes: 10MB }", ".maxAppendBytes: must be at most 9437184"},
		"size":                    {"method: default", "method: default\n    defaultStream: { maxAppendBytes: big }", `"big" is not a size`},
		"key and emulator":        {"method: default", "method: default\n    connection: { keyFile: k.json, grpcEndpoint: \"localhost:1\" }", "sink.bigquery"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.old) {
				t.Fatalf("%q is not in the text", c.old)
			}
			got := strings.Join(faults(t, strings.Replace(good, c.old, c.new, 1)), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("got:\n%s\nwant: %s", got, c.want)
			}
		})
	}
}

func TestTextThatIsNoJobFile(t *testing.T) {
	for _, text := range []string{"", "# only a comment", "[]", "5", "\xff", "a: b: c", "{", "job: &a x\nsource: *a", strings.Repeat("[", 10_000), "? a\n: b"} {
		if len(faults(t, text)) == 0 {
			t.Errorf("%.20q: no fault", text)
		}
	}
}

func TestSet(t *testing.T) {
	p, err := Parse("job.yaml", []byte(good), []string{
		"checkpoint.every=5s", "parallelism=3", "source.files.paths=[a, b]", "sink.bigquery.table=p.d.t", "checkpoint.keep=7",
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Checkpoint.Every != 5*time.Second || p.Checkpoint.Keep != 7 || p.Parallelism != 3 || p.Sink.BigQuery.Table != "p.d.t" {
		t.Errorf("got %+v", p.File)
	}
	if d := cmp.Diff([]string{"a", "b"}, p.Source.Files.Paths); d != "" {
		t.Error(d)
	}
	if p.Checkpoint.Store == "" || p.Source.Files.Format != "ndjson" {
		t.Error("--set took away what stood beside")
	}
	for set, want := range map[string]string{
		"checkpoint.evry=5s": "--set: checkpoint.evry: unknown key; did you mean every?",
		"checkpoint.every=x": `--set: checkpoint.every: "x" is not a duration`,
		"parallelism":        `--set: "parallelism": expected key=value`,
		"=3":                 "--set: ",
		"parallelism=]":      "--set: parallelism: ",
		`a"b=3`:              "--set: a\"b: unknown key",
	} {
		if got := strings.Join(faults(t, good, set), "\n"); !strings.Contains(got, want) {
			t.Errorf("--set %s: got %q, want %q", set, got, want)
		}
	}
}

func TestNothingInASection(t *testing.T) {
	p, err := Parse("job.yaml", []byte(strings.Replace(good, "{ infer: { sample: 1000 } }", "{ infer: }", 1)),
		[]string{"sink.bigquery.failures.deadLetter=", "sink.bigquery.failures.policy=drop"})
	if err != nil {
		t.Fatal(err)
	}
	if b := p.Sink.BigQuery; b.Schema.Infer == nil || b.Failures.DeadLetter != nil {
		t.Errorf("a section without required keys is there with its defaults, got %+v; one with them is not there, got %+v", b.Schema, b.Failures)
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]Bytes{"0": 0, "12": 12, "1kB": 1000, "512KiB": 512 << 10, "8 MB": 8e6, "1GiB": 1 << 30} {
		if got, err := ParseBytes(s); err != nil || got != want {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "x", "-1", "1.5MB", "99999999999TB", "MB"} {
		if _, err := ParseBytes(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("job.yaml", text, nil)
		if (p == nil) == (err == nil) {
			t.Errorf("got %v and %v", p, err)
		}
	})
}

func TestYAMLIsReadBack(t *testing.T) {
	p, err := Parse("job.yaml", []byte(good), []string{`job="a: \"#b\""`, "sink.bigquery.create.labels={a: b, c: ''}", "source.files.maxRecordBytes=1MiB",
		"sink.bigquery.schema={infer: {}}"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("job.yaml", p.YAML(), nil)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, p.YAML())
	}
	if d := cmp.Diff(p.File, again.File); d != "" {
		t.Errorf("%s in:\n%s", d, p.YAML())
	}
}
