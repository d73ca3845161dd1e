package table_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/table"
)

func ExampleParseSchemaJSON() {
	s, err := table.ParseSchemaJSON([]byte(`[
  {"name": "id", "type": "INTEGER", "mode": "REQUIRED"},
  {"name": "price", "type": "NUMERIC", "mod": "REQUIRED"}
]`))
	fmt.Println(s, err)
	// Output:
	// <nil> line 3, column 40: [1].mod: unknown attribute "mod": expected one of name, type, mode, fields, description, defaultValueExpression, collation, roundingMode, maxLength, precision, scale, timestampPrecision, rangeElementType, policyTags
}

func ExampleSchema_Validate() {
	s := &table.Schema{Fields: []table.Field{
		{Name: "count", Type: table.Int64},
		{Name: "COUNT", Type: table.Int64},
		{Name: "user", Type: table.Struct},
	}}
	fmt.Println(s.Validate())
	// Output:
	// C-CASE: column COUNT: is the same name as "count": BigQuery ignores case
	// C-EMPTY: column user: is a STRUCT without members
}

func ExampleSchema_Diff() {
	have := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64, Mode: table.Required}}}
	want := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "note", Type: table.String}}}
	for _, d := range have.Diff(want) {
		fmt.Println(d)
	}
	// Output:
	// column id is REQUIRED, wanted NULLABLE
	// column note is missing, wanted STRING NULLABLE
}
