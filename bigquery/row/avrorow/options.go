package avrorow

// Options say how an Avro schema becomes a table's. The zero value is the default.
type Options struct {
	// DeriveRequired makes columns REQUIRED that cannot be NULL: those whose type is no union with null. REQUIRED columns can be
	// relaxed later, but never added to a table that exists.
	DeriveRequired bool

	// JSONPaths and GeographyPaths mark string fields whose text becomes JSON and GEOGRAPHY columns, by dotted names from the root:
	// "event.details", "labels.value" for the values of a map. The text is passed on as it is.
	JSONPaths, GeographyPaths []string

	// RecognizeSQLTypes reads BigQuery's own annotations of strings: sqlType JSON and GEOGRAPHY, and the logical type datetime, so
	// that the schema of a read session makes the table that was read.
	RecognizeSQLTypes bool
}
