// Package parquetstaging stages rows as Parquet files for bigquery.MethodFileLoads. It is a package of its own because of what it links.
//
//	bigquery.FileLoadOptions{StagingFormat: bigquery.FormatParquet, Parquet: parquetstaging.Encoder, …}
package parquetstaging

import (
	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
)

// Encoder writes Parquet files. It may be used by any number of sinks.
var Encoder bigquery.ParquetEncoder = parquetfile.Encoder{}
