package row

import (
	"errors"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer turns records into rows. One Serializer serves many writer goroutines: it is immutable after construction,
// and what it caches per destination is synchronised.
type Serializer[T any] interface {
	Schemas

	// AppendRow appends the row of rec to buf and returns the longer slice, as append does. The row holds none of
	// rec's memory. A row whose columns are all NULL is zero bytes long and is a row.
	//
	// ErrSkip says that rec is to be written nowhere. Any other error is the record's own fault, best an *Error that
	// names the field. With an error, what was appended to buf is ignored.
	AppendRow(buf []byte, dst table.Destination, rec T) ([]byte, error)
}

// Schemas says what the rows of each destination are.
type Schemas interface {
	// Schema is the schema of that destination's table, known before any record: what a table is created with, and
	// what rows are checked against. An error is a mistake of configuration and ends the job.
	Schema(dst table.Destination) (*table.Schema, error)

	// Descriptor is the self-contained proto2 message the rows are of. Most serializers return Descriptor(schema).
	Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error)

	// Fingerprint changes whenever Schema would answer something else; 0 says it never does. It is compared for every
	// record, after AppendRow, and costs next to nothing.
	Fingerprint(dst table.Destination) uint64
}

// ErrSkip is returned by AppendRow for a record that is to be written nowhere. It is counted, and no failure.
var ErrSkip = errors.New("skip this record")

// ErrUnavailable is found in an error of AppendRow when something that the serializer needs beside the record could not be had,
// such as a schema of a registry. It is no fault of the record: the job's attempt ends, and its restart policy says what follows.
var ErrUnavailable = errors.New("what the serializer needs is not available")

// Deserializer turns a row read from BigQuery into records.
type Deserializer[T any] interface {
	// Deserialize calls emit for each record the row gives: none (a skip, counted), one or many. emit copies nothing;
	// it is valid during the call only and answers ErrEmitterClosed later, and ErrNilRecord for a nil pointer, map,
	// slice or interface. An error from emit is remembered: the row fails even when Deserialize returns nil.
	//
	// r is valid during the call only. An error fails the read at this row, which is read again after a restart.
	Deserialize(r *Row, emit func(T) error) error
}

var (
	ErrEmitterClosed = errors.New("emit called after Deserialize returned")
	ErrNilRecord     = errors.New("deserializer emitted nil")
)
