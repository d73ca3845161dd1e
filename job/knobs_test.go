package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery"
)

const everyKnob = `maxAppendBytes: 1MiB, maxBufferedBytes: 8MB, recoveryInitialBackoff: 1s, recoveryMaxBackoff: 2s, recoveryMaxAttempts: 3,
      retryInitialDelay: none, retryDelayMultiplier: 1.5, retryMaxDelay: 0s, retryMaxAttempts: 4, maxRetryDuration: none, destinationIdleTimeout: 5m`

// Every knob of the job file reaches the option of its name.
func TestKnobs(t *testing.T) {
	text := strings.Replace(good, "    method: default\n", `    perDestinationMetrics: true
    defaultStream: { `+everyKnob+`,
      maxInflightRequests: 6, maxInflightBytes: 7MB, minConnectionsPerRegion: 8, maxConnectionsPerRegion: 9, flushInterval: 10ms }
`, 1)
	p, err := Parse("job.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := p.Sink.BigQuery.sinkOptions()
	t.Run("SW-150 zeros that are given are kept", func(t *testing.T) {
		if d := o.DefaultStream; d.RetryInitialDelay != bigquery.NoDelay || d.RetryMaxDelay != bigquery.NoDelay || d.MaxRetryDuration != bigquery.NoLimit {
			t.Errorf("%+v", d)
		}
	})
	want := bigquery.DefaultStreamOptions{MaxAppendBytes: 1 << 20, MaxBufferedBytes: 8e6, RecoveryInitialBackoff: time.Second,
		RecoveryMaxBackoff: 2 * time.Second, RecoveryMaxAttempts: 3, RetryInitialDelay: bigquery.NoDelay, RetryDelayMultiplier: 1.5,
		RetryMaxDelay: bigquery.NoDelay, RetryMaxAttempts: 4, MaxRetryDuration: bigquery.NoLimit, MaxInflightRequests: 6, MaxInflightBytes: 7e6,
		MinConnectionsPerRegion: 8, MaxConnectionsPerRegion: 9, DestinationIdleTimeout: 5 * time.Minute, FlushInterval: 10 * time.Millisecond}
	if d := cmp.Diff(want, o.DefaultStream); d != "" || !o.PerDestinationMetrics {
		t.Errorf("%v: %s", o.PerDestinationMetrics, d)
	}
	// What is written is read as the same.
	again, err := Parse("job.yaml", p.File.YAML(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.Sink.BigQuery, again.Sink.BigQuery); d != "" {
		t.Error(d)
	}
	text = strings.Replace(good, "    method: default\n", "    method: exactly-once\n    bufferedStream: { "+everyKnob+" }\n", 1)
	if p, err = Parse("job.yaml", []byte(text), nil); err != nil {
		t.Fatal(err)
	}
	buffered := bigquery.BufferedStreamOptions{MaxAppendBytes: 1 << 20, MaxBufferedBytes: 8e6, RecoveryInitialBackoff: time.Second,
		RecoveryMaxBackoff: 2 * time.Second, RecoveryMaxAttempts: 3, RetryInitialDelay: bigquery.NoDelay, RetryDelayMultiplier: 1.5,
		RetryMaxDelay: bigquery.NoDelay, RetryMaxAttempts: 4, MaxRetryDuration: bigquery.NoLimit, DestinationIdleTimeout: 5 * time.Minute}
	if d := cmp.Diff(buffered, p.Sink.BigQuery.sinkOptions().BufferedStream); d != "" {
		t.Error(d)
	}
}

// A knob out of its bounds is a fault with its key, its place and its value; a zero that is given is not the default.
func TestKnobFaults(t *testing.T) {
	for knob, want := range map[string]string{
		"maxAppendBytes: 0":                "maxAppendBytes: must be positive: 0",
		"maxAppendBytes: 9437185":          "maxAppendBytes: must be at most 9437184: 9437185",
		"recoveryInitialBackoff: 0s":       "recoveryInitialBackoff: must be at least 1ms: 0s",
		"recoveryInitialBackoff: 5us":      "recoveryInitialBackoff: must be at least 1ms: 5µs",
		"recoveryInitialBackoff: 20s":      "recoveryMaxBackoff: must be >= sink.bigquery.STREAM.recoveryInitialBackoff: 10s < 20s",
		"recoveryMaxAttempts: 0":           "recoveryMaxAttempts: must be positive: 0",
		"recoveryMaxAttempts: -1":          "recoveryMaxAttempts: must be positive: -1",
		"retryInitialDelay: 500us":         "retryInitialDelay: must be at least 1ms: 500µs",
		"retryInitialDelay: soon":          `retryInitialDelay: "soon" is no delay`,
		"retryInitialDelay: -1s":           `retryInitialDelay: "-1s" is no delay`,
		"retryDelayMultiplier: 0.5":        "retryDelayMultiplier: must be a number of at least 1: 0.5",
		"retryDelayMultiplier: .inf":       "retryDelayMultiplier: ",
		"retryDelayMultiplier: .nan":       "retryDelayMultiplier: ",
		"retryMaxDelay: 1ms":               "retryMaxDelay: must be >= sink.bigquery.STREAM.retryInitialDelay: 1ms < 500ms",
		"retryMaxDelay: none":              "retryMaxDelay: must be >= sink.bigquery.STREAM.retryInitialDelay: 0s < 500ms",
		"retryMaxAttempts: 0":              "retryMaxAttempts: must be positive: 0",
		"maxRetryDuration: 10us":           "maxRetryDuration: must be at least 1ms: 10µs",
		"destinationIdleTimeout: 0s":       "destinationIdleTimeout: must be at least 1ms: 0s",
		"destinationIdleTimeout: 9999999h": "destinationIdleTimeout: ",
	} {
		for _, method := range []string{"default", "exactly-once"} {
			stream := map[string]string{"default": "defaultStream", "exactly-once": "bufferedStream"}[method]
			number := "SW-149 "
			if strings.HasSuffix(knob, "500us") {
				number += "SW-150 "
			}
			t.Run(number+method+" "+knob, func(t *testing.T) {
				text := strings.Replace(good, "    method: default\n", "    method: "+method+"\n    "+stream+": { "+knob+" }\n", 1)
				got := strings.Join(faults(t, text), "\n")
				at := "job.yaml:7:"
				if !strings.HasPrefix(got, at) || !strings.Contains(got, ": sink.bigquery."+stream+"."+strings.ReplaceAll(want, "STREAM", stream)) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
	for _, knob := range []string{"maxInflightRequests: 0", "maxInflightBytes: 0", "minConnectionsPerRegion: 0", "maxConnectionsPerRegion: 1", "flushInterval: 0s", "flushInterval: 10us"} {
		key, _, _ := strings.Cut(knob, ":")
		text := strings.Replace(good, "    method: default\n", "    defaultStream: { "+knob+" }\n", 1)
		if got := strings.Join(faults(t, text), "\n"); !strings.Contains(got, ": sink.bigquery.defaultStream."+key+": must be ") {
			t.Errorf("SW-149 %s: got %q", knob, got)
		}
	}
}
