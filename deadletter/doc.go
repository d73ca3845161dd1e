// Package deadletter says what a dead letter is: a record that could not be written, with what is known about it, as it lies
// in every kind of queue. The queues are packages beside it, each alone because of what it links:
//
//   - filequeue: files of lines, JSON
//   - pubsubqueue: a Pub/Sub topic
//   - tablequeue: a BigQuery table
//
// Each makes a [stream.FailurePolicy], for the options of a sink. A dead letter is in its queue, for good, once the handler's
// Flush has returned, which is before the checkpoint that passes over its record. Records after the last checkpoint are read
// again when a job is started again, and those that fail are offered again: a queue may hold the same dead letter several
// times, and [Letter.Identity] tells.
package deadletter
