package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
	"github.com/millrace-dev/millrace/stream"
)

var readRows = flag.Int("readrows", 40_000, "how many rows the table has that the crash suite reads")

// killedReads are reads of a table of 8 streams, killed and resumed.
type killedReads struct {
	format string
	many   bool
	dirs   sync.Map // of a *localbq.Instance: where its client writes
}

const killedTable = "my-project.github.events"

func (k *killedReads) test(t *testing.T) killtest.Test {
	t.Helper()
	c := localbq.Config{Project: "my-project", AutoCreateDataset: true}
	c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 240, 2000
	return killtest.Test{
		Config:  c,
		Prepare: fillKilledTable,
		Client: func(_ testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			k.dirs.Store(bq, dir)
			return k.command(bq, dir)
		},
		Check:   k.check,
		Methods: []string{"CreateReadSession", "ReadRows"},
		Sample:  *points, SampleSeed: pointsSeed(t),
	}
}

// output is the name of what is written, below the folder of a client.
func (k *killedReads) output() string {
	if k.many {
		return "out/part-*." + k.format
	}
	return "out/events." + k.format
}

func (k *killedReads) command(bq *localbq.Instance, dir string) *exec.Cmd {
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o777); err != nil {
		panic(err)
	}
	args := []string{"read", killedTable, "--rest-endpoint", bq.REST(), "--grpc-endpoint", bq.GRPC(), "--streams", "8", "--resume",
		"--safe-every", "1ns", "-o", filepath.Join(dir, k.output())}
	if k.many {
		args = append(args, "--file-size", "1MB")
	}
	return exec.Command("millrace", args...)
}

func fillKilledTable(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	s := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "event", Type: table.String}, {Name: "at", Type: table.Timestamp},
		{Name: "score", Type: table.Float64}, {Name: "text", Type: table.String}}}
	rows, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(s), jsonrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dst, err := table.ParseDestination(killedTable)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := bigquery.NewSink(bigquery.To[[]byte](dst), rows, bigquery.SinkOptions{Connection: bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range *readRows {
		doc := fmt.Appendf(nil, `{"id":%d,"event":"event%d","at":"2026-07-26T01:02:03Z","score":%d.5,"text":"some text that is different in each row: %d"}`, i, i%7, i%1000, i)
		if err := w.Write(t.Context(), &stream.Record[[]byte]{Value: doc}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// check requires the files of a read that nobody killed, and nothing beside them; and one read session, unless a client was killed
// before it could know that there is one.
func (k *killedReads) check(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	dir, _ := k.dirs.Load(bq)
	got := digests(t, filepath.Join(dir.(string), "out"))
	k.onceBegun(t, bq)
	bq.Faults().Clear() // points that no client came to
	whole := t.TempDir()
	if out, err := k.command(bq, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := digests(t, filepath.Join(whole, "out"))
	if got != want || got == "" {
		t.Errorf("the files of a read that was killed:\n%s\nof one that was not:\n%s", got, want)
	}
	if k.format == "ndjson" {
		everyIDOnce(t, filepath.Join(whole, "out"))
	}
}

// onceBegun: no session is created once there is one that rows are read of.
func (k *killedReads) onceBegun(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	sessions, reads := 0, 0
	for r, err := range bq.Audit().Records() {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.RPC == "ReadRows":
			reads++
		case r.RPC == "CreateReadSession":
			if sessions++; reads > 0 {
				t.Error("a second read session was created after rows of the first had been read")
			}
		}
	}
	// A client that is killed before it has noted the session starts anew.
	if sessions != 1 && !(sessions == 2 && (strings.Contains(t.Name(), "CreateReadSession") || strings.Contains(t.Name(), "Instants"))) {
		t.Errorf("%d read sessions were created", sessions)
	}
}

// digests are the names of files, their lengths and what they hold.
func digests(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s, %d bytes, %x\n", e.Name(), n, h.Sum(nil))
	}
	return all.String()
}

func everyIDOnce(t testing.TB, dir string) {
	t.Helper()
	seen := make([]bool, *readRows)
	rows := 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var id int
			if _, err := fmt.Sscanf(string(line), `{"id":%d,`, &id); err != nil || seen[id] {
				t.Fatalf("line %s: %v, or there twice", line, err)
			}
			seen[id] = true
			rows++
		}
	}
	if rows != *readRows {
		t.Errorf("%d rows", rows)
	}
}

var killedFormats = []killedReads{{format: "ndjson"}, {format: "parquet"}, {format: "parquet", many: true}}

// TestKilledReadsAtCalls kills a read to files in each phase of calls it makes, starts it again by the same words, and requires the
// files that a read would have made that nobody killed.
func TestKilledReadsAtCalls(t *testing.T) {
	for i := range killedFormats {
		k := &killedFormats[i]
		t.Run(k.output(), func(t *testing.T) { k.test(t).Run(t) })
	}
}

// TestKilledReadsAtInstants is the same at instants, several in each read.
func TestKilledReadsAtInstants(t *testing.T) {
	for i := range killedFormats {
		k := &killedFormats[i]
		t.Run(k.output(), func(t *testing.T) {
			test := k.test(t)
			test.Deaths = 2
			test.RunAtInstants(t, *kills)
		})
	}
}
