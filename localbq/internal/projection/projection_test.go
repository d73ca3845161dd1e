package projection

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func table() *schema.Schema {
	return &schema.Schema{Fields: []*schema.Field{
		{Name: "id", Type: schema.Int64},
		{Name: "User", Type: schema.Struct, Fields: []*schema.Field{
			{Name: "name", Type: schema.String}, {Name: "age", Type: schema.Int64},
		}},
		{Name: "items", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{
			{Name: "sku", Type: schema.String},
			{Name: "price", Type: schema.Struct, Fields: []*schema.Field{{Name: "value", Type: schema.Float64}, {Name: "unit", Type: schema.String}}},
		}},
	}}
}

const rows = `[{"id": 1, "User": {"name": "a", "age": 30}, "items": [{"sku": "x", "price": {"value": 1, "unit": "EUR"}}]},
	{"id": 2, "User": null, "items": []},
	{"id": 3, "User": {"name": "c", "age": null}, "items": [{"sku": "y", "price": null}, {"sku": "z", "price": {"value": 2, "unit": "USD"}}]}]`

func TestApply(t *testing.T) {
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, table().Arrow(), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		from  int64 // first row read: a slice has to stay one
		want  string
	}{
		{nil, 2, `[{"User":{"age":null,"name":"c"},"id":3,"items":[{"price":null,"sku":"y"},{"price":{"unit":"USD","value":2},"sku":"z"}]}]`},
		{[]string{"items.sku", "ID"}, 0, `[{"id":1,"items":[{"sku":"x"}]},{"id":2,"items":[]},{"id":3,"items":[{"sku":"y"},{"sku":"z"}]}]`},
		{[]string{"user.name"}, 1, `[{"User":null},{"User":{"name":"c"}}]`},
		{[]string{"user.name", "user"}, 1, `[{"User":null},{"User":{"age":null,"name":"c"}}]`},
		{[]string{"items.price.unit"}, 2, `[{"items":[{"price":null},{"price":{"unit":"USD"}}]}]`},
	} {
		p, unknown := Of(table(), c.paths)
		if unknown != nil {
			t.Errorf("%v: unknown %v", c.paths, unknown)
		}
		got, err := p.Apply(batch.NewSlice(c.from, batch.NumRows())).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, strings.ReplaceAll(string(got), "\n", "")); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.paths, diff)
		}
	}
}

func TestUnknown(t *testing.T) {
	p, unknown := Of(table(), []string{"id", "nope", "user.zip", "id.x"})
	if diff := cmp.Diff([]string{"nope", "user.zip", "id.x"}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if len(p.Schema.Fields) != 1 {
		t.Errorf("chose %d fields, want 1", len(p.Schema.Fields))
	}
}
