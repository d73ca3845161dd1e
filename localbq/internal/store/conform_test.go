package store

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// fromJSON makes a batch shaped by s.
func fromJSON(t *testing.T, s *schema.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s.Arrow(), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func toJSON(t *testing.T, b arrow.RecordBatch) string {
	t.Helper()
	var out strings.Builder
	if err := array.RecordToJSON(b, &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.ReplaceAll(out.String(), "\n", " "))
}

func TestConform(t *testing.T) {
	inner := &schema.Field{Name: "s", Type: schema.Struct, Fields: []*schema.Field{{Name: "a", Type: schema.Int64}}}
	list := &schema.Field{Name: "l", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "a", Type: schema.String}}}
	money := &schema.Field{Name: "m", Type: schema.Numeric, Precision: 10, Scale: 2}
	from := &schema.Schema{Fields: []*schema.Field{{Name: "n", Type: schema.Int64, Mode: schema.Required}, inner, list, money}}
	to := from.Clone()
	to.Fields[0].Mode = schema.Nullable
	to.Fields[1].Fields = append(to.Fields[1].Fields, &schema.Field{Name: "b", Type: schema.String, Mode: schema.Repeated})
	to.Fields[2].Fields = append(to.Fields[2].Fields, &schema.Field{Name: "c", Type: schema.Bool})
	to.Fields[3].Precision, to.Fields[3].Scale = 14, 4
	to.Fields = append(to.Fields, &schema.Field{Name: "new", Type: schema.Date}, &schema.Field{Name: "many", Type: schema.Int64, Mode: schema.Repeated})

	rows := `[{"n":1,"s":{"a":5},"l":[{"a":"x"},{"a":null}],"m":"1.25"},{"n":2,"s":null,"l":[],"m":null},{"n":3,"s":{"a":null},"l":[{"a":"y"}],"m":"-7.5"}]`
	want := []string{
		`{"l":[{"a":"x","c":null},{"a":null,"c":null}],"m":"1.25","many":[],"n":1,"new":null,"s":{"a":5,"b":[]}}`,
		`{"l":[],"m":null,"many":[],"n":2,"new":null,"s":null}`,
		`{"l":[{"a":"y","c":null}],"m":"-7.5","many":[],"n":3,"new":null,"s":{"a":null,"b":[]}}`,
	}
	b := fromJSON(t, from, rows)
	for name, slice := range map[string]struct{ from, to int64 }{"all": {0, 3}, "a slice": {1, 3}, "one row": {2, 3}, "none": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			got := conform(b.NewSlice(slice.from, slice.to), from, to)
			if !got.Schema().Equal(to.Arrow()) {
				t.Fatalf("schema %v, want %v", got.Schema(), to.Arrow())
			}
			if text, want := toJSON(t, got), strings.Join(want[slice.from:slice.to], " "); text != want {
				t.Errorf("got\n%s, want\n%s", text, want)
			}
		})
	}
	t.Run("a column that is gone is left out", func(t *testing.T) {
		got := conform(b, from, &schema.Schema{Fields: from.Fields[3:]})
		if text := toJSON(t, got); text != `{"m":"1.25"} {"m":null} {"m":"-7.5"}` {
			t.Errorf("got %s", text)
		}
	})
	t.Run("a table without columns gets some", func(t *testing.T) {
		empty := array.NewRecordBatch((&schema.Schema{}).Arrow(), nil, 2)
		got := conform(empty, nil, columns("n", schema.Int64))
		if text := toJSON(t, got); text != `{"n":null} {"n":null}` {
			t.Errorf("got %s", text)
		}
	})
}

func TestWidenedTable(t *testing.T) {
	s := inMemory(t)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	old := tab.Info()
	put(t, tab, numbered(0, 3))
	before, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.UpdateTable(table, "", func(d *schema.Definition) error {
		d.Schema.Fields = append(d.Schema.Fields, &schema.Field{Name: "late", Type: schema.Float64})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A connection that has not heard of the change writes in the old shape.
	if _, err := tab.Write(Rows{Info: old, Batches: []arrow.RecordBatch{numbered(3, 2)}}); err != nil {
		t.Fatal(err)
	}
	put(t, tab, fromJSON(t, tab.Info().Schema, `[{"n":5,"s":"x","late":0.5}]`))
	if got := numbers(t, tab, 0); len(got) != 6 {
		t.Errorf("rows %v", got)
	}
	if got := before.Info.Schema; got != old.Schema {
		t.Errorf("the snapshot before the change has schema %v", got)
	}
	after, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	parts := after.Parts()
	if got := toJSON(t, parts[len(parts)-1].Batch); !strings.Contains(got, `{"late":0.5,"n":5,"s":"x"}`) {
		t.Errorf("last rows: %s", got)
	}
	if len(tab.chunks) != 2 {
		t.Errorf("%d chunks, want 2: one for each definition", len(tab.chunks))
	}
}

func TestRetype(t *testing.T) {
	s := &schema.Schema{Fields: []*schema.Field{
		{Name: "n", Type: schema.Int64, Mode: schema.Required},
		{Name: "l", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "a", Type: schema.String}}},
	}}
	// What an engine makes of the same columns: other names and nullability inside.
	foreign := arrow.NewSchema([]arrow.Field{
		{Name: "N", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "L", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "A", Type: arrow.BinaryTypes.String})), Nullable: true},
	}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, foreign, strings.NewReader(`[{"N":1,"L":[{"A":"x"}]},{"N":2,"L":[]}]`))
	if err != nil {
		t.Fatal(err)
	}
	store := inMemory(t)
	tab := makeTable(t, store, table, &schema.Definition{Schema: s})
	if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(b, b.NewSlice(1, 2))}); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, tab, 0); len(got) != 3 {
		t.Errorf("rows %v", got)
	}
	for name, bad := range map[string]arrow.RecordBatch{"another type": fromJSON(t, columns("n", schema.String, "l", schema.String), `[{"n":"1","l":"2"}]`), "a column less": fromJSON(t, columns("n", schema.Int64), `[{"n":1}]`)} {
		if _, err := tab.Write(Rows{Info: tab.Info(), Batches: list(bad)}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
