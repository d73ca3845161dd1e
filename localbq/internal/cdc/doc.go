// Package cdc holds what change data capture is made of: types of changes, sequence numbers and their order, keys, and the
// index that knows the greatest change of every key.
//
// The order of changes of one key is that of BigQuery documentation, "Stream table updates with change data capture": the
// greatest sequence number wins, and of equal ones the later ingested. A row that no change brought sorts below every change,
// and a change without a sequence number below every one that has one.
package cdc
