package fileload

import (
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// Config is what writers and committers need, resolved.
type Config struct {
	Connection gcp.Connection
	Options    Options
	Rows       row.Schemas
	Create     tableadmin.Create
	Update     table.UnionOptions // how far tables that exist may be changed
	Ledger     *outcome.Ledger
	Pacer      retry.Pacer

	// Fixed is the table that all records go to; zero when each says where.
	Fixed table.Destination

	// Failures, PerDestinationMetrics and what follows are for writers.
	Failures              stream.FailurePolicy
	PerDestinationMetrics bool
	Choice                *staging.Choice // of the format of each destination, shared by the writers of a sink
	Lane                  int
	Run                   string // 32 lowercase hexadecimal digits; see stream.WriterContext
	Attempt               int
	Streaming             bool

	Job   string
	Meter stream.Meter
	Log   *slog.Logger
}

// Options are the knobs, all set: the face resolves defaults.
type Options struct {
	StagingPath string // gs://bucket or gs://bucket/prefix, without a slash at the end
	Plan        loadplan.Config
	Limits      loadplan.Limits

	// Of writers.
	Format              loadplan.Format
	Parquet             staging.ParquetEncoder // with format Parquet
	ParquetUncompressed bool
	Custom              *staging.CustomFiles // with format Custom
	MaxFileBytes        int64
	MaxOpenDestinations int
	MaxPendingFiles     int
	MaxRowBytes         int
	IdleTimeout         time.Duration
	Finalizations       int // files that are closed at once at a checkpoint

	// Of committers.
	MinCheckpointInterval time.Duration
	MaxDestinations       int            // that act at once
	Poll                  retry.Schedule // without an end
	SchemaRace            retry.Schedule
	RetryIDLimit          int
	InlineRetries         int
	CallTimeout           time.Duration
	LoadEmpty             bool // a batch without rows for Fixed loads a file without rows
	KeepFiles             bool
	Jobs                  JobOptions
}

// Encoding is what files of a format are made by.
func (o *Options) Encoding(f loadplan.Format) staging.Encoding {
	switch f {
	case loadplan.Parquet:
		return o.Parquet.Files(int(o.MaxFileBytes), o.ParquetUncompressed)
	case loadplan.JSONL:
		return staging.JSONFiles
	case loadplan.CSV:
		return staging.CSVFiles
	case loadplan.Custom:
		return o.Custom
	}
	return staging.AvroFiles
}

// JobOptions is what jobs are told beside what the plan says of them. No id depends on it.
type JobOptions struct {
	Labels              map[string]string
	KMSKeyName          string
	Timeout             time.Duration // 0 leaves it to the service
	Reservation         string
	DecimalTargetTypes  []string // of load jobs
	IgnoreUnknownValues bool     // of load jobs
}
