// Package query is the door between the local BigQuery and the engine that runs its statements.
//
// The service owns tables, jobs and snapshots; an engine owns the language. An engine asks a Catalog for the tables that a
// statement names, each as one snapshot, and answers rows in the layout in which the service stores them. A service
// without an engine does everything but query and filter, and says so when asked to.
package query
