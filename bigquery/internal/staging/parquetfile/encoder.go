package parquetfile

import (
	"io"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
)

// Encoder is the staging.ParquetEncoder.
type Encoder struct{}

// Files make files with these options.
func (Encoder) Files(rowGroupBytes int, uncompressed bool) staging.Encoding {
	return files{Options{RowGroupBytes: rowGroupBytes, Uncompressed: uncompressed}}
}

type files struct{ options Options }

func (files) Format() staging.Format    { return staging.Parquet }
func (files) Extension() string         { return ".parquet" }
func (files) Check(*staging.Plan) error { return nil }

func (f files) NewFile(w io.Writer, p *staging.Plan) (staging.File, error) {
	return New(w, p, f.options)
}
