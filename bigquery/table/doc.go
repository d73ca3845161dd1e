// Package table holds the values that name and describe BigQuery tables: Destination, Schema, Field, and what to create
// a table with. It knows no service and no wire format.
package table
