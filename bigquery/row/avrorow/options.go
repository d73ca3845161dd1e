package avrorow

import "github.com/millrace-dev/millrace/bigquery/table"

// Options say how an Avro schema becomes a table's. The zero value is the default.
type Options struct {
	// DeriveRequired makes columns REQUIRED that cannot be NULL: those whose type is no union with null. REQUIRED columns can be
	// relaxed later, but never added to a table that exists.
	DeriveRequired bool

	// JSONPaths and GeographyPaths mark string fields whose text becomes JSON and GEOGRAPHY columns, by dotted names from the root:
	// "event.details", "labels.value" for the values of a map. The text is passed on as it is.
	JSONPaths, GeographyPaths []string

	// RecognizeSQLTypes reads BigQuery's own annotations: of strings the sqlType JSON and GEOGRAPHY, and the logical type datetime;
	// decimal(38, 9) is NUMERIC and decimal(77, 38) BIGNUMERIC; and the displayName of fields, which is the column's name where Avro
	// cannot hold it. So the schema of a read session makes the table that was read, but for RANGE and INTERVAL, which stay the records
	// they are written as.
	RecognizeSQLTypes bool

	// Table is the schema of the table, where it is given and not derived: fields fill the columns of their names, ignoring case,
	// and must be of their types. Columns without a field are NULL. A field without a column is a fault unless IgnoreUnknownFields.
	// Strings fill JSON and GEOGRAPHY columns without marks. Serializers of NewWritten alone take it.
	Table               *table.Schema
	IgnoreUnknownFields bool
}
