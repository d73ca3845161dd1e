// Package e2e has no code: its tests join several rooms, and kill what they have joined.
//
// TestKilled runs a job in processes that are killed at every step of every call, and at random instants, with and without
// the local BigQuery that it writes to, until one gets done; then it compares the tables with the input. The test binary is
// the job and the service, too.
//
// TestKilledSource does the same to a job that reads a table of two million rows into files, in a calm and in a storm of faults, and
// finds every row in them once, all of one read session.
package e2e
