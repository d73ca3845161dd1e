package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/internal/telemetry"
	"github.com/millrace-dev/millrace/job"
)

// badKeyFiles are key files that cannot be used, by what is wrong with them. Their paths and contents hold the word Sekret.
func badKeyFiles(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Sekret-folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"absent": filepath.Join(dir, "absent.json"), "a folder": dir}
	for what, f := range map[string]struct{ name, content string }{
		"wrong type":    {"user.json", `{"type":"authorized_user","client_id":"Sekret","client_secret":"Sekret","refresh_token":"Sekret"}`},
		"broken JSON":   {"broken.json", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nSekret`},
		"broken key":    {"key.json", `{"type":"service_account","client_email":"Sekret@x","private_key":"-----BEGIN PRIVATE KEY-----\nSekret\n-----END PRIVATE KEY-----\n"}`},
		"no permission": {"denied.json", "Sekret"},
		"newline":       {"a\nb.json", "Sekret: yaml"},
	} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, []byte(f.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if what == "no permission" {
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
		}
		all[what] = path
	}
	return all
}

// A key file that cannot be used is an error that names the option, in every command, and neither the path nor what the file
// holds is found anywhere: on standard output, standard error, in logs of either format, in checkpoints.
func TestBadKeyFiles(t *testing.T) {
	for what, key := range badKeyFiles(t) {
		for _, format := range []string{"text", "json"} {
			t.Run("SW-153 "+what+"/"+format, func(t *testing.T) {
				dir := t.TempDir()
				put(t, filepath.Join(dir, "in.ndjson"), `{"a":1}`)
				put(t, filepath.Join(dir, "job.yaml"), `
job: keys
source: { files: { paths: [in.ndjson] } }
sink: { bigquery: { table: p.d.t, schema: { infer: {} } } }
checkpoint: { every: 1ms }
`)
				put(t, filepath.Join(dir, "copy.yaml"), `
job: copies
source: { bigquery: { table: p.d.t } }
sink: { bigquery: { table: p.d.u, schema: { infer: {} } } }
`)
				keyed := "sink.bigquery.connection={keyFile: " + yamlText(key) + "}"
				readKey := "connection={keyFile: " + yamlText(key) + "}"
				for _, c := range []struct {
					option string
					args   []string
				}{
					{"sink.bigquery.connection.keyFile: ", []string{"run", dir + "/job.yaml", "--set", "sink.bigquery.connection.keyFile=" + yamlText(key)}},
					{"sink.bigquery.connection.keyFile: ", []string{"run", dir + "/job.yaml", "--set", keyed,
						"--set", "sink.bigquery.schema.infer=", "--set", "sink.bigquery.schema.table=true"}},
					{"sink.bigquery.connection.keyFile: ", []string{"run", dir + "/job.yaml", "--set", keyed, "--set", "sink.bigquery.method=exactly-once"}},
					{"source.bigquery.connection.keyFile: ", []string{"run", dir + "/copy.yaml", "--set", "source.bigquery." + readKey}},
					{"source.bigquery.connection.keyFile: ", []string{"plan", dir + "/copy.yaml", "--set", "source.bigquery." + readKey}},
					{"source.bigquery.connection.keyFile: ", []string{"run", dir + "/copy.yaml", "--set", "source.bigquery." + readKey,
						"--set", "source.bigquery.table=", "--set", "source.bigquery.query=SELECT 1", "--set", "source.bigquery.parentProject=p"}},
					{"sink.bigquery.connection.keyFile: ", []string{"run", dir + "/copy.yaml", "--set", keyed}}, // which the source has, too
					{"sink.bigquery.connection.keyFile: ", []string{"run", dir + "/job.yaml", "--set", keyed, "--set", "sink.bigquery.method=file-loads",
						"--set", "sink.bigquery.fileLoads.stagingPath=gs://bucket/x", "--set", "checkpoint.every="}},
					{"sink.bigquery.failures.deadLetter.pubsub.keyFile: ", []string{"run", dir + "/job.yaml",
						"--set", "sink.bigquery.connection={grpcEndpoint: '127.0.0.1:1', restEndpoint: '127.0.0.1:1'}",
						"--set", "sink.bigquery.failures={policy: dead-letter, deadLetter: {pubsub: {topic: projects/p/topics/dead, keyFile: " + yamlText(key) + "}}}"}},
					{"--key-file: ", []string{"dlq", "show", "--subscription", "projects/p/subscriptions/dead", "--key-file", key}},
					{"--key-file: ", []string{"dlq", "show", "--table", "p.d.t", "--key-file", key}},
					{"--key-file: ", []string{"write", "p.d.t", dir + "/in.ndjson", "--key-file", key, "--checkpoint-dir", "file://" + dir + "/cp"}},
					{"--key-file: ", []string{"read", "p.d.t", "--key-file", key}},
					{"--key-file: ", []string{"query", "SELECT 1", "--project", "p", "--key-file", key}},
				} {
					var stdout, stderr bytes.Buffer
					code := run(t.Context(), append(c.args, "--log-format", format, "-v"), strings.NewReader(""), &stdout, &stderr)
					if code != exitFailed || !strings.Contains(stderr.String(), c.option) || !strings.Contains(stderr.String(), "service account key file given ") {
						t.Errorf("%v ended with %d and said %s", c.args, code, &stderr)
					}
					for name, out := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
						if strings.Contains(out, "Sekret") {
							t.Errorf("%s: %s tells the path or the key: %s", c.args[0], name, out)
						}
					}
				}
				noFileHas(t, dir, "Sekret")
			})
		}
	}
}

// Nor is it found in what a run shows of itself while it lasts and afterwards: /api/job, metrics, lineage.
func TestBadKeyFilesWhileWatched(t *testing.T) {
	for what, key := range badKeyFiles(t) {
		t.Run("SW-153 "+what, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "in.ndjson"), `{"a":1}`)
			put(t, filepath.Join(dir, "job.yaml"), `
job: keys
source: { files: { paths: [in.ndjson] } }
sink: { bigquery: { table: p.d.t, schema: { infer: {} } } }
lineage: { file: lineage.ndjson }
`)
			parsed, err := job.Load(filepath.Join(dir, "job.yaml"), []string{"sink.bigquery.connection.keyFile=" + yamlText(key)})
			if err != nil {
				t.Fatal(err)
			}
			pipeline, err := parsed.Prepare(t.Context(), job.Surroundings{})
			if err != nil {
				t.Fatal(err)
			}
			meters, err := telemetry.New()
			if err != nil {
				t.Fatal(err)
			}
			defer meters.Close(context.Background())
			w := &watcher{handle: new(engine.Handle), meters: meters}
			w.show(pipeline)
			if _, err := pipeline.Run(t.Context(), job.RunOptions{Handle: w.handle, Meter: meters}); !errors.Is(err, bigquery.ErrCredentials) {
				t.Fatalf("ended with %v", err)
			}
			routes := w.routes("")
			shown := ask(routes, "GET", "/api/job").Body.String()
			if !strings.Contains(shown, "key file given in the sink configuration") || strings.Contains(shown, "Sekret") {
				t.Errorf("/api/job is %s", shown)
			}
			if metrics := ask(routes, "GET", "/metrics").Body.String(); strings.Contains(metrics, "Sekret") {
				t.Errorf("metrics are %s", metrics)
			}
			noFileHas(t, dir, "Sekret")
		})
	}
}

// A key file together with an emulator is refused before any work.
func TestKeyFileWithEmulator(t *testing.T) {
	t.Run("SW-153", func(t *testing.T) {
		var stderr bytes.Buffer
		code := run(t.Context(), []string{"write", "p.d.t", "-", "--key-file", "Sekret", "--grpc-endpoint", "localhost:1"}, strings.NewReader(""), &stderr, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), "--key-file: cannot be combined with an emulator endpoint") || strings.Contains(stderr.String(), "Sekret") {
			t.Errorf("ended with %d and said %s", code, &stderr)
		}
	})
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// yamlText is s as a YAML scalar.
func yamlText(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

// noFileHas checks that no file below dir holds a word.
func noFileHas(t *testing.T, dir, word string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(word)) {
			t.Errorf("%s has %q", path, word)
		}
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}
