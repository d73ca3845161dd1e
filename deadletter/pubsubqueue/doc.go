// Package pubsubqueue publishes dead letters to a Pub/Sub topic.
//
// A message's data is the record as it came in, or the encoded row where a source cannot give that, or nothing; its attributes
// say the rest:
//
//	dlq-connector    "bigquery"
//	dlq-destination  "project.dataset.table", or "unresolved"; classify messages by this, and not by the length of the data
//	dlq-error        what was wrong
//	dlq-timestamp    when the letter was offered, RFC 3339 in UTC
//	dlq-subtask      number of the lane
//	dlq-job, dlq-file, dlq-line, dlq-position, dlq-split
//	                 where the record is in the source
//	dlq-payload      what the data is: "record", "cut" (its beginning only), "row" or "none"
//	dlq-context      what it takes to read the record: the header of a CSV file, the schema of an Avro file; left out where an
//	                 attribute has no room for it
//	dlq-replays      how often it was replayed and failed again; left out for 0
//
// An attribute that Pub/Sub has no room for, 1024 bytes, is cut between characters and ends in "...". Text that is no UTF-8 is
// mended. Letters published again by a job that was started again are messages of their own: place and data tell.
//
// The topic exists; it is never created. Credentials are the queue's own: the sink's are not used for it.
package pubsubqueue
