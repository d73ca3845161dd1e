package job

import (
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/parquetstaging"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
)

func (b *BigQuery) sinkOptions() bigquery.SinkOptions {
	o := bigquery.SinkOptions{
		Location: b.Location,
		Create: bigquery.Create{
			Datasets: b.Create.Datasets,
			Options: table.CreateOptions{
				Partition:   b.Create.Partition.options(),
				Cluster:     b.Create.Cluster,
				Description: b.Create.Description,
				Labels:      b.Create.Labels,
			},
		},
		SchemaUpdate:          bigquery.SchemaUpdate(b.SchemaUpdate),
		PerDestinationMetrics: b.PerDestinationMetrics,
	}
	switch b.Method {
	case "exactly-once":
		o.Method = bigquery.MethodExactlyOnce
		o.BufferedStream = knobs[bigquery.BufferedStreamOptions](b.BufferedStream)
	case "file-loads":
		o.Method = bigquery.MethodFileLoads
		o.FileLoads = b.FileLoads.options()
	default:
		o.DefaultStream = knobs[bigquery.DefaultStreamOptions](b.DefaultStream)
	}
	if b.Create.Disposition == "never" {
		o.Create.Disposition = bigquery.CreateNever
	}
	return o
}

// Commits reports whether rows become visible by commits, and so exactly once.
func (b *BigQuery) Commits() bool { return b.Method == "exactly-once" || b.FilesLoaded() }

// FilesLoaded reports whether rows take the way over Cloud Storage.
func (b *BigQuery) FilesLoaded() bool { return b.Method == "file-loads" }

var (
	dispositions = map[string]bigquery.WriteDisposition{
		"write-append": bigquery.WriteAppend, "write-truncate": bigquery.WriteTruncate,
		"write-truncate-data": bigquery.WriteTruncateData, "write-empty": bigquery.WriteEmpty,
	}
	stagingFormats = map[string]bigquery.StagingFormat{
		"avro": bigquery.FormatAvro, "parquet": bigquery.FormatParquet, "jsonl": bigquery.FormatJSONL, "csv": bigquery.FormatCSV,
	}
	parquetCompressions = map[string]bigquery.ParquetCompression{"zstd": bigquery.ParquetZSTD, "none": bigquery.ParquetUncompressed}
	emptyInputs         = map[string]bigquery.EmptyInput{"leave": bigquery.EmptyInputLeave, "apply": bigquery.EmptyInputApply}
)

// Bucket is where files are staged, "" nowhere.
func (f FileLoads) Bucket() string {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(f.StagingPath, "gs://"), "/")
	return bucket
}

func (f FileLoads) options() bigquery.FileLoadOptions {
	o := knobs[bigquery.FileLoadOptions](f)
	o.WriteDisposition = dispositions[f.WriteDisposition]
	o.StagingFormat = stagingFormats[f.StagingFormat]
	o.EmptyInput = emptyInputs[f.EmptyInput]
	o.ParquetCompression = parquetCompressions[f.ParquetCompression]
	if o.StagingFormat == bigquery.FormatParquet {
		o.Parquet = parquetstaging.Encoder
	}
	return o
}

// Forecast is what a flow of rows comes to with these options.
func (f FileLoads) Forecast(flow bigquery.FileLoadFlow) (bigquery.FileLoadForecast, error) {
	return f.options().Forecast(flow)
}

var partitionTypes = map[string]table.PartitionType{
	"hour": table.PartitionHour, "day": table.PartitionDay, "month": table.PartitionMonth, "year": table.PartitionYear,
}

func (p *Partition) options() table.Partition {
	if p == nil {
		return table.Partition{}
	}
	return table.Partition{
		Type:          partitionTypes[p.Type],
		Field:         p.Field,
		ExpirationMs:  p.Expiration.Milliseconds(),
		RequireFilter: p.RequireFilter,
	}
}

func (c Connection) options() bigquery.Connection {
	return bigquery.Connection{GRPCEndpoint: c.GRPCEndpoint, RESTEndpoint: c.RESTEndpoint, StorageEndpoint: c.StorageEndpoint, KeyFile: c.KeyFile, QuotaProject: c.QuotaProject}
}

var restartPolicies = map[string]engine.RestartPolicy{
	"": engine.Exponential, "exponential": engine.Exponential, "fixed": engine.FixedDelay, "none": engine.NoRestart,
}

func (r Restart) options() engine.Restart {
	return engine.Restart{Policy: restartPolicies[r.Policy], Initial: r.Delay, Max: r.MaxDelay, Attempts: r.Attempts}
}
