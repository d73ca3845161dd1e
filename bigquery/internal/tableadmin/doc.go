// Package tableadmin reads and creates tables and datasets through the BigQuery REST service, and translates schemas
// between the three forms they come in: table.Schema, the REST form and the form of the Storage APIs.
//
// Calls that fail in passing are repeated within the caller's budget; the generated client repeats none by itself.
package tableadmin
