package engine

import (
	"sync/atomic"

	"github.com/millrace-dev/millrace/stream"
)

// The engine's instruments. Every series has the label job. Counters count work done: rows that were read again after a
// restart are counted again, which the tally of a Result does not do.
var (
	RecordsRead         = stream.Instrument{Name: "millrace.engine.records_read", Unit: "1", Help: "Input rows read, and records beyond the first that a row or a Func gave."}
	RecordsWritten      = stream.Instrument{Name: "millrace.engine.records_written", Unit: "1", Help: "Records the writers count as written; for writers that do not count, records handed to them."}
	RecordsSkipped      = stream.Instrument{Name: "millrace.engine.records_skipped", Unit: "1", Help: "Rows without records, and records dropped on purpose."}
	RecordsDeadLettered = stream.Instrument{Name: "millrace.engine.records_dead_lettered", Unit: "1", Help: "Records taken by a failure handler that let the job go on."}
	BytesRead           = stream.Instrument{Name: "millrace.engine.bytes_read", Unit: "By", Help: "Bytes of input fetched, where the source says."}
	BytesWritten        = stream.Instrument{Name: "millrace.engine.bytes_written", Unit: "By", Help: "Encoded bytes of the written records, where the writer says."}

	SplitsAssigned = stream.Instrument{Name: "millrace.engine.splits_assigned", Unit: "1", Help: "Splits handed to lanes, those returned after a restart included."}
	SplitsFinished = stream.Instrument{Name: "millrace.engine.splits_finished", Unit: "1", Help: "Splits read to their end."}
	Lanes          = stream.Instrument{Name: "millrace.engine.lanes", Unit: "1", Help: "Lanes of the running attempt, 0 between attempts."}
	LanesBusy      = stream.Instrument{Name: "millrace.engine.lanes_busy", Unit: "1", Help: "Lanes that hold a split."}

	Checkpoints          = stream.Instrument{Name: "millrace.engine.checkpoints", Unit: "1", Help: "Checkpoints published."}
	CheckpointsFailed    = stream.Instrument{Name: "millrace.engine.checkpoints_failed", Unit: "1", Help: "Checkpoints that could not be stored."}
	CheckpointID         = stream.Instrument{Name: "millrace.engine.checkpoint_id", Unit: "1", Help: "Id of the newest checkpoint published."}
	CheckpointBytes      = stream.Instrument{Name: "millrace.engine.checkpoint_bytes", Unit: "By", Help: "Size of the newest checkpoint."}
	CheckpointAlignMS    = stream.Instrument{Name: "millrace.engine.checkpoint_align_ms", Unit: "ms", Help: "Time from the newest checkpoint's start until all lanes had flushed and reported."}
	CheckpointDurationMS = stream.Instrument{Name: "millrace.engine.checkpoint_duration_ms", Unit: "ms", Help: "Time from the newest checkpoint's start until it was published."}
	Committables         = stream.Instrument{Name: "millrace.engine.committables", Unit: "1", Help: "Committables committed."}
	CommitDurationMS     = stream.Instrument{Name: "millrace.engine.commit_duration_ms", Unit: "ms", Help: "Time of the newest commit."}

	Restarts = stream.Instrument{Name: "millrace.engine.restarts", Unit: "1", Help: "Attempts started after a failed one."}
)

// Instruments lists everything the engine measures.
func Instruments() []stream.Instrument {
	return []stream.Instrument{
		RecordsRead, RecordsWritten, RecordsSkipped, RecordsDeadLettered, BytesRead, BytesWritten,
		SplitsAssigned, SplitsFinished, Lanes, LanesBusy,
		Checkpoints, CheckpointsFailed, CheckpointID, CheckpointBytes, CheckpointAlignMS, CheckpointDurationMS,
		Committables, CommitDurationMS, Restarts,
	}
}

// instruments are those of one run.
type instruments struct {
	read, written, skipped, deadLettered, bytesRead, bytesWritten stream.Counter

	splitsAssigned, splitsFinished *shownCounter
	lanes, lanesBusy               stream.Gauge

	checkpoints, checkpointsFailed, committables, restarts                         stream.Counter
	checkpointID, checkpointBytes, checkpointAlign, checkpointDuration, commitTime stream.Gauge
}

func newInstruments(m stream.Meter, job string) *instruments {
	label := stream.Label{Key: "job", Value: job}
	counter := func(in stream.Instrument) stream.Counter { return m.Counter(in, label) }
	gauge := func(in stream.Instrument) stream.Gauge { return m.Gauge(in, label) }
	return &instruments{
		read: counter(RecordsRead), written: counter(RecordsWritten), skipped: counter(RecordsSkipped),
		deadLettered: counter(RecordsDeadLettered), bytesRead: counter(BytesRead), bytesWritten: counter(BytesWritten),
		splitsAssigned: &shownCounter{Counter: counter(SplitsAssigned)}, splitsFinished: &shownCounter{Counter: counter(SplitsFinished)},
		lanes: gauge(Lanes), lanesBusy: gauge(LanesBusy),
		checkpoints: counter(Checkpoints), checkpointsFailed: counter(CheckpointsFailed),
		committables: counter(Committables), restarts: counter(Restarts),
		checkpointID: gauge(CheckpointID), checkpointBytes: gauge(CheckpointBytes), checkpointAlign: gauge(CheckpointAlignMS),
		checkpointDuration: gauge(CheckpointDurationMS), commitTime: gauge(CommitDurationMS),
	}
}

// shownCounter is a counter that a Status shows too.
type shownCounter struct {
	stream.Counter
	n atomic.Int64
}

func (c *shownCounter) Add(n int64) {
	c.n.Add(n)
	c.Counter.Add(n)
}

// laneCounts feeds the counters from a lane's tally, which only grows.
type laneCounts struct {
	ins   *instruments
	last  stream.Tally
	bytes int64
}

func (c *laneCounts) update(t stream.Tally, bytes int64) {
	c.ins.read.Add(t.Read - c.last.Read)
	c.ins.written.Add(t.Written - c.last.Written)
	c.ins.skipped.Add(t.Skipped - c.last.Skipped)
	c.ins.deadLettered.Add(t.DeadLettered - c.last.DeadLettered)
	c.ins.bytesWritten.Add(t.Bytes - c.last.Bytes)
	c.ins.bytesRead.Add(bytes - c.bytes)
	c.last, c.bytes = t, bytes
}
