package storageread

import "github.com/millrace-dev/millrace/stream"

// Instruments of the source. Nothing counts what a stream still holds: the service does not say.
var (
	RowsRead = stream.Instrument{Name: "millrace.bigquery.source.reader.rows_read", Unit: "1",
		Help: "Rows of blocks received from read streams, also those never handed on."}
	BytesRead = stream.Instrument{Name: "millrace.bigquery.source.reader.bytes_read", Unit: "By",
		Help: "Serialized bytes of blocks received from read streams. Not what is billed."}
	ReadRetries = stream.Instrument{Name: "millrace.bigquery.source.reader.read_retries", Unit: "1",
		Help: "ReadRows calls issued again after an error."}
	ThrottledResponses = stream.Instrument{Name: "millrace.bigquery.source.reader.throttled_responses", Unit: "1",
		Help: "Responses that came while the service slowed their stream down."}
	RecordsEmitted = stream.Instrument{Name: "millrace.bigquery.source.reader.records_emitted", Unit: "1",
		Help: "Records made of rows; may be fewer or more than the rows."}
	RecordsSkipped = stream.Instrument{Name: "millrace.bigquery.source.reader.records_skipped", Unit: "1",
		Help: "Rows that gave no record."}

	ReadSessionsCreated = stream.Instrument{Name: "millrace.bigquery.source.enumerator.read_sessions_created", Unit: "1",
		Help: "Read sessions created: 1 after a fresh start, 0 after a restore; anything else is worth an alert."}
	SplitsAssigned = stream.Instrument{Name: "millrace.bigquery.source.enumerator.splits_assigned", Unit: "1",
		Help: "Splits handed to lanes."}
	SplitsReturned = stream.Instrument{Name: "millrace.bigquery.source.enumerator.splits_returned", Unit: "1",
		Help: "Splits that came back from failed lanes."}
	UnassignedSplits = stream.Instrument{Name: "millrace.bigquery.source.enumerator.unassigned_splits", Unit: "1",
		Help: "Splits waiting for a lane."}
	QueryJobsSubmitted = stream.Instrument{Name: "millrace.bigquery.source.enumerator.query_jobs_submitted", Unit: "1",
		Help: "Query jobs that ran to a good end for this source; 0 when it reads a table."}
	QueryJobsReattached = stream.Instrument{Name: "millrace.bigquery.source.enumerator.query_jobs_reattached", Unit: "1",
		Help: "Query jobs of an earlier attempt that were used again."}
)

// Instruments lists them all.
var Instruments = []stream.Instrument{RowsRead, BytesRead, ReadRetries, ThrottledResponses, RecordsEmitted, RecordsSkipped,
	ReadSessionsCreated, SplitsAssigned, SplitsReturned, UnassignedSplits, QueryJobsSubmitted, QueryJobsReattached}
