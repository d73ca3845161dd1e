package row

import "github.com/millrace-dev/millrace/bigquery/table"

// Columnar is implemented by a Serializer whose records are rows of Arrow batches. BigQuery takes such batches as they are, too
// (storage.proto, AppendRowsRequest.arrow_rows), so that a sink need not make a row of each record.
type Columnar[T any] interface {
	Serializer[T]
	Unpacker

	// Columns answers the batch that rec is a row of, and which row of it: the same Columns, compared with ==, for all rows of
	// one batch. It answers nil where rec has to become a row by AppendRow, such as when its batch holds what BigQuery takes
	// in rows only. It is called for every record, from all lanes, and costs next to nothing.
	Columns(dst table.Destination, rec T) (Columns, int)
}

// Columns is a batch in the form that it is sent in. One lane uses it at a time.
type Columns interface {
	// Schema is the ArrowSchema.serialized_schema of the batch. It must not be changed.
	Schema() []byte
	// Append appends the ArrowRecordBatch.serialized_record_batch of the rows from, included, to to, excluded.
	Append(buf []byte, from, to int) ([]byte, error)
	// AppendRow appends row i as AppendRow of the Serializer does.
	AppendRow(buf []byte, i int) ([]byte, error)
	// Retain keeps the batch, whoever else lets go of it, until Release is called as often.
	Retain()
	Release()
}

// Unpacker makes rows of what was sent as it was: what becomes of a batch of which BigQuery refused some rows.
type Unpacker interface {
	// Unpack calls each for every row of a batch that Columns.Append made, in order, with the row or with what AppendRow says
	// is wrong with it. The row is valid during the call. An error of each ends it and is returned.
	Unpack(dst table.Destination, schema, batch []byte, each func(row []byte, err error) error) error
}
