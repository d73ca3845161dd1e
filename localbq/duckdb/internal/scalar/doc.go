// Package scalar is functions of GoogleSQL on single values, for those that DuckDB does not have or means otherwise. Pure
// Go; strings that come in are only valid during the call. Errors are in BigQuery's words.
package scalar
