package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

func TestRunBounded(t *testing.T) {
	for _, lanes := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			src := streamtest.Ranges{Splits: 4, Rows: 10, Pace: time.Millisecond}
			world := streamtest.NewWorld()
			res, err := engine.Run(t.Context(), engine.Job[item, item]{Name: "numbers", Source: src,
				Sink: streamtest.Buffered{World: world}}, engine.Options{Lanes: lanes, Checkpoint: engine.Checkpointing{Every: 5 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(src.Items(), world.Items()); diff != "" {
				t.Error(diff)
			}
			t.Logf("%+v", res)
			if res.Tally.Read != 40 || res.Tally.Lost() != 0 || res.Outcome != engine.Finished {
				t.Errorf("result %+v", res)
			}
		})
	}
	_ = stream.FailJob
}
