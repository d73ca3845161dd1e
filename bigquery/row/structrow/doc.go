// Package structrow makes rows of Go structs and Go structs of rows.
//
// Struct fields are columns as the official client reads them: exported fields, under the name of their bigquery tag
// or their own; "-" leaves a field out; embedded structs lend their fields to the struct around them. A plan is made of
// the type once; after that a record is read by offsets, without reflection and without garbage.
//
//	type Order struct {
//		ID       int64  `bigquery:"id"`
//		Customer *Customer               // STRUCT, NULL when nil
//		Items    []Item                  // REPEATED STRUCT
//		Placed   time.Time               // TIMESTAMP
//		Total    *big.Rat                // NUMERIC, NULL when nil
//		Note     bigquery.NullString     // STRING
//	}
//
//	s, err := structrow.New[Order](structrow.Options{})
//
// # Types
//
//	bool; int and uint of any size; float32, float64    BOOL, INT64, FLOAT64
//	string, []byte, json.RawMessage                     STRING, BYTES, JSON
//	time.Time; Date, Time and DateTime of package civil TIMESTAMP; DATE, TIME, DATETIME
//	*big.Rat                                            NUMERIC
//	Null types: of cloud.google.com/go/bigquery, of     the type they wrap
//	database/sql, and others of their name and shape
//	a struct, a pointer to any of these                 STRUCT; the type, NULL when nil
//	a slice or an array of any of these                 REPEATED
//
// Columns are NULLABLE or REPEATED unless Options.DeriveRequired asks for more. A nil slice of bytes is NULL; other values
// that Go cannot leave out, such as 0 and "", are written as they are. Where struct fields do not fit the table, [Columns]
// names every column and the function that reads it.
package structrow
