package storagewrite

import (
	"strconv"

	"github.com/millrace-dev/millrace/stream"
)

// The instruments of a writer. Each carries the labels job, lane and write_method.
var (
	recordsSent = stream.Instrument{Name: "millrace.bigquery.sink.records_sent", Unit: "1",
		Help: "Rows handed to a connection for the first time; also by destination where that is asked for."}
	bytesSent = stream.Instrument{Name: "millrace.bigquery.sink.bytes_sent", Unit: "By",
		Help: "Lengths of the rows handed to a connection for the first time, without framing."}
	sendErrors = stream.Instrument{Name: "millrace.bigquery.sink.send_errors", Unit: "1",
		Help: "Records handed to the failure handler; also by destination where that is asked for."}
	recordsSkipped = stream.Instrument{Name: "millrace.bigquery.sink.records_skipped", Unit: "1",
		Help: "Records that the serializer wanted written nowhere."}
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
	openDestinations = stream.Instrument{Name: "millrace.bigquery.sink.open_destinations", Unit: "1",
		Help: "Destinations with an open handle."}
)

// Instruments lists them all.
var Instruments = []stream.Instrument{recordsSent, bytesSent, sendErrors, recordsSkipped, appendRetries, streamResends,
	appendErrors, tablesCreated, schemaReconciliations, inFlightBatches, inFlightAppends, openDestinations}

// meters are the series of one writer.
type meters struct {
	meter  stream.Meter
	labels []stream.Label

	recordsSent, bytesSent, sendErrors, recordsSkipped stream.Counter
	appendRetries, streamResends, tablesCreated        stream.Counter
	schemaReconciliations                              stream.Counter
	inFlightBatches, inFlightAppends, openDestinations stream.Gauge
	appendErrors                                       map[string]stream.Counter // by code, as they come up
}

// newMeters makes the series that writers of a method have; the others stay nil.
func newMeters(m stream.Meter, job string, lane int, buffered bool) *meters {
	method := "default"
	if buffered {
		method = "exactly-once"
	}
	labels := []stream.Label{{Key: "job", Value: job}, {Key: "lane", Value: strconv.Itoa(lane)}, {Key: "write_method", Value: method}}
	all := &meters{
		meter:                 m,
		labels:                labels,
		recordsSent:           m.Counter(recordsSent, labels...),
		bytesSent:             m.Counter(bytesSent, labels...),
		sendErrors:            m.Counter(sendErrors, labels...),
		recordsSkipped:        m.Counter(recordsSkipped, labels...),
		appendRetries:         m.Counter(appendRetries, labels...),
		streamResends:         m.Counter(streamResends, labels...),
		schemaReconciliations: m.Counter(schemaReconciliations, labels...),
		openDestinations:      m.Gauge(openDestinations, labels...),
		appendErrors:          map[string]stream.Counter{},
	}
	if buffered {
		all.inFlightAppends = m.Gauge(inFlightAppends, labels...)
	} else {
		all.inFlightBatches = m.Gauge(inFlightBatches, labels...)
		all.tablesCreated = m.Counter(tablesCreated, labels...)
	}
	return all
}

func (m *meters) appendError(code string) {
	c := m.appendErrors[code]
	if c == nil {
		c = m.meter.Counter(appendErrors, m.with("code", code)...)
		m.appendErrors[code] = c
	}
	c.Add(1)
}

// destination returns the series of one destination.
func (m *meters) destination(name string) (sent, failed stream.Counter) {
	labels := m.with("destination", name)
	return m.meter.Counter(recordsSent, labels...), m.meter.Counter(sendErrors, labels...)
}

func (m *meters) with(key, value string) []stream.Label {
	return append(m.labels[:len(m.labels):len(m.labels)], stream.Label{Key: key, Value: value})
}
