package csvrow_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/csvrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func ExampleNew() {
	schema := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required},
		{Name: "note", Type: table.String},
		{Name: "day", Type: table.Date},
	}}
	header := []byte("day,id,note")
	rows, err := csvrow.New(func(text string) (head, record []byte) { return header, []byte(text) }, csvrow.Fixed(schema), csvrow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}
	decoder, _ := row.NewDecoder(schema)
	for _, text := range []string{`1970-01-02,7,"tea, black"`, `,8,`, `tomorrow,9,`} {
		data, err := rows.AppendRow(nil, dst, text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		r, _ := decoder.Decode(data)
		fmt.Printf("%d %q %v\n", r.Values[0].Int, r.Values[1].Bytes, r.Values[2].Int)
	}
	// Output:
	// 7 "tea, black" 1
	// 8 "" 0
	// R-TYPE: field day: expected a date as YYYY-MM-DD (cell 1) (at byte 0 of the record)
}
