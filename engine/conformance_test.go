package engine_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/engine/enginetest"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		if err := runKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type item = streamtest.Item

// TestEngine runs the suite of engines, every call of the store a step to die at.
func TestEngine(t *testing.T) {
	streamtest.TestEngine(t, streamtest.EngineHarness{
		NewStore: func(streamtest.TB) any { return &enginetest.Memory{} },
		Run:      oneLife,
	})
}

func oneLife(ctx context.Context, run streamtest.EngineRun) (streamtest.EngineResult, error) {
	handle := &engine.Handle{}
	if run.Stop != nil {
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-run.Stop:
				handle.Stop()
			case <-ended:
			}
		}()
	}
	restart := engine.Restart{Policy: engine.NoRestart}
	if run.Restarts > 0 {
		restart = engine.Restart{Policy: engine.FixedDelay, Attempts: run.Restarts}
	}
	res, err := engine.Run(ctx, engine.Job[item, item]{
		Name: "streamtest", Source: run.Source, Func: run.Func, Failures: run.Failures, Sink: run.Sink,
	}, engine.Options{
		Lanes:      run.Lanes,
		From:       engine.Latest,
		Handle:     handle,
		Restart:    restart,
		Checkpoint: engine.Checkpointing{Every: run.Every, Store: enginetest.InStore(run.Process, run.Store.(engine.Store)), Keep: 2},
	})
	return streamtest.EngineResult{Stopped: res.Outcome == engine.Stopped, Tally: &res.Tally}, err
}
