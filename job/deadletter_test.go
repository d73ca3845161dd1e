package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
	"github.com/millrace-dev/millrace/deadletter/tablequeue"
	"github.com/millrace-dev/millrace/localbq"
)

// topics is the official fake with one topic and a subscription to it.
func topics(t *testing.T) (addr string) {
	t.Helper()
	s := pstest.NewServer()
	t.Cleanup(func() { s.Close() })
	conn, err := grpc.NewClient(s.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pubsub.NewClient(t.Context(), "p", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: "projects/p/topics/dead"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: "projects/p/subscriptions/dead", Topic: "projects/p/topics/dead"}); err != nil {
		t.Fatal(err)
	}
	return s.Addr
}

// TestEveryRecordIsCounted runs a job over good and bad records with each kind of queue: what was read is written or a letter,
// and each letter says where its record is and holds it.
func TestEveryRecordIsCounted(t *testing.T) {
	const rows = 300
	var in strings.Builder
	bad := map[string]string{} // by place
	for i := range rows {
		line := fmt.Sprintf(`{"id":%d}`, i)
		switch i % 10 {
		case 3:
			line = fmt.Sprintf(`{"id":"no number %d"}`, i)
		case 7:
			line = fmt.Sprintf("no document %d \xff\x01", i)
		}
		if i%10 == 3 || i%10 == 7 {
			bad[fmt.Sprint("in.ndjson:", i+1)] = line
		}
		in.WriteString(line + "\n")
	}
	addr := topics(t)
	bq, err := localbq.Start(t.Context(), localbq.Config{AutoCreateDataset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	connection := bigquery.Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
	for kind, c := range map[string]struct {
		queue string
		read  func(dir string, yield func(deadletter.Letter, error) bool)
	}{
		"file": {"{file: dead.ndjson, maxFileBytes: 2KB}", func(dir string, yield func(deadletter.Letter, error) bool) {
			names, err := filequeue.Files(filepath.Join(dir, "dead.ndjson"))
			if err != nil || len(names) < 2 {
				t.Errorf("files %v, %v", names, err)
			}
			for _, name := range names {
				for e, err := range filequeue.Read(name) {
					if err == nil {
						err = e.Err
					}
					yield(e.Letter, err)
				}
			}
		}},
		"pubsub": {"{pubsub: {topic: projects/p/topics/dead, endpoint: '" + addr + "', maxInFlightMessages: 7}}", func(_ string, yield func(deadletter.Letter, error) bool) {
			pubsubqueue.Peek(t.Context(), "projects/p/subscriptions/dead", pubsubqueue.Options{Endpoint: addr})(yield)
		}},
		"table": {"{table: p.ops.dead}", func(_ string, yield func(deadletter.Letter, error) bool) {
			tablequeue.Letters(t.Context(), connection, table.Destination{Project: "p", Dataset: "ops", Table: "dead"}, 0)(yield)
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"in.ndjson": in.String(), "schema.json": `[{"name":"id","type":"INT64"}]`} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Parse(filepath.Join(dir, "job.yaml"), []byte(`
job: counted
source: {files: {paths: [in.ndjson], splitBytes: 1KB}}
sink:
  bigquery:
    table: p.d.`+kind+`
    schema: {file: schema.json}
    failures: {policy: dead-letter, deadLetter: `+c.queue+`}
checkpoint: {every: 5ms}
parallelism: 3
`), nil)
			if err != nil {
				t.Fatal(err)
			}
			pl, err := p.Prepare(t.Context(), Surroundings{Connection: &connection, CreateDatasets: true})
			if err != nil {
				t.Fatal(err)
			}
			r, err := pl.Run(t.Context(), RunOptions{Store: "file://" + filepath.Join(dir, "ck")})
			if err != nil {
				t.Fatal(err)
			}
			if n := r.Tally; n.Lost() != 0 || n.Read != rows || n.Written != rows-int64(len(bad)) || n.DeadLettered != int64(len(bad)) || n.Skipped != 0 || n.Failed != 0 {
				t.Errorf("tally %+v of %d rows, %d of them bad", n, rows, len(bad))
			}
			left := map[string]string{}
			for at, line := range bad {
				left[at] = line
			}
			c.read(dir, func(l deadletter.Letter, err error) bool {
				at := fmt.Sprint(filepath.Base(l.File), ":", l.Line)
				_, record := l.Payload()
				if err != nil || left[at] != string(record) || l.Job != "counted" || l.Split == "" {
					t.Errorf("letter of %s: %q, %v", at, record, err)
				}
				delete(left, at)
				return true
			})
			if len(left) > 0 {
				t.Errorf("no letters of %v", left)
			}
		})
	}
}

func TestQueuesThatCannotBe(t *testing.T) {
	for queue, want := range map[string]string{
		"{}":                                "deadLetter: expected one of file, pubsub, table",
		"{file: a, table: p.d.t}":           "has file and table: expected only one of them",
		"{file: ''}":                        "is not a path",
		"{table: p.d.x, maxFileBytes: 1MB}": "maxFileBytes: means nothing unless file is given",
		"{table: 'p.d.t'}":                  "is the table that records are written to",
		"{table: 'p.d'}":                    "deadLetter.table: ",
		"{table: \"p.d.t\\nx\"}":            "deadLetter.table: ",
		"{pubsub: {}}":                      "pubsub.topic: this key is missing",
		"{pubsub: {topic: dead}}":           `pubsub.topic: dead-letter topic "dead": expected projects/PROJECT/topics/TOPIC`,
		"{pubsub: {topic: projects/p/topics/dead, maxInFlightMessages: -2}}":     "pubsub.maxInFlightMessages: -2: must be -1, 0 or positive",
		"{pubsub: {topic: projects/p/topics/dead, flushTimeout: 10us}}":          "pubsub.flushTimeout: FlushTimeout must be at least 1ms",
		"{pubsub: {topic: projects/p/topics/dead, endpoint: here}}":              "pubsub.endpoint: Endpoint must be host:port, was 'here'",
		"{pubsub: {topic: projects/p/topics/dead, keyFile: ' '}}":                "pubsub.keyFile: must not be blank",
		"{pubsub: {topic: projects/p/topics/dead, keyFile: k, endpoint: 'h:1'}}": "pubsub.keyFile: KeyFile cannot be combined with Endpoint",
		"{pubsub: {topics: x, topic: projects/p/topics/dead}}":                   "unknown key; did you mean topic?",
		"{bucket: b}": "unknown key",
	} {
		_, err := Parse("job.yaml", []byte(`
job: j
source: {files: {paths: [in.ndjson]}}
sink: {bigquery: {table: p.d.t, schema: {infer: {}}, failures: {policy: dead-letter, deadLetter: `+queue+`}}}
`), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", queue, err, want)
		}
	}
	p, err := Parse("job.yaml", []byte(`
job: j
source: {files: {paths: [in.ndjson]}}
sink: {bigquery: {table: p.d.t, schema: {infer: {}}, failures: {policy: dead-letter, deadLetter: {pubsub: {topic: projects/p/topics/dead, maxInFlightMessages: 0}}}}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := p.Sink.BigQuery.Failures.DeadLetter.PubSub.options(); o.MaxInFlightMessages != pubsubqueue.Synchronous {
		t.Errorf("0 is %+v", o)
	}
	if again, err := Parse("again", p.YAML(), nil); err != nil || *again.Sink.BigQuery.Failures.DeadLetter.PubSub.MaxInFlightMessages != 0 {
		t.Errorf("written and read again: %v\n%s", err, p.YAML())
	}
}
