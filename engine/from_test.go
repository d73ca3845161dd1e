package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
)

func TestFinishedJobStartsAnewAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		first := s.finish()
		if first.StartedAnew || first.ResumedFrom != 0 || first.Outcome != engine.Finished {
			t.Errorf("the first run: %+v", first)
		}
		second := s.finish()
		if !second.StartedAnew || second.ResumedFrom != 0 || second.Outcome != engine.Finished {
			t.Errorf("the second run: %+v", second)
		}
		if second.Tally != first.Tally {
			t.Errorf("the second run has the tally %+v, want that of the first, %+v", second.Tally, first.Tally)
		}
		if second.Checkpoint <= first.Checkpoint {
			t.Errorf("checkpoint %d of the second run does not follow %d of the first", second.Checkpoint, first.Checkpoint)
		}
		if !strings.Contains(s.log.String(), "the last run has finished: starting anew") {
			t.Errorf("the log does not say that it starts anew:\n%s", s.log)
		}
		s.sees(twice(numbers.Items()))
	})
}

func TestUnfinishedJobGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		stopped := s.stopAfter(45 * time.Millisecond)
		rest := s.finish()
		if rest.ResumedFrom != stopped.Checkpoint || rest.StartedAnew {
			t.Errorf("the second run: %+v, want it to go on from checkpoint %d", rest, stopped.Checkpoint)
		}
		if rest.Tally.Read != 20 || rest.Tally.Written != 20 {
			t.Errorf("the tally of both runs is %+v, want 20 records", rest.Tally)
		}
		if rest.InputBytes != 160 {
			t.Errorf("both runs read %d bytes, want 160", rest.InputBytes)
		}
		s.sees(numbers.Items())
	})
}

func TestFromLatest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.From = engine.Latest
		if r := s.finish(); r.Outcome != engine.Finished || r.ResumedFrom != 0 {
			t.Errorf("with an empty store: %+v", r)
		}
		r := s.finish()
		if r.Outcome != engine.NothingToDo || r.ResumedFrom == 0 || r.Checkpoints != 0 {
			t.Errorf("after a finished run: %+v", r)
		}
		if r.Tally.Written != 20 {
			t.Errorf("nothing to do, and the tally of what was done is %+v", r.Tally)
		}
		if !strings.Contains(s.log.String(), "nothing to do") {
			t.Errorf("the log does not say so:\n%s", s.log)
		}
		s.sees(numbers.Items())
	})
	inBubble(t, func(t *testing.T, s *story) {
		s.stopAfter(45 * time.Millisecond)
		s.opts.From = engine.Latest
		if r := s.finish(); r.Outcome != engine.Finished || r.ResumedFrom == 0 {
			t.Errorf("after an unfinished run: %+v", r)
		}
		s.sees(numbers.Items())
	})
}

func TestFromNone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.stopAfter(75 * time.Millisecond)
		s.opts.From = engine.None
		if r := s.finish(); r.Outcome != engine.Finished || r.ResumedFrom != 0 || r.StartedAnew {
			t.Errorf("the second run: %+v", r)
		}
	})
}

// TestFromCheckpoint goes on from an older one: what came after it is done twice.
func TestFromCheckpoint(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.opts.Checkpoint.Keep = 100
		stopped := s.stopAfter(75 * time.Millisecond)
		all := s.checkpoints()
		if len(all) < 3 {
			t.Fatalf("%d checkpoints are too few", len(all))
		}
		old := all[0]
		s.opts.From = engine.From(old.ID)
		r := s.finish()
		if r.ResumedFrom != old.ID || r.Checkpoint <= stopped.Checkpoint {
			t.Errorf("the second run: %+v", r)
		}
		if got, want := len(s.world.Items()), 20+int(stopped.Tally.Written-old.Tally.Written); got != want {
			t.Errorf("%d rows are visible, want %d: all, and those after checkpoint %d again", got, want, old.ID)
		}
		s.opts.From = engine.From(r.Checkpoint)
		if r := s.finish(); r.Outcome != engine.NothingToDo {
			t.Errorf("from the end of the job: %+v", r)
		}
	})
}

func TestFromMissingCheckpoint(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.finish()
		ids := []int64{}
		for _, c := range s.checkpoints() {
			ids = append(ids, c.ID)
		}
		s.opts.From = 1000
		_, err := s.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "checkpoint 1000") || !strings.Contains(err.Error(), fmt.Sprint(ids)) {
			t.Errorf("the error does not name checkpoint 1000 and those there are, %v: %v", ids, err)
		}
	})
}

func TestParseFrom(t *testing.T) {
	for in, want := range map[string]engine.From{"": engine.Auto, "auto": engine.Auto, "latest": engine.Latest, "none": engine.None, "12": 12} {
		got, err := engine.ParseFrom(in)
		if err != nil || got != want {
			t.Errorf("ParseFrom(%q) = %v, %v, want %v", in, got, err, want)
		}
		if in != "" && got.String() != in {
			t.Errorf("%q is printed as %q", in, got)
		}
	}
	for _, in := range []string{"0", "-1", "newest", "1.5", "12 "} {
		if _, err := engine.ParseFrom(in); err == nil || !strings.Contains(err.Error(), in) {
			t.Errorf("ParseFrom(%q): %v", in, err)
		}
	}
}

// TestDamagedCheckpointsDoNotExist falls back on the one before, and passes a damaged one over when it numbers.
func TestDamagedCheckpointsDoNotExist(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.stopAfter(75 * time.Millisecond)
		all := s.checkpoints()
		newest, before := all[len(all)-1], all[len(all)-2]
		data := newest.Encode()
		s.store.Replace("numbers", newest.ID, data[:len(data)/2])
		s.store.Replace("numbers", newest.ID+1, nil)
		foreign := *newest
		foreign.Job, foreign.ID = "another", newest.ID+2
		s.store.Replace("numbers", newest.ID+2, foreign.Encode())
		r := s.finish()
		if r.ResumedFrom != before.ID {
			t.Errorf("went on from checkpoint %d, want %d, the newest that is whole", r.ResumedFrom, before.ID)
		}
		if r.Checkpoint <= newest.ID+2 {
			t.Errorf("checkpoint %d does not come after the damaged ones", r.Checkpoint)
		}
		for id := newest.ID; id <= newest.ID+2; id++ {
			if !strings.Contains(s.log.String(), fmt.Sprintf("passed over an object in the checkpoint store\" job=numbers checkpoint=%d", id)) {
				t.Errorf("the log does not say that %d was passed over:\n%s", id, s.log)
			}
		}
	})
}

// TestLaterFormatIsNoDamage refuses to fall back: the later version has committed what it wrote.
// An object that is named as if it were the last checkpoint there can be must not leave the job without ids: it could
// never be resumed again.
func TestForeignObjectWithTheHighestID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		if err := s.store.Put(t.Context(), "numbers", 1<<63-1, []byte("foreign")); err != nil {
			t.Fatal(err)
		}
		stopped := s.stopAfter(45 * time.Millisecond)
		if r := s.finish(); stopped.Checkpoint < 1 || r.ResumedFrom != stopped.Checkpoint {
			t.Errorf("stopped at checkpoint %d, went on from %d", stopped.Checkpoint, r.ResumedFrom)
		}
		s.sees(numbers.Items())
	})
}

func TestLaterFormatIsNoDamage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		s.stopAfter(75 * time.Millisecond)
		s.store.Replace("numbers", 1000, laterFormat())
		if _, err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "format 7") {
			t.Errorf("Run: %v", err)
		}
	})
}

func laterFormat() []byte { return engine.SealForTest(7, []byte("from the future")) }
