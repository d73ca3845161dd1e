package fileload

import (
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
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

	// Failures and PerDestinationMetrics are for writers.
	Failures              stream.FailurePolicy
	PerDestinationMetrics bool

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

// JobOptions is what jobs are told beside what the plan says of them. No id depends on it.
type JobOptions struct {
	Labels              map[string]string
	KMSKeyName          string
	Timeout             time.Duration // 0 leaves it to the service
	Reservation         string
	DecimalTargetTypes  []string // of load jobs
	IgnoreUnknownValues bool     // of load jobs
}
