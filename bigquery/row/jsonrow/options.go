package jsonrow

// Options says how JSON values become column values. The zero value accepts every form a column has.
type Options struct {
	// TimestampNumbers says what whole numbers mean in TIMESTAMP columns.
	TimestampNumbers TimestampNumbers
	// JSONColumns says what JSON columns take.
	JSONColumns JSONColumns
	// BytesEncoding says what BYTES columns take.
	BytesEncoding BytesEncoding
	// IgnoreUnknownFields drops keys that have no column, at every level. By default they are errors: data that
	// vanishes should have been told to.
	IgnoreUnknownFields bool
}

// TimestampNumbers is what a whole number, quoted or not, means in a TIMESTAMP column.
type TimestampNumbers uint8

const (
	Micros          TimestampNumbers = iota // microseconds since 1970, as the Write API counts
	RejectNumbers                           // nothing: an error
	Seconds                                 // seconds since 1970
	Millis                                  // milliseconds since 1970
	lastTimeNumbers = Millis
)

// JSONColumns is what a JSON column takes.
type JSONColumns uint8

const (
	TextOrValue     JSONColumns = iota // a string is JSON text, taken as it is; any other value is itself
	Text                               // strings only, which are JSON text
	Values                             // any value is itself; a string becomes a JSON string
	lastJSONColumns = Values
)

// BytesEncoding is what a BYTES column takes.
type BytesEncoding uint8

const (
	AnyBytes          BytesEncoding = iota // both
	Base64                                 // base64, standard or URL alphabet, padded or not
	ByteArrays                             // arrays of whole numbers from -128 to 255
	lastBytesEncoding = ByteArrays
)
