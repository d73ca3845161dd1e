package loadplan

import "fmt"

// Disposition is what becomes of rows that are in a table already (BigQuery REST reference, writeDisposition).
type Disposition uint8

// The dispositions. The zero value is the default.
const (
	Append       Disposition = iota // rows are added
	Truncate                        // rows, schema and constraints are replaced
	TruncateData                    // rows are replaced, schema and constraints stay; copy jobs do not know it
	Empty                           // the table must have no rows
)

var dispositionNames = [...]string{Append: "WRITE_APPEND", Truncate: "WRITE_TRUNCATE", TruncateData: "WRITE_TRUNCATE_DATA", Empty: "WRITE_EMPTY"}

// String is the name that jobs have for it.
func (d Disposition) String() string {
	if int(d) < len(dispositionNames) {
		return dispositionNames[d]
	}
	return fmt.Sprintf("Disposition(%d)", uint8(d))
}

// Replaces says whether rows that were there are gone afterwards.
func (d Disposition) Replaces() bool { return d == Truncate || d == TruncateData }
