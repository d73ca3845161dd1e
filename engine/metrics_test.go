package engine_test

import (
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// meter is a Meter that can be looked at.
type meter struct {
	mu     sync.Mutex // guards series
	series map[string]*value
	labels map[stream.Label]bool
}

type value struct{ atomic.Int64 }

func (v *value) Add(n int64) { v.Int64.Add(n) }
func (v *value) Set(n int64) { v.Int64.Store(n) }

func (m *meter) one(in stream.Instrument, labels []stream.Label) *value {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range labels {
		m.labels[l] = true
	}
	if m.series[in.Name] == nil {
		m.series[in.Name] = &value{}
	}
	return m.series[in.Name]
}

func (m *meter) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	return m.one(in, labels)
}
func (m *meter) Gauge(in stream.Instrument, labels ...stream.Label) stream.Gauge {
	return m.one(in, labels)
}

func TestMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, s *story) {
		m := &meter{series: map[string]*value{}, labels: map[stream.Label]bool{}}
		s.opts.Meter = m
		src := numbers
		src.Parts = func(row int64) int { return int(min(row, 1)) } // row 0 gives no record
		s.source = src
		s.sink = streamtest.Buffered{World: s.world, SinkOptions: streamtest.SinkOptions{
			Bad: func(i item) bool { return i.Row == 5 }, Failures: stream.LogAndDrop()}}
		r := s.finish()
		for in, want := range map[*stream.Instrument]int64{
			&engine.RecordsRead: 20, &engine.RecordsWritten: 18, &engine.RecordsSkipped: 1, &engine.RecordsDeadLettered: 1,
			&engine.BytesRead: 160, &engine.BytesWritten: 18 * 16,
			&engine.SplitsAssigned: 2, &engine.SplitsFinished: 2, &engine.Lanes: 0, &engine.LanesBusy: 0,
			&engine.Checkpoints: int64(r.Checkpoints), &engine.CheckpointsFailed: 0, &engine.CheckpointID: r.Checkpoint,
			&engine.CheckpointAlignMS: 0, &engine.CheckpointDurationMS: 0, &engine.CommitDurationMS: 0, &engine.Restarts: 0,
		} {
			if got := m.series[in.Name].Load(); got != want {
				t.Errorf("%s is %d, want %d", in.Name, got, want)
			}
		}
		for _, in := range []stream.Instrument{engine.CheckpointBytes, engine.Committables} {
			if m.series[in.Name].Load() == 0 {
				t.Errorf("%s is 0", in.Name)
			}
		}
		if len(m.labels) != 1 || !m.labels[stream.Label{Key: "job", Value: "numbers"}] {
			t.Errorf("labels are %v", m.labels)
		}
		for _, in := range engine.Instruments() {
			if m.series[in.Name] == nil {
				t.Errorf("%s is listed and never made", in.Name)
			}
			delete(m.series, in.Name)
		}
		for name := range m.series {
			t.Errorf("%s is made and not listed", name)
		}
	})
}

func TestInstrumentsAreDescribed(t *testing.T) {
	name := regexp.MustCompile(`^millrace\.engine\.[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, in := range engine.Instruments() {
		if !name.MatchString(in.Name) || in.Unit == "" || in.Help == "" || seen[in.Name] {
			t.Errorf("%+v is badly named, described, or there twice", in)
		}
		seen[in.Name] = true
	}
}
