package jsonrow

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Decision is what inference decided about a field that it could not take over as it is.
type Decision string

const (
	Renamed   Decision = "renamed"   // the key is no name that every write method takes
	SameName  Decision = "same name" // another key is the same name to BigQuery, which ignores case
	AsJSON    Decision = "JSON"      // a JSON column, because no other type holds every value
	NoColumn  Decision = "no column" // nothing but null, [], {} was seen
	AsTime    Decision = "TIMESTAMP" // strings that are timestamps
	AsDate    Decision = "DATE"      // strings that are dates
	AsDecimal Decision = "NUMERIC"   // numbers that neither INT64 nor FLOAT64 holds
)

// Choice is one such decision.
type Choice struct {
	// Path is where the field is in the documents: keys with dots between them, [] behind those of arrays.
	Path     string
	Decision Decision
	// Column is the dotted path of the column, "" when there is none.
	Column string
	Type   table.Type // of the column; 0 when there is none
	// Why is the reason, fit to follow "because".
	Why string
	// Respelt says that some sampled values will be read back in another spelling of the same value.
	Respelt bool
}

// String is the choice as a sentence.
func (c Choice) String() string {
	switch c.Decision {
	case Renamed, SameName:
		return fmt.Sprintf("%s is column %s, because %s", c.Path, c.Column, c.Why)
	case NoColumn:
		return fmt.Sprintf("%s has no column, because %s", c.Path, c.Why)
	}
	return fmt.Sprintf("%s is %v, because %s", c.Path, c.Type, c.Why)
}
