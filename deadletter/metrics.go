package deadletter

import (
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

var (
	published = stream.Instrument{Name: "millrace.deadletter.published", Unit: "1",
		Help: "Dead letters that are safe in their queue."}
	inFlight = stream.Instrument{Name: "millrace.deadletter.in_flight", Unit: "1",
		Help: "Dead letters offered to the queue and not known to be safe yet."}
	flushTime = stream.Instrument{Name: "millrace.deadletter.flush_ms", Unit: "ms",
		Help: "Time of the newest wait for letters to be safe, however it ended; waits for none do not count."}
	longestFlush = stream.Instrument{Name: "millrace.deadletter.longest_flush_ms", Unit: "ms",
		Help: "Time of the longest such wait of this attempt."}
	abandoned = stream.Instrument{Name: "millrace.deadletter.shutdowns_abandoned", Unit: "1",
		Help: "Publishers that did not stop in their time and were left behind."}
)

// Instruments lists the metrics of queues. Each series carries the labels job, lane and queue, which is file, pubsub or table.
func Instruments() []stream.Instrument {
	return []stream.Instrument{published, inFlight, flushTime, longestFlush, abandoned}
}

// Meters is what the handler of one lane measures. It belongs to the lane.
type Meters struct {
	published, abandoned          stream.Counter
	inFlight, flushTime, longestT stream.Gauge
	waiting, longest              int64
}

// NewMeters makes the meters of a handler of a kind of queue.
func NewMeters(hc stream.HandlerContext, queue string) *Meters {
	m := hc.Meter
	if m == nil {
		m = stream.NoMeter
	}
	labels := []stream.Label{{Key: "job", Value: hc.Job}, {Key: "lane", Value: strconv.Itoa(hc.Lane)}, {Key: "queue", Value: queue}}
	return &Meters{
		published: m.Counter(published, labels...),
		abandoned: m.Counter(abandoned, labels...),
		inFlight:  m.Gauge(inFlight, labels...),
		flushTime: m.Gauge(flushTime, labels...),
		longestT:  m.Gauge(longestFlush, labels...),
	}
}

// Offered counts one letter that is on its way.
func (m *Meters) Offered() {
	m.waiting++
	m.inFlight.Set(m.waiting)
}

// InFlight is how many letters are on their way.
func (m *Meters) InFlight() int64 { return m.waiting }

// Waited counts a wait for all letters that are on their way, of which safe were published. None of them is waited for again.
func (m *Meters) Waited(since time.Time, safe int64) {
	if m.waiting == 0 {
		return
	}
	took := time.Since(since).Milliseconds()
	m.longest = max(m.longest, took)
	m.flushTime.Set(took)
	m.longestT.Set(m.longest)
	m.published.Add(safe)
	m.waiting = 0
	m.inFlight.Set(0)
}

// Closed says that nothing is on its way any more, whatever became of it.
func (m *Meters) Closed() {
	m.waiting = 0
	m.inFlight.Set(0)
}

// Abandoned counts a publisher that was left behind.
func (m *Meters) Abandoned() { m.abandoned.Add(1) }
