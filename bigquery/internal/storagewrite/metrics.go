package storagewrite

import (
	"slices"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/stream"
)

// The instruments of a writer beside those that every method has.
var (
	appendRetries = stream.Instrument{Name: "millrace.bigquery.sink.append_retries", Unit: "1",
		Help: "Batches appended again by a repair."}
	streamResends = stream.Instrument{Name: "millrace.bigquery.sink.stream_resends", Unit: "1",
		Help: "Appends that the connection layer sent again by itself."}
	appendErrors = stream.Instrument{Name: "millrace.bigquery.sink.append_errors", Unit: "1",
		Help: "Failed appends, by the canonical name of their status code, UNCLASSIFIED without one (label code)."}
	tablesCreated = stream.Instrument{Name: "millrace.bigquery.sink.tables_created", Unit: "1",
		Help: "Creations of tables that this writer asked for and that left the table there, whoever made it."}
	schemaReconciliations = stream.Instrument{Name: "millrace.bigquery.sink.schema_reconciliations", Unit: "1",
		Help: "Changes of tables that this writer made for rows with more columns."}
	inFlightBatches = stream.Instrument{Name: "millrace.bigquery.sink.in_flight_batches", Unit: "1",
		Help: "Batches that are unanswered or wait for repair."}
	inFlightAppends = stream.Instrument{Name: "millrace.bigquery.sink.in_flight_appends", Unit: "1",
		Help: "Appends to streams of a lane's own that are unanswered, without those that a repair waits for."}
)

// Instruments lists them all.
var Instruments = slices.Concat(outcome.Instruments, []stream.Instrument{appendRetries, streamResends,
	appendErrors, tablesCreated, schemaReconciliations, inFlightBatches, inFlightAppends})

// meters are the series of one writer.
type meters struct {
	*outcome.Meters

	appendRetries, streamResends, tablesCreated stream.Counter
	schemaReconciliations                       stream.Counter
	inFlightBatches, inFlightAppends            stream.Gauge
	appendErrors                                map[string]stream.Counter // by code, as they come up
}

// newMeters makes the series that writers of a method have; the others stay nil.
func newMeters(m *outcome.Meters, buffered bool) *meters {
	all := &meters{
		Meters:                m,
		appendRetries:         m.Meter.Counter(appendRetries, m.Labels...),
		streamResends:         m.Meter.Counter(streamResends, m.Labels...),
		schemaReconciliations: m.Meter.Counter(schemaReconciliations, m.Labels...),
		appendErrors:          map[string]stream.Counter{},
	}
	if buffered {
		all.inFlightAppends = m.Meter.Gauge(inFlightAppends, m.Labels...)
	} else {
		all.inFlightBatches = m.Meter.Gauge(inFlightBatches, m.Labels...)
		all.tablesCreated = m.Meter.Counter(tablesCreated, m.Labels...)
	}
	return all
}

func (m *meters) appendError(code string) {
	c := m.appendErrors[code]
	if c == nil {
		c = m.Meter.Counter(appendErrors, m.With("code", code)...)
		m.appendErrors[code] = c
	}
	c.Add(1)
}
