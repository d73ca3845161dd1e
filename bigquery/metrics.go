package bigquery

import (
	"slices"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/stream"
)

// SinkInstruments lists the metrics of sinks. Each series carries the labels job, lane and write_method; append_errors
// also code, and records_sent and send_errors also destination, with SinkOptions.PerDestinationMetrics. Series of the commits of
// MethodFileLoads carry no lane.
//
// records_sent, send_errors and records_skipped do not add up to the input: a row that the service refused by its number
// is in the first two.
func SinkInstruments() []stream.Instrument {
	return slices.Concat(storagewrite.Instruments, fileload.WriterInstruments, fileload.CommitInstruments)
}
