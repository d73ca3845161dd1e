package query

import "fmt"

// Error is a statement's fault, in BigQuery's words. REST answers it as 400 invalidQuery.
type Error struct {
	Message string
	// Line and Column are where in the statement, from 1, in characters; 0 where no place is known.
	Line, Column int
}

// Error is the message as clients see it, with the place at its end.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s at [%d:%d]", e.Message, e.Line, e.Column)
}

// NotSupported begins the message of everything that BigQuery can do and this service cannot.
const NotSupported = "Not supported by local BigQuery: "
