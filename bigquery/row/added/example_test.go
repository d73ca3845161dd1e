package added_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/added"
	"github.com/millrace-dev/millrace/bigquery/row/structrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

type Order struct {
	ID     int64  `bigquery:"id"`
	Source string `bigquery:"-"`
}

func ExampleNew() {
	orders, err := structrow.New[Order](structrow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := added.New[Order](orders,
		added.String("__source", added.Required, func(o Order) (string, bool, error) { return o.Source, o.Source != "", nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}
	schema, _ := rows.Schema(dst)
	for _, f := range schema.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	data, _ := rows.AppendRow(nil, dst, Order{ID: 7, Source: "web"})
	decoder, _ := row.NewDecoder(schema)
	r, _ := decoder.Decode(data)
	fmt.Printf("%d %s\n", r.Values[0].Int, r.Values[1].Bytes)
	_, err = rows.AppendRow(nil, dst, Order{ID: 8})
	fmt.Println(err)
	// Output:
	// id INT64 NULLABLE
	// __source STRING REQUIRED
	// 7 web
	// R-REQUIRED: field __source: no value for an added column that is Required
}
