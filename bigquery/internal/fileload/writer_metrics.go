package fileload

import (
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/stream"
)

// The instruments of a writer beside those that every method has.
var (
	filesStaged = stream.Instrument{Name: "millrace.bigquery.sink.files_staged", Unit: "1",
		Help: "Files finished, for whatever reason."}
	capacityEvictions = stream.Instrument{Name: "millrace.bigquery.sink.capacity_evictions", Unit: "1",
		Help: "Files finished because another one was to be opened and MaxOpenDestinations were."}
	idleEvictions = stream.Instrument{Name: "millrace.bigquery.sink.idle_evictions", Unit: "1",
		Help: "Files finished because they had got no row for DestinationIdleTimeout."}
	pendingFiles = stream.Instrument{Name: "millrace.bigquery.sink.pending_files", Unit: "1",
		Help: "Files that wait for the next commit, open ones included."}
)

// WriterInstruments lists them all.
var WriterInstruments = []stream.Instrument{filesStaged, capacityEvictions, idleEvictions, pendingFiles}

type writerMeters struct {
	*outcome.Meters
	filesStaged, capacityEvictions, idleEvictions stream.Counter
	pendingFiles                                  stream.Gauge
}

func newWriterMeters(m *outcome.Meters) *writerMeters {
	counter := func(in stream.Instrument) stream.Counter { return m.Meter.Counter(in, m.Labels...) }
	return &writerMeters{m, counter(filesStaged), counter(capacityEvictions), counter(idleEvictions), m.Meter.Gauge(pendingFiles, m.Labels...)}
}

// show tells how many files there are.
func (m *writerMeters) show(s *shelf) {
	m.OpenDestinations.Set(int64(s.open))
	m.pendingFiles.Set(int64(s.pending()))
}
