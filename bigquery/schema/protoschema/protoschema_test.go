package protoschema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func bytesOf(t rapid.TB, set *descriptorpb.FileDescriptorSet) []byte {
	t.Helper()
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNothingIsLost: schemas with every attribute come back the same, by way of a file that protobuf's own library takes.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := rowtest.Attributed(rowtest.Types(), 3).Draw(r, "schema")
		set, err := Write(want)
		if err != nil {
			r.Fatal(err)
		}
		if _, err := protodesc.NewFiles(set); err != nil {
			r.Fatal(err)
		}
		got, err := Read(bytesOf(r, set), "Row")
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("came back otherwise (-want +got):\n%s", diff)
		}
	})
}

// TestChangedSinceThen: the message counts, not what it was made of.
func TestChangedSinceThen(t *testing.T) {
	set, err := Write(&table.Schema{Fields: []table.Field{{Name: "day", Type: table.Date}, {Name: "id", Type: table.Int64, Mode: table.Required}}})
	if err != nil {
		t.Fatal(err)
	}
	set.File[0].Package = proto.String("shop")
	if s, err := Read(bytesOf(t, set), "shop.Row"); err != nil || s.Fields[0].Type != table.Date {
		t.Errorf("in a package: %v, %v", s, err)
	}
	set.File[0].MessageType[0].Field[0].Name = proto.String("changed")
	got, err := Read(bytesOf(t, set), "shop.Row")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&table.Schema{Fields: []table.Field{{Name: "changed", Type: table.Int64}, {Name: "id", Type: table.Int64, Mode: table.Required}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"", "\xff", "no set"} {
		if _, err := Read([]byte(broken), "Row"); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}
