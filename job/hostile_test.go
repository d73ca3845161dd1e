package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/files"
)

// Each of these once was taken for something else, crashed, or kept the parser busy for minutes.
func TestHostileFiles(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, c := range map[string]struct{ text, want string }{
		"byte order mark":         {"\xef\xbb\xbf" + good, ""},
		"CRLF":                    {strings.ReplaceAll(good, "\n", "\r\n"), ""},
		"directive and end":       {"%YAML 1.2\n---\n" + good + "...\n", ""},
		"binary tag":              {replace("job: github", "job: !!binary github"), "job.yaml:1:6: job: has the tag !!binary"},
		"tag of a list":           {replace("[events", "!mine [events"), "has the tag !mine"},
		"alias":                   {replace("job: github-events", "job: &a x\nrestart: { policy: *a }"), "got an alias"},
		"merge key":               {replace("    method: default", "    <<: { method: default }"), "sink.bigquery.<<: unknown key"},
		"self-reference":          {replace("job: github-events", "job: &a [*a]"), "expected text"},
		"look-alike":              {replace("job:", "jоb:"), "did you mean job?"},
		"key that steers":         {"\"\\e[31mjob\": x\n" + good, `"\x1b[31mjob": unknown key`},
		"name that steers":        {replace("github-events", `"a\u009b31m"`), "cannot be seen"},
		"name that turns":         {replace("github-events", `"a\u202eb"`), "cannot be seen"},
		"zero byte":               {replace("github-events", "a\x00b"), "cannot be seen"},
		"half a surrogate":        {replace("github-events", "a\xed\xa0\x80"), "is not valid UTF-8"},
		"deep flow":               {"job: " + strings.Repeat("[", 100_000), "is nested deeper than 100"},
		"deep flow, closed":       {"job: " + strings.Repeat("{a: ", 50_000) + strings.Repeat("}", 50_000), "is nested deeper than 100"},
		"deep list":               {"job:\n  " + strings.Repeat("- ", 100_000) + "a", "is nested deeper than 100"},
		"many keys":               {good + strings.Repeat("k: 1\n", 100_000), "has more than 2000 keys"},
		"a key of a megabyte":     {strings.Repeat("k", 1<<20) + ": 1\n" + good, "k…: unknown key"},
		"a value of a megabyte":   {good + "parallelism: " + strings.Repeat("k", 1<<20) + "\n", "…"},
		"more lanes than memory":  {good + "parallelism: 9223372036854775807\n", "is too large: expected at most 10000"},
		"more than an integer":    {good + "parallelism: 99999999999999999999\n", "expected a whole number"},
		"a store that is no URL":  {replace("file://.millrace/checkpoints", "gs://"), "is not a URL"},
		"a store of another kind": {replace("file://.millrace/checkpoints", "s3://bucket"), `unknown scheme "s3"`},
	} {
		got := strings.Join(faults(t, c.text), "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %.300q, want %q", name, got, c.want)
		}
		if len(got) > 10_000 {
			t.Errorf("%s: %d bytes of faults", name, len(got))
		}
	}
}

func TestLongListsAreTaken(t *testing.T) {
	text := strings.Replace(good, "[events/*.ndjson.gz]", "["+strings.Repeat("a, ", 5000)+"b]", 1)
	if got := faults(t, text); got != nil {
		t.Error(got)
	}
	text = "source:\n  files:\n    paths:\n" + strings.Repeat("    - a\n", 5000) + strings.Replace(good, "source:\n  files: { paths: [events/*.ndjson.gz], format: ndjson }\n", "", 1)
	if got := faults(t, text); got != nil {
		t.Error(got)
	}
}

func TestSetValuesStayWhereTheyAreSet(t *testing.T) {
	for set, want := range map[string]string{
		"job=a, parallelism: 3":                      "--set: job: expected text", // and no second key
		"sink.bigquery.table=my-project.d.{a}_{b}":   "",
		"checkpoint.every=5s # often":                "",
		"sink.bigquery.schema.infer=":                "sink.bigquery.schema: expected one of file, table, infer",
		"source=":                                    "--set: source: this key is missing",
		"source.files.paths=a,b":                     `--set: source.files.paths: expected a list`,
		"job=!!binary aGk=":                          "--set: job: has the tag !!binary",
		"job=\xff":                                   "is not valid UTF-8",
		"job..x=1":                                   "--set: job..x: is no key",
		".=1":                                        "--set: .: is no key",
		strings.Repeat("a.", 50_000) + "a=1":         "is no key",
		"checkpoint.every=5":                         "--set: checkpoint.every: \"5\" is not a duration",
		"sink.bigquery.create.labels={a.b: x, c: d}": "",
	} {
		got := strings.Join(faults(t, good, set), "\n")
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("--set %.60q: got %.300q, want %q", set, got, want)
		}
	}
	// A section that is taken away makes room for another.
	p, err := Parse("job.yaml", []byte(good), []string{"sink.bigquery.schema.infer=", "sink.bigquery.schema.table=true", "job=a, b"})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Sink.BigQuery.Schema; s.Infer != nil || !s.Table || p.Job != "a, b" {
		t.Errorf("got %+v, job %q", s, p.Job)
	}
}

// prepare makes a job of one file ready, in a folder of its own.
func prepare(t *testing.T, dir string, s Surroundings, set ...string) (*Pipeline, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "in.ndjson"), []byte("{\"a\":1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(filepath.Join(dir, "job.yaml"), []byte("job: j\nsource: { files: { paths: [in.ndjson] } }\n"+
		"sink: { bigquery: { table: p.d.t, schema: { infer: {} }, connection: { restEndpoint: 'localhost:1', grpcEndpoint: 'localhost:1' } } }\n"), set)
	if err != nil {
		t.Fatal(err)
	}
	return p.Prepare(t.Context(), s)
}

// Dead letters that are read become records, whose dead letters are read.
func TestDeadLettersApartFromTheInput(t *testing.T) {
	for _, c := range []struct{ paths, file, want string }{
		{"[in.ndjson]", "in.ndjson", "is among the files that are read"},
		{"['*.ndjson']", "dead.ndjson", "is among the files that are read"},
		{"['*.ndjson']", "dead.txt", ""},
		{"['*.ndjson']", ".", "no regular file"},
	} {
		_, err := prepare(t, t.TempDir(), Surroundings{}, "source.files.paths="+c.paths,
			"sink.bigquery.failures={policy: dead-letter, deadLetter: {file: "+c.file+"}}")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: error %v, want %q", c.paths, c.file, err, c.want)
		}
	}
}

// To look through standard input for its tables would leave nothing to write.
func TestTablesOfStandardInput(t *testing.T) {
	_, err := prepare(t, t.TempDir(), Surroundings{Stdin: strings.NewReader("{\"a\":1}\n")},
		"source.files.paths=['-']", "sink.bigquery.table=p.d.{a}", "sink.bigquery.schema.infer=", "sink.bigquery.schema.table=true")
	if err == nil || !strings.Contains(err.Error(), "standard input cannot be looked through") {
		t.Errorf("error %v", err)
	}
}

func newScan(t *testing.T, sample int) (*scan, *files.Source) {
	t.Helper()
	src, err := files.NewSource([]string{files.Stdin}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &scan{sample: sample}, src
}

func TestPeekEndsWithItsContext(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close() // and with it the read
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, src := newScan(t, 1)
	if err := s.peek(ctx, src, in); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// endless gives the same byte for ever.
type endless struct{ given int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.given += int64(len(p))
	return copy(p, bytes.Repeat([]byte{'a'}, len(p))), nil
}

func TestPeekIsBounded(t *testing.T) {
	in := &endless{}
	s, src := newScan(t, 1000)
	if err := s.peek(t.Context(), src, in); err != nil {
		t.Fatal(err)
	}
	if in.given > maxPeekBytes+1<<20 {
		t.Errorf("%d bytes of one line are held in memory", in.given)
	}
}
