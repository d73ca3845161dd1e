// Package export writes rows as files, as extract jobs do (BigQuery documentation, "Export table data to Cloud Storage").
package export
