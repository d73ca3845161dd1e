package sqlrow_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/sqlrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// A table for CREATE TABLE orders (id BIGINT NOT NULL, placed TIMESTAMP_LTZ(6), total DECIMAL(10, 2)), and a row of it.
func ExampleNew() {
	columns := []sqlrow.Column{
		{Name: "id", Type: sqlrow.Type{Kind: sqlrow.BigInt, NotNull: true}},
		{Name: "placed", Type: sqlrow.Type{Kind: sqlrow.TimestampLTZ, Precision: 6}},
		{Name: "total", Type: sqlrow.Type{Kind: sqlrow.Decimal, Precision: 10, Scale: 2}},
	}
	s, err := sqlrow.New(columns, func(r sqlrow.Record) sqlrow.Record { return r }, sqlrow.Options{PrimaryKey: []string{"id"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "p", Dataset: "shop", Table: "orders"}
	schema, _ := s.Schema(dst)
	for _, f := range schema.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	encoded, err := s.AppendRow(nil, dst, sqlrow.Record{Change: sqlrow.Delete, Values: []row.Value{{Int: 7}, {Null: true}, {Null: true}}})
	fmt.Printf("% x %v\n", encoded, err)
	// Output:
	// id INT64 NULLABLE
	// placed TIMESTAMP NULLABLE
	// total NUMERIC NULLABLE
	// 08 07 <nil>
}
