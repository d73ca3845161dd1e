// Package staging turns rows into the files that load jobs read: Avro object container files, lines of JSON and CSV here, Parquet
// files in the package parquetfile.
//
// A [Plan] is compiled once for each destination, from the table's schema and the descriptor of its rows; it says what is
// wrong with either before there is a row. From then on the bytes of a row are read in place and written out as the file
// has them, without values in between. Because a load job takes all of a file or nothing, every value is checked on the
// way: what the service would refuse is the error of its row.
//
//	plan, err := staging.Compile(schema, descriptor)
//	w, err := staging.NewAvroFile(object, plan)
//	err = w.Write(row) // a *row.Error: the row is not in the file, which goes on
//	err = w.Close()
package staging
