// Package watch takes the calls of a local BigQuery past its fault rules and into its audit log. AppendRows does so itself,
// for each of its requests; all other calls are watched from here, from outside.
package watch
