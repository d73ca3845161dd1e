package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Letters of a topic are shown through a subscription, which has them all the next time; what they hold steers no terminal.
func TestShowSubscription(t *testing.T) {
	const topic, subscription = "projects/p/topics/dead", "projects/p/subscriptions/dead"
	s := pstest.NewServer()
	defer s.Close()
	conn, err := grpc.NewClient(s.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pubsub.NewClient(t.Context(), "p", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.TopicAdminClient.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubscriptionAdminClient.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: subscription, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	s.Publish(topic, []byte("a\x00\x1b[2J\xff\n"), map[string]string{"dlq-connector": "c\x1b[31m", "dlq-destination": "p.d.t\u009b", "dlq-error": "wrong\r\n\u202e",
		"dlq-timestamp": "2026-01-02T03:04:05Z", "dlq-payload": "record", "dlq-file": "f\x07", "dlq-position": "9"})
	s.Publish(topic, []byte("not ours"), map[string]string{"x": "y"})
	for range 2 {
		for _, format := range []string{"table", "ndjson"} {
			var said strings.Builder
			cmd := exec.Command("millrace", "dlq", "show", "--subscription", subscription, "--pubsub-endpoint", s.Addr, "--payload", "--format", format)
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			if regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{202e}]`).Match(out) {
				t.Errorf("%s: control characters reach the terminal: %q", format, out)
			}
			if !strings.Contains(string(out), "2026-01-02T03:04:05Z") || !strings.Contains(string(out), "wrong") || !strings.Contains(string(out), "p.d.t") {
				t.Errorf("%s: %s", format, out)
			}
			if !strings.Contains(said.String(), "has no attribute dlq-connector") || !strings.Contains(said.String(), "1 dead letters") {
				t.Errorf("%s: said %s", format, said.String())
			}
		}
	}
}
