// Package tableadmin reads, creates and widens tables, and creates datasets, through the BigQuery REST service. It
// translates schemas between the three forms they come in: table.Schema, the REST form and the form of the Storage APIs.
//
// Calls that fail in passing are repeated within the caller's budget; the generated client repeats none by itself.
package tableadmin
