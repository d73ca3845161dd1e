// Package added adds columns to the rows of any serializer: columns that are computed from the record, such as the time
// at which it was received or an id of its own.
//
//	rows, err := added.New(inner,
//		added.String("__uuid", added.Required, func(m Message) (string, bool, error) { return m.ID, m.ID != "", nil }),
//		added.Timestamp("__received", added.Nullable, func(m Message) (time.Time, bool, error) { return m.At, !m.At.IsZero(), nil }))
//
// The inner serializer makes its row, and the columns are appended to it in their order; the row is not parsed again. What
// a function computes is a singular scalar. A record that the inner serializer skips is skipped, and no function is called.
//
// A function answers the value, whether there is one, and an error. Without a value a Nullable column is NULL and a
// Required one is an error of the record, even where the table's column is NULLABLE. An error of a function is an error of
// the record, too, of the kind R-PROVIDER; errors.Is finds the function's own in it.
//
// Changes adds what BigQuery calls pseudo-columns, which a change data capture row carries and the table does not have.
package added
