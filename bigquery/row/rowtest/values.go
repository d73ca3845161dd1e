package rowtest

import (
	"flag"
	"strconv"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Values is a Serializer of rows that are values already, by Encode.
type Values struct{ schema *table.Schema }

var _ row.Serializer[[]row.Value] = Values{}

// OfValues makes Values of a schema.
func OfValues(s *table.Schema) Values { return Values{s} }

// Schema is the schema.
func (v Values) Schema(table.Destination) (*table.Schema, error) { return v.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (v Values) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return row.Descriptor(v.schema)
}

// Fingerprint is 0: the schema never changes.
func (v Values) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of values.
func (v Values) AppendRow(buf []byte, _ table.Destination, values []row.Value) ([]byte, error) {
	return append(buf, Encode(v.schema.Fields, values)...), nil
}

// Sparingly checks a property that takes long: with a quarter of the draws that -rapid.checks asks for, 25 by default. No other test
// may run beside it.
func Sparingly(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	all := checks.Value.String()
	n, err := strconv.Atoi(all)
	if err == nil {
		err = checks.Value.Set(strconv.Itoa((n + 3) / 4))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = checks.Value.Set(all) }()
	rapid.Check(t, property)
}
