// Package csvfile reads CSV as load jobs do (BigQuery documentation, "Loading CSV data"): fields between one separator, quoted
// where they hold it, with a quote doubled inside of quotes.
package csvfile
