package decode

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestChanges(t *testing.T) {
	table := tableOf(col("id", schema.Int64), col("s", schema.String))
	d := messageOf("Row", field("id", "int64"), field("_Change_Type", "string"), field("_change_SEQUENCE_number", "string"))
	t.Run("LBQ-115 the fields are taken without regard to case, and are no columns", func(t *testing.T) {
		p := compile(t, d, table)
		got := decoded(t, p, Request{}, rows(t, d, `id: 1 _Change_Type: "UPSERT"`, `id: 2 _Change_Type: "DELETE" _change_SEQUENCE_number: "a/1"`))
		if want := `{"id":1,"s":null}` + "\n" + `{"id":2,"s":null}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		sequence, err := cdc.ParseSequence("A/1")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.TakeChanges(), []cdc.Change{{}, {Delete: true, Sequence: sequence}}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if !p.Changes() || p.TakeChanges() != nil {
			t.Error("changes are left")
		}
	})
	t.Run("LBQ-111, LBQ-114 bad types and sequences are row errors", func(t *testing.T) {
		p := compile(t, d, table)
		huge := strings.Repeat("x", 1<<20)
		bad := p.Decode(rows(t, d,
			`id: 1 _Change_Type: "UPSERT"`, `id: 1`, `id: 1 _Change_Type: "MERGE"`, `id: 1 _Change_Type: "upsert"`, `id: 1 _Change_Type: ""`,
			`id: 1 _Change_Type: "UPSERT" _change_SEQUENCE_number: ""`,
			`id: 1 _Change_Type: "UPSERT" _change_SEQUENCE_number: "1/2/3/4/5"`,
			`id: 1 _Change_Type: "UPSERT" _change_SEQUENCE_number: "00000000000000001"`,
			`id: 1 _Change_Type: "UPSERT" _change_SEQUENCE_number: "G"`,
			`id: 1 _Change_Type: "`+huge+`"`, `id: 1 _Change_Type: "\n\000"`,
		), Request{})
		if len(bad) != 10 || bad[0].Index != 1 || bad[9].Index != 10 {
			t.Fatalf("%d bad rows: %v", len(bad), bad)
		}
		for _, b := range bad {
			if len(b.Message) > 500 || !strings.Contains(b.Message, "_CHANGE_") {
				t.Errorf("row %d: %.100q", b.Index, b.Message)
			}
		}
		p.Reset()
		if p.TakeChanges() != nil {
			t.Error("a reset leaves changes")
		}
	})
	t.Run("bytes that are no message, with invalid UTF-8", func(t *testing.T) {
		p := compile(t, d, table)
		if bad := p.Decode([][]byte{{0x12, 0x02, 0xff, 0xfe}, {0x12, 0x7f}, {0x13}}, Request{}); len(bad) != 3 {
			t.Errorf("got %v", bad)
		}
	})
	t.Run("the last value counts, and a default stands for none", func(t *testing.T) {
		d := messageOf("Row", field("id", "int64"), withDefault(field("_change_type", "string"), "DELETE"))
		p := compile(t, d, table)
		if bad := p.Decode([][]byte{{}, []byte("\x12\x06DELETE\x12\x06UPSERT")}, Request{}); len(bad) > 0 {
			t.Fatal(bad)
		}
		if got := p.TakeChanges(); len(got) != 2 || !got[0].Delete || got[1].Delete {
			t.Errorf("got %v", got)
		}
	})
	t.Run("descriptors that make no changes", func(t *testing.T) {
		cases := map[string]*descriptorpb.DescriptorProto{
			"needs _CHANGE_TYPE beside it":         messageOf("Row", field("id", "int64"), field("_change_sequence_number", "string")),
			"proto field mismatched":               messageOf("Row", field("id", "int64"), field("_change_type", "int64")),
			"type repeated string":                 messageOf("Row", field("id", "int64"), repeated(field("_change_type", "string"))),
			"more than one field for _CHANGE_TYPE": messageOf("Row", field("_change_type", "string"), field("_CHANGE_TYPE", "string")),
			"extra fields: 'r._change_type'":       messageOf("Row", of("r", "message", "R"), messageOf("R", field("x", "int64"), field("_change_type", "string"))),
		}
		for want, d := range cases {
			_, err := Compile(d, "t", tableOf(col("id", schema.Int64), structOf("r", col("x", schema.Int64))))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
}
