// Package doctor says what stands between a job and success: it asks BigQuery and the checkpoint store what the plan of the job
// leaves open, and reports everything that it finds, the good with the bad. It changes nothing, but for a probe in the
// checkpoint store that it takes away again.
package doctor
