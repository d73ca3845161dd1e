package jsonrow_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func itself(doc []byte) []byte { return doc }

func ExampleNew() {
	schema := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required},
		{Name: "price", Type: table.Numeric, Precision: 10, Scale: 2},
	}}
	s, err := jsonrow.New(itself, jsonrow.Fixed(schema), jsonrow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := table.Destination{Project: "my-project", Dataset: "shop", Table: "items"}
	for _, doc := range []string{`{"id": 7, "price": 1.50}`, `{"id": 8, "price": 1.505}`, `{"price": 2}`} {
		b, err := s.AppendRow(nil, dst, []byte(doc))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%x\n", b)
	}
	// Output:
	// 08071204002f6859
	// R-SCALE: field price: expected fewer digits behind the point: the column does not keep them (at byte 19 of the record)
	// R-REQUIRED: field id: no value, expected one: the column is REQUIRED (at byte 0 of the record)
}

func ExampleInference() {
	inf := jsonrow.NewInference(jsonrow.InferOptions{Rest: "rest"})
	for _, doc := range []string{
		`{"id": 1, "at": "2026-07-26T01:02:03Z", "reactions": {"+1": 3}, "note": null}`,
		`{"id": 2, "labels": [{"name": "bug"}], "ref": 7}`,
		`{"id": 3, "ref": "main"}`,
	} {
		if err := inf.Add([]byte(doc)); err != nil {
			fmt.Println(err)
		}
	}
	inferred, err := inf.Schema()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range inferred.Mapping.Schema.Fields {
		fmt.Println(f.Name, f.Type, f.Mode)
	}
	for _, c := range inferred.Choices {
		fmt.Println("-", c)
	}
	// Output:
	// id INT64 NULLABLE
	// at TIMESTAMP NULLABLE
	// reactions STRUCT NULLABLE
	// labels STRUCT REPEATED
	// ref JSON NULLABLE
	// rest JSON NULLABLE
	// - at is TIMESTAMP, because its strings are RFC 3339 timestamps
	// - reactions.+1 is column reactions.plus_1, because column names are letters, digits and underscores
	// - note has no column, because it only ever was null
	// - ref is JSON, because it held a number and a string
}

func ExampleField() {
	doc := []byte(`{"event": "push", "repository": {"id": 42}}`)
	event, err := jsonrow.Field(doc, "event")
	fmt.Println(event, err)
	id, err := jsonrow.Field(doc, "repository.id")
	fmt.Println(id, err)
	_, err = jsonrow.Field([]byte(`{"event": "push"`), "event")
	fmt.Println(err)
	// Output:
	// push <nil>
	// 42 <nil>
	// R-JSON: the JSON is cut: it ends where a comma or } is expected (at byte 16 of the record)
}

func ExampleWriter() {
	r := &row.Row{
		Schema: &table.Schema{Fields: []table.Field{{Name: "at", Type: table.Timestamp}, {Name: "tags", Type: table.String, Mode: table.Repeated}, {Name: "note", Type: table.String}}},
		Values: []row.Value{{Int: 1785027723456789}, {List: []row.Value{{Bytes: []byte("a")}}}, {Null: true}},
	}
	doc, err := jsonrow.NewWriter(jsonrow.WriteOptions{}).AppendJSON(nil, r)
	fmt.Printf("%s %v\n", doc, err)
	// Output: {"at":"2026-07-26T01:02:03.456789Z","tags":["a"]} <nil>
}
