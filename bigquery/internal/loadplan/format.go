package loadplan

import "fmt"

// Format is what a staged file is written as. Their order is that of load jobs of one destination.
type Format uint8

// The formats of staged files.
const (
	Avro    Format = iota // the default: object container files, packed with zstandard
	Parquet               // smaller, and slower to load below some 256 MB
	JSONL                 // one JSON object a line
	CSV
	Custom // whatever a writer of the user's makes, ORC for one
)

var formatNames = [...]string{Avro: "AVRO", Parquet: "PARQUET", JSONL: "JSONL", CSV: "CSV", Custom: "CUSTOM"}

// String is the name in options, committables and names of tables.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// parseFormat reads what String writes.
func parseFormat(name string) (Format, bool) {
	for f, n := range formatNames {
		if n == name {
			return Format(f), true
		}
	}
	return 0, false
}
