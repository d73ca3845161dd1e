package structrow_test

import (
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/structrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

type Visit struct {
	ID    int64     `bigquery:"id"`
	At    time.Time `bigquery:"at"`
	Pages []string  `bigquery:"pages"`
	Note  *string   `bigquery:"note"`
}

func ExampleNew() {
	s, err := structrow.New[Visit](structrow.Options{DeriveRequired: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "web", Table: "visits"}
	schema, _ := s.Schema(dst)
	for _, f := range schema.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	b, err := s.AppendRow(nil, dst, Visit{ID: 7, At: time.Unix(1, 0), Pages: []string{"/"}})
	fmt.Printf("%x %v\n", b, err)
	// Output:
	// id INT64 REQUIRED
	// at TIMESTAMP REQUIRED
	// pages STRING REPEATED
	// note STRING NULLABLE
	// 080710c0843d1a012f <nil>
}

func ExampleColumns() {
	type event struct{ fields map[string]string }
	columns := structrow.Columns[event]{
		{Name: "user", Mode: table.Required, Value: structrow.String(func(e *event) (string, bool) { v, ok := e.fields["user"]; return v, ok })},
		{Name: "fields", Value: structrow.Int64(func(e *event) (int64, bool) { return int64(len(e.fields)), true })},
	}
	s, err := columns.Serializer()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range []event{{map[string]string{"user": "ada"}}, {}} {
		b, err := s.AppendRow(nil, table.Destination{}, e)
		fmt.Printf("%x %v\n", b, err)
	}
	// Output:
	// 0a036164611001 <nil>
	//  R-REQUIRED: field user: no value, expected one: the column is REQUIRED
}

func ExampleDeserializer() {
	d, err := structrow.NewDeserializer[Visit]()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &row.Row{
		Schema: &table.Schema{Fields: []table.Field{{Name: "ID", Type: table.Int64}, {Name: "note", Type: table.String}}},
		Values: []row.Value{{Int: 7}, {Bytes: []byte("again")}},
	}
	err = d.Deserialize(r, func(v Visit) error {
		fmt.Println(v.ID, *v.Note)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 7 again
	// <nil>
}
