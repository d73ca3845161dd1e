package outcome

import (
	"strconv"

	"github.com/millrace-dev/millrace/stream"
)

// The instruments that every method has. Each carries the labels job, lane and write_method.
var (
	RecordsSent = stream.Instrument{Name: "millrace.bigquery.sink.records_sent", Unit: "1",
		Help: "Rows handed to a connection for the first time, or written to a staged file; also by destination where that is asked for."}
	BytesSent = stream.Instrument{Name: "millrace.bigquery.sink.bytes_sent", Unit: "By",
		Help: "Lengths of the rows handed to a connection for the first time, without framing; of staged files, their lengths once they are finished."}
	SendErrors = stream.Instrument{Name: "millrace.bigquery.sink.send_errors", Unit: "1",
		Help: "Records handed to the failure handler; also by destination where that is asked for."}
	RecordsSkipped = stream.Instrument{Name: "millrace.bigquery.sink.records_skipped", Unit: "1",
		Help: "Records that the serializer wanted written nowhere."}
	OpenDestinations = stream.Instrument{Name: "millrace.bigquery.sink.open_destinations", Unit: "1",
		Help: "Destinations with an open handle, or an open file."}
)

// Instruments lists them all.
var Instruments = []stream.Instrument{RecordsSent, BytesSent, SendErrors, RecordsSkipped, OpenDestinations}

// Meters are the series of one writer.
type Meters struct {
	Meter  stream.Meter
	Labels []stream.Label

	recordsSent, sendErrors, recordsSkipped stream.Counter

	BytesSent        stream.Counter
	OpenDestinations stream.Gauge
}

func newMeters(m stream.Meter, job string, lane int, method string) *Meters {
	labels := []stream.Label{{Key: "job", Value: job}, {Key: "lane", Value: strconv.Itoa(lane)}, {Key: "write_method", Value: method}}
	return &Meters{
		Meter:            m,
		Labels:           labels,
		recordsSent:      m.Counter(RecordsSent, labels...),
		BytesSent:        m.Counter(BytesSent, labels...),
		sendErrors:       m.Counter(SendErrors, labels...),
		recordsSkipped:   m.Counter(RecordsSkipped, labels...),
		OpenDestinations: m.Gauge(OpenDestinations, labels...),
	}
}

// destination returns the series of one destination.
func (m *Meters) destination(name string) (sent, failed stream.Counter) {
	labels := m.With("destination", name)
	return m.Meter.Counter(RecordsSent, labels...), m.Meter.Counter(SendErrors, labels...)
}

// With is the writer's labels and another one.
func (m *Meters) With(key, value string) []stream.Label {
	return append(m.Labels[:len(m.Labels):len(m.Labels)], stream.Label{Key: key, Value: value})
}
