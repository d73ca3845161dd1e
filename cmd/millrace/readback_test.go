package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq"
)

// TestReadBack runs the example and reads every table back, with the command and with the official client over Storage
// Read: every value that went in comes out. What inference says it changes is taken out of the comparison: values that are
// null, [] or {} have no column, columns are renamed to the keys' own names, timestamps are compared as instants.
func TestReadBack(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	millrace(t, "run", example(t, "job.yaml"), "--local="+data, "--checkpoint-dir", "file://"+dir+"/checkpoints",
		"--set", "sink.bigquery.failures.deadLetter.file="+filepath.Join(dir, "dead"))
	input := deliveries(t)
	if len(input) != 58 {
		t.Fatalf("the input has %d event types, want 58", len(input))
	}
	local, err := localbq.Start(t.Context(), localbq.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	t.Run("command", func(t *testing.T) {
		for event, want := range input {
			out := millrace(t, "read", "my-project.github."+event, "--rest-endpoint", local.REST(), "--grpc-endpoint", local.GRPC(), "--original-keys")
			compareDocuments(t, event, want, decodeDocuments(t, out))
		}
	})
	t.Run("official_client", func(t *testing.T) {
		client, err := bigquery.NewClient(t.Context(), "my-project", local.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.EnableStorageReadClient(t.Context(), local.GRPCClientOptions()...); err != nil {
			t.Fatal(err)
		}
		for event, want := range input {
			compareDocuments(t, event, want, readOfficially(t, client, event))
		}
	})
}

// millrace runs the command in this process, which it would give a bound of memory when it reads.
func millrace(t *testing.T, args ...string) []byte {
	t.Helper()
	t.Setenv("GOMEMLIMIT", "off")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("millrace %s: status %d\n%s", strings.Join(args, " "), code, stderr.String())
	}
	return stdout.Bytes()
}

// deliveries are the documents of the example by event, then by delivery id.
func deliveries(t *testing.T) map[string]map[string]any {
	t.Helper()
	packed, err := os.Open(example(t, "events/deliveries.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		doc := decodeDocument(t, lines.Bytes())
		event := doc["event"].(string)
		if all[event] == nil {
			all[event] = map[string]any{}
		}
		all[event][doc["delivery_id"].(string)] = doc
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func decodeDocument(t *testing.T, text []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}

func decodeDocuments(t *testing.T, lines []byte) map[string]any {
	all := map[string]any{}
	for line := range bytes.Lines(lines) {
		doc := decodeDocument(t, line)
		all[doc["delivery_id"].(string)] = doc
	}
	return all
}

func readOfficially(t *testing.T, client *bigquery.Client, event string) map[string]any {
	t.Helper()
	rows := client.Dataset("github").Table(event).Read(t.Context())
	all := map[string]any{}
	for {
		var row map[string]bigquery.Value
		err := rows.Next(&row)
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		all[row["delivery_id"].(string)] = documentOf(t, row, rows.Schema)
	}
	return all
}

// documentOf makes a document of the client's values, with the keys that column descriptions tell.
func documentOf(t *testing.T, row map[string]bigquery.Value, schema bigquery.Schema) map[string]any {
	t.Helper()
	doc := map[string]any{}
	for _, f := range schema {
		key := f.Name
		if _, told, ok := strings.Cut(f.Description, "JSON key "); ok {
			if err := json.Unmarshal([]byte(told), &key); err != nil {
				t.Fatalf("description %q: %v", f.Description, err)
			}
		}
		doc[key] = plain(t, row[f.Name], f)
	}
	return doc
}

func plain(t *testing.T, v bigquery.Value, f *bigquery.FieldSchema) any {
	t.Helper()
	switch v := v.(type) {
	case []bigquery.Value:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(t, v[i], f)
		}
		return list
	case map[string]bigquery.Value:
		return documentOf(t, v, f.Schema)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case string:
		if f.Type == bigquery.JSONFieldType {
			return decodeDocument(t, []byte(`{"v":`+v+`}`))["v"]
		}
		return v
	case *big.Rat:
		return json.Number(v.RatString())
	case nil:
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return json.Number(text)
}

func compareDocuments(t *testing.T, event string, want, got map[string]any) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d documents went in, %d came out", event, len(want), len(got))
	}
	for id := range want {
		if d := cmp.Diff(substance(want[id]), substance(got[id])); d != "" {
			t.Errorf("%s, delivery %s, went in (-), came out (+):\n%s", event, id, d)
		}
	}
}

// substance leaves out what holds nothing, and puts numbers, booleans and instants into one form.
func substance(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if s := substance(member); s != nil {
				out[key] = s
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, e := range v {
			out = append(out, substance(e))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return "number " + r.RatString()
		}
		return string(v)
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "instant " + at.UTC().Format(time.RFC3339Nano)
		}
		return "text " + v
	}
	return v
}
