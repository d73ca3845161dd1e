// Package plan says what a job would do, without doing it: the tables it would write to and create, the schemas of their rows
// and how they came about, the guarantee, the permissions it needs, the data that it connects, and how much of BigQuery's quotas
// it would take.
//
// A plan is made of the job file and of a look at the input. The network is asked only for schemas of tables that exist, where
// the job takes its columns from them; what BigQuery has is for package doctor.
package plan
