package stream

// Meter makes instruments. It is the whole of what connectors and engines know about metrics; adapters to metric
// systems live elsewhere. A Meter and its instruments may be used from any goroutine.
type Meter interface {
	// Counter returns the counter of that instrument and labels, making it at 0 when it is new. Asking again gives the
	// same one.
	Counter(in Instrument, labels ...Label) Counter
	// Gauge is the same for a value that goes up and down.
	Gauge(in Instrument, labels ...Label) Gauge
}

// Instrument describes a metric. Packages declare theirs as variables in metrics.go and list them for the reference
// page.
type Instrument struct {
	Name string // dotted, snake_case: "millrace.bigquery.sink.records_sent"
	Unit string // "1", "By", "ms"
	Help string // one sentence
}

// Label is one attribute of a series. Values must come from a small, bounded set.
type Label struct{ Key, Value string }

// Counter only grows.
type Counter interface{ Add(n int64) }

// Gauge holds the latest value.
type Gauge interface{ Set(v int64) }

// NoMeter is the Meter that counts nothing.
var NoMeter Meter = noMeter{}

type noMeter struct{}

func (noMeter) Counter(Instrument, ...Label) Counter { return noMeter{} }
func (noMeter) Gauge(Instrument, ...Label) Gauge     { return noMeter{} }
func (noMeter) Add(int64)                            {}
func (noMeter) Set(int64)                            {}
