// Package rest is the BigQuery v2 REST face of the local BigQuery: datasets, tables, rows of tables, and jobs that query.
//
// Supported, as BigQuery answers them: projects.list and getServiceAccount; datasets insert, get, list, patch, update,
// delete; tables insert, get, list, patch, update, delete and the IAM methods; tabledata.list and insertAll; the discovery document; jobs insert (of type query),
// get, list, cancel, delete, query, getQueryResults. Routines, models and row access policies list as empty.
//
// Everything else, methods and fields alike, is refused with 501 notImplemented and named. A field that BigQuery itself
// ignores is ignored; one that only BigQuery writes may be sent back and is not looked at.
//
// Known differences: access lists are kept and answered but not enforced; bytes billed are the bytes processed, with
// BigQuery's floor; a table has no streaming buffer, because its rows are visible to every reader at once.
package rest
