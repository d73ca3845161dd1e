package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/engine/enginetest"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// TestOptionsAreCheckedTogether reports all faults at once, each with its field.
func TestOptionsAreCheckedTogether(t *testing.T) {
	_, err := engine.Run(t.Context(), engine.Job[item, string]{}, engine.Options{
		Lanes: -1, From: -3, StopTimeout: -1, ProgressEvery: -1,
		Checkpoint: engine.Checkpointing{Every: -1, Keep: -1, Tolerate: -2, URL: "mem://", Store: &enginetest.Memory{}},
		Restart:    engine.Restart{Policy: 9, Initial: -1, Max: -1, Multiplier: 0.5, ResetAfter: -1, Attempts: -1},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{
		"Job.Name", "Job.Source", "Job.Sink", "Options.Lanes", "Options.From", "Options.StopTimeout", "Options.ProgressEvery",
		"Options.Checkpoint.Every", "Options.Checkpoint.Keep", "Options.Checkpoint.Tolerate", "Options.Checkpoint.URL",
		"Options.Restart.Policy", "Options.Restart.Initial", "Options.Restart.Max", "Options.Restart.Multiplier",
		"Options.Restart.ResetAfter", "Options.Restart.Attempts",
	} {
		if !strings.Contains(err.Error(), field+" is ") && !strings.Contains(err.Error(), "Options."+field+" is ") {
			t.Errorf("the error does not speak of %s:\n%v", field, err)
		}
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	numbers := streamtest.Ranges{Splits: 1, Rows: 1}
	endless := streamtest.Ranges{Splits: 1, Rows: 1, Endless: true}
	world := streamtest.NewWorld()
	for want, run := range map[string]func() error{
		"records of type streamtest.Item do not fit the sink, which takes string": func() error {
			_, err := engine.Run(t.Context(), engine.Job[item, string]{Name: "x", Source: numbers, Sink: stringSink{}}, engine.Options{})
			return err
		},
		"the source never ends, and the sink makes rows visible at checkpoints only": func() error {
			_, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "x", Source: endless, Sink: streamtest.Buffered{World: world}}, engine.Options{})
			return err
		},
		"From is checkpoint 7, but neither": func() error {
			_, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "x", Source: numbers, Sink: streamtest.Direct{World: world}}, engine.Options{From: 7})
			return err
		},
		"Max is 1s, less than Initial, 1m0s": func() error {
			_, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "x", Source: numbers, Sink: streamtest.Direct{World: world}},
				engine.Options{Restart: engine.Restart{Initial: time.Minute, Max: time.Second}})
			return err
		},
		`no driver registered for "nowhere"`: func() error {
			_, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "x", Source: numbers, Sink: streamtest.Direct{World: world}},
				engine.Options{Checkpoint: engine.Checkpointing{URL: "nowhere://"}})
			return err
		},
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: %v, want %q", err, want)
		}
	}
	if n := len(world.Items()); n > 0 {
		t.Errorf("%d rows were written by jobs that do not fit", n)
	}
}

type stringSink struct{ stream.Sink[string] }

// TestZeroOptions run a job with defaults, twice, with its checkpoints in memory.
func TestZeroOptions(t *testing.T) {
	src := streamtest.Ranges{Splits: 3, Rows: 100}
	for range 2 {
		world := streamtest.NewWorld()
		r, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "zero", Source: src, Sink: streamtest.Buffered{World: world}}, engine.Options{})
		if err != nil || r.StartedAnew || r.Tally.Written != 300 || len(world.Items()) != 300 {
			t.Errorf("Run: %+v, %v; %d rows", r, err, len(world.Items()))
		}
	}
}

// TestStoreByURL goes on in another Run.
func TestStoreByURL(t *testing.T) {
	src := streamtest.Ranges{Splits: 3, Rows: 100}
	world := streamtest.NewWorld()
	opts := engine.Options{Checkpoint: engine.Checkpointing{URL: "file://" + t.TempDir()}, From: engine.Latest}
	for i, want := range []engine.Outcome{engine.Finished, engine.NothingToDo} {
		r, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "../by url", Source: src, Sink: streamtest.Buffered{World: world}}, opts)
		if err != nil || r.Outcome != want || len(world.Items()) != 300 {
			t.Errorf("run %d: %+v, %v; %d rows", i+1, r, err, len(world.Items()))
		}
	}
}
