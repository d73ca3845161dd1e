package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// FileLoadOptions are the knobs of MethodFileLoads. Only StagingPath has to be set.
type FileLoadOptions struct {
	// StagingPath is where files are staged, gs://bucket or gs://bucket/prefix. Required. Files are deleted once they are loaded. What
	// a checkpoint names is the only copy of its rows until then: no lifecycle rule may delete it sooner than any outage lasts.
	StagingPath string

	// WriteDisposition is what becomes of rows that are in a table already. A job that checkpoints on an interval can only append.
	// With any other disposition the job commits once, when its input has ended; stopped before, it leaves nothing behind.
	WriteDisposition WriteDisposition

	// TempDataset has the temporary tables of loads that one job is too small for; its location is that of the tables. Default:
	// the dataset of each table. Give it a default expiration of tables.
	TempDataset string
	// TempProject is the project of TempDataset, which it needs. Default: the project of each table.
	TempProject string
	// JobProject is where jobs run and are billed. Default: the project of each table.
	JobProject string
	// AllowProfileChange commits what is pending although JobProject, TempProject, TempDataset, WriteDisposition, MaxLoadFiles,
	// MaxLoadBytes, MaxCopyTables or the sink's Location are others than when it was staged. Jobs of then are not found any more: what
	// they loaded is loaded twice.
	AllowProfileChange bool

	// StagingFormat is what files are written as. Default: FormatAvro.
	StagingFormat StagingFormat
	// Parquet writes files of FormatParquet, and is needed for it: parquetstaging.Encoder. It is handed in so that programs which do
	// not stage Parquet do not link what writes it.
	Parquet ParquetEncoder
	// ParquetCompression is only for FormatParquet. Default: ParquetZSTD.
	ParquetCompression ParquetCompression
	// Custom writes files of FormatCustom, which needs it.
	Custom *CustomFormat

	// MaxStagingFileBytes is from which size on a file is finished and another one begun. Default 16,777,216. It is also the size of
	// a row group of FormatParquet, which is held in memory.
	MaxStagingFileBytes int64
	// MaxOpenDestinations is how many files a lane holds open at once, one for each table. Default 16. Each takes some 5 MB.
	MaxOpenDestinations int
	// MaxPendingFiles is how many files of a lane may wait for the next commit, open ones included. Default 10,000; at least
	// MaxOpenDestinations.
	MaxPendingFiles int
	// MaxSerializedRowBytes bounds a row, as the serializer makes it. Default 15,000,000: BigQuery reads Avro blocks of 16 MB.
	MaxSerializedRowBytes int
	// DestinationIdleTimeout is after how long without a row a file is finished. Default 1 min.
	DestinationIdleTimeout time.Duration
	// MaxConcurrentCheckpointFinalizations is how many files of a lane are finished at once at a checkpoint. Default 1; at most 8.
	MaxConcurrentCheckpointFinalizations int

	// MinCheckpointInterval is the shortest interval that a job may checkpoint on. Default 2 min, which is 720 loads a day and table, of
	// the 1,500 changes that BigQuery lets a table have.
	MinCheckpointInterval time.Duration
	// MaxConcurrentDestinations is how many tables a commit works at at once. Default 8; at most 64.
	MaxConcurrentDestinations int
	// LoadJobPollInitialBackoff is the wait before a job is first asked whether it is done; it doubles from time to time. Default
	// 1 s; at least 1 ms.
	LoadJobPollInitialBackoff time.Duration
	// LoadJobPollMaxBackoff is the longest such wait. Default 30 s. There is no last time.
	LoadJobPollMaxBackoff time.Duration
	// SchemaReconcileInitialBackoff is the wait before a table that others changed or created at the same time is looked at again;
	// it doubles. Default 500 ms; at least 1 ms.
	SchemaReconcileInitialBackoff time.Duration
	// SchemaReconcileMaxBackoff is the longest such wait. Default 10 s.
	SchemaReconcileMaxBackoff time.Duration
	// SchemaReconcileMaxAttempts is how often that is tried. Default 10.
	SchemaReconcileMaxAttempts int
	// RetryIDLimit is how many jobs are submitted anew, by later commits, after one that failed. Default 5; at most 100. Raised, it
	// lets a job go on whose commits all failed.
	RetryIDLimit int
	// InlineJobRetries is how many jobs are submitted anew by the same commit when one failed in passing. Default 0; at most 5.
	InlineJobRetries int
	// CallTimeout bounds each single call. Default 2 min; at least 1 s.
	CallTimeout time.Duration

	// MaxLoadFiles, MaxLoadBytes and MaxCopyTables bound one load job and one copy job; what is more goes through temporary tables.
	// Default, and at most, what BigQuery takes: 10,000 files, 12,094,627,905,536 bytes, 1,200 tables (at least 2).
	MaxLoadFiles  int
	MaxLoadBytes  int64
	MaxCopyTables int

	// EmptyInput is what a job whose input had no row, and whose table is fixed, does about the table. Default: EmptyInputLeave.
	EmptyInput EmptyInput
	// KeepStagedFiles leaves files where they are when they are loaded.
	KeepStagedFiles bool

	JobLabels           map[string]string // of every job
	KMSKeyName          string            // of what every job writes, temporary tables included
	JobTimeout          time.Duration     // of every job; default: what BigQuery does
	Reservation         string            // that every job runs in; default: what the project is assigned to
	DecimalTargetTypes  []string          // of load jobs; not needed, since loads carry the columns' types
	IgnoreUnknownValues bool              // of load jobs
}

// WriteDisposition is what becomes of rows that are in a table already.
type WriteDisposition = loadplan.Disposition

// The dispositions.
const (
	WriteAppend       = loadplan.Append       // rows are added
	WriteTruncate     = loadplan.Truncate     // rows, columns and constraints are replaced
	WriteTruncateData = loadplan.TruncateData // rows are replaced; columns and constraints stay
	WriteEmpty        = loadplan.Empty        // the table must have no rows
)

// StagingFormat is what staged files are written as.
type StagingFormat = loadplan.Format

// The formats of staged files.
const (
	FormatAvro    = loadplan.Avro    // zstandard; for every type but INTERVAL and RANGE
	FormatParquet = loadplan.Parquet // smaller, and slower to load below 256 MB a job; tables with JSON or DATETIME columns are staged as Avro
	FormatJSONL   = loadplan.JSONL   // one JSON object a line, gzip
	FormatCSV     = loadplan.CSV     // gzip; no STRUCTs and lists
	FormatCustom  = loadplan.Custom  // whatever FileLoadOptions.Custom writes
)

// ParquetEncoder writes Parquet files: parquetstaging.Encoder.
type ParquetEncoder = staging.ParquetEncoder

// CustomFormat writes files in any format that load jobs read, and says what they have to be told.
type CustomFormat = staging.CustomFiles

// StagedFile is a file that a CustomFormat writes.
type StagedFile = staging.File

// LoadSource is what a load job is told about the files that it reads.
type LoadSource = staging.Load

// ParquetCompression is how the pages of Parquet files are packed.
type ParquetCompression uint8

// The compressions. The zero value is not set, which is ParquetZSTD.
const (
	ParquetZSTD         ParquetCompression = iota + 1
	ParquetUncompressed                    // some 1.5 times the size of ParquetZSTD
)

// EmptyInput is what a job does about a table that got no row.
type EmptyInput uint8

const (
	EmptyInputLeave EmptyInput = iota // nothing
	// EmptyInputApply creates the table if need be and applies the disposition: WriteTruncate leaves an empty table.
	EmptyInputApply
)

// resolveFiles reports every fault at once.
func (o SinkOptions) resolveFiles() (fileload.Options, error) {
	f := o.FileLoads
	k := knobs{of: "FileLoads"}
	limits := loadplan.ServiceLimits()
	out := fileload.Options{
		StagingPath: k.staging(f.StagingPath),
		Plan: loadplan.Config{
			JobProject: k.project("JobProject", f.JobProject), Location: o.Location, AllowProfileChange: f.AllowProfileChange,
			TempProject: k.project("TempProject", f.TempProject), TempDataset: k.dataset("TempDataset", f.TempDataset), Disposition: f.WriteDisposition,
		},
		Limits:                limits,
		Format:                f.StagingFormat,
		Parquet:               f.Parquet,
		ParquetUncompressed:   f.ParquetCompression == ParquetUncompressed,
		Custom:                f.Custom,
		MaxFileBytes:          k.bytes("MaxStagingFileBytes", f.MaxStagingFileBytes, 16<<20, 0),
		MaxOpenDestinations:   k.count("MaxOpenDestinations", f.MaxOpenDestinations, 16, 0),
		MaxPendingFiles:       k.count("MaxPendingFiles", f.MaxPendingFiles, 10_000, 0),
		MaxRowBytes:           k.count("MaxSerializedRowBytes", f.MaxSerializedRowBytes, 15_000_000, 0),
		IdleTimeout:           k.duration("DestinationIdleTimeout", f.DestinationIdleTimeout, time.Minute, 0, 0),
		Finalizations:         k.count("MaxConcurrentCheckpointFinalizations", f.MaxConcurrentCheckpointFinalizations, 1, 8),
		MinCheckpointInterval: k.duration("MinCheckpointInterval", f.MinCheckpointInterval, 2*time.Minute, 0, 0),
		MaxDestinations:       k.count("MaxConcurrentDestinations", f.MaxConcurrentDestinations, 8, 64),
		Poll: retry.Schedule{
			Initial: k.duration("LoadJobPollInitialBackoff", f.LoadJobPollInitialBackoff, time.Second, 0, 0),
			Max:     k.duration("LoadJobPollMaxBackoff", f.LoadJobPollMaxBackoff, 30*time.Second, 0, 0),
		},
		SchemaRace: retry.Schedule{
			Initial:  k.duration("SchemaReconcileInitialBackoff", f.SchemaReconcileInitialBackoff, 500*time.Millisecond, 0, 0),
			Max:      k.duration("SchemaReconcileMaxBackoff", f.SchemaReconcileMaxBackoff, 10*time.Second, 0, 0),
			Attempts: k.count("SchemaReconcileMaxAttempts", f.SchemaReconcileMaxAttempts, 10, 0),
		},
		RetryIDLimit:  k.count("RetryIDLimit", f.RetryIDLimit, 5, 100),
		InlineRetries: k.count("InlineJobRetries", f.InlineJobRetries, 0, 5),
		CallTimeout:   k.duration("CallTimeout", f.CallTimeout, 2*time.Minute, 0, 0),
		LoadEmpty:     f.EmptyInput == EmptyInputApply,
		KeepFiles:     f.KeepStagedFiles,
		Jobs: fileload.JobOptions{
			Labels: f.JobLabels, KMSKeyName: f.KMSKeyName, Timeout: k.duration("JobTimeout", f.JobTimeout, 0, 0, 0), Reservation: f.Reservation,
			DecimalTargetTypes: f.DecimalTargetTypes, IgnoreUnknownValues: f.IgnoreUnknownValues,
		},
	}
	bounds := &out.Plan.Bounds
	bounds.FilesPerLoad, bounds.BytesPerLoad, bounds.SourcesPerCopy = f.MaxLoadFiles, f.MaxLoadBytes, f.MaxCopyTables
	out.Limits.FilesPerLoad = k.count("MaxLoadFiles", f.MaxLoadFiles, limits.FilesPerLoad, limits.FilesPerLoad)
	out.Limits.BytesPerLoad = k.bytes("MaxLoadBytes", f.MaxLoadBytes, limits.BytesPerLoad, limits.BytesPerLoad)
	out.Limits.SourcesPerCopy = k.count("MaxCopyTables", f.MaxCopyTables, limits.SourcesPerCopy, limits.SourcesPerCopy)
	if f.MaxCopyTables == 1 {
		k.fault("MaxCopyTables", "must be at least 2: 1")
	}
	k.atLeast("LoadJobPollMaxBackoff", out.Poll.Max, "LoadJobPollInitialBackoff", out.Poll.Initial)
	k.atLeast("SchemaReconcileMaxBackoff", out.SchemaRace.Max, "SchemaReconcileInitialBackoff", out.SchemaRace.Initial)
	if out.MaxPendingFiles < out.MaxOpenDestinations {
		k.fault("MaxPendingFiles", "must be >= FileLoads.MaxOpenDestinations: %d < %d", out.MaxPendingFiles, out.MaxOpenDestinations)
	}
	if f.CallTimeout != 0 && f.CallTimeout < time.Second {
		k.fault("CallTimeout", "must be at least 1s: %v", f.CallTimeout)
	}
	if f.TempProject != "" && f.TempDataset == "" {
		k.fault("TempProject", "needs FileLoads.TempDataset: it is the project of that dataset")
	}
	if f.WriteDisposition > WriteEmpty {
		k.fault("WriteDisposition", "is %d: expected WriteAppend, WriteTruncate, WriteTruncateData or WriteEmpty", f.WriteDisposition)
	}
	if f.EmptyInput > EmptyInputApply {
		k.fault("EmptyInput", "is %d: expected EmptyInputLeave or EmptyInputApply", f.EmptyInput)
	}
	k.format(&f)
	k.emulators(o.Connection)
	return out, errors.Join(k.faults...)
}

// format checks what belongs to the format of files.
func (k *knobs) format(f *FileLoadOptions) {
	want := f.StagingFormat
	if want > FormatCustom {
		k.fault("StagingFormat", "is %d: expected FormatAvro, FormatParquet, FormatJSONL, FormatCSV or FormatCustom", want)
	}
	if f.ParquetCompression > ParquetUncompressed {
		k.fault("ParquetCompression", "is %d: expected ParquetZSTD or ParquetUncompressed", f.ParquetCompression)
	}
	switch {
	case want == FormatParquet && f.Parquet == nil:
		k.fault("Parquet", "is nil, and FormatParquet needs it: set it to parquetstaging.Encoder, of package bigquery/parquetstaging")
	case want != FormatParquet && f.ParquetCompression != 0:
		k.fault("ParquetCompression", "is only for FormatParquet, and StagingFormat is %s", want)
	}
	switch {
	case want == FormatCustom && f.Custom == nil:
		k.fault("Custom", "is nil, and FormatCustom needs it")
	case want != FormatCustom && f.Custom != nil:
		k.fault("Custom", "is only for FormatCustom, and StagingFormat is %s", want)
	case f.Custom != nil:
		if err := f.Custom.Validate(); err != nil {
			k.fault("Custom", "cannot be used: %v", err)
		}
	}
}

// emulators have to serve jobs and objects both.
func (k *knobs) emulators(c Connection) {
	for name, endpoint := range map[string]string{"RESTEndpoint": c.RESTEndpoint, "StorageEndpoint": c.StorageEndpoint} {
		if c.Emulated() && endpoint == "" {
			k.faults = append(k.faults, fmt.Errorf("Connection.%s is missing: with an emulator, file loads need one of REST, for jobs, and one of Cloud Storage", name))
		}
	}
}

// staging checks a path. BigQuery takes * for a wildcard, in names of objects too; the others mean something in URLs.
func (k *knobs) staging(path string) string {
	const want = "expected gs://bucket or gs://bucket/prefix"
	rest, ok := strings.CutPrefix(path, "gs://")
	bucket, _, _ := strings.Cut(rest, "/")
	switch {
	case path == "":
		k.fault("StagingPath", "is required, to stage files there: %s", want)
	case !ok:
		k.fault("StagingPath", "is %q: %s", path, want)
	case bucket == "":
		k.fault("StagingPath", "is %q and names no bucket: %s", path, want)
	case strings.ContainsAny(path, "*?#[]") || strings.ContainsFunc(path, unicode.IsControl) || !utf8.ValidString(path):
		k.fault("StagingPath", "is %q: * ? # [ ], control characters and what is not UTF-8 cannot be in it", path)
	}
	return strings.TrimSuffix(path, "/")
}

// project may be one of a domain: example.com:name.
func (k *knobs) project(option, v string) string { return k.name(option, v, "/`") }

func (k *knobs) dataset(option, v string) string { return k.name(option, v, "/`.:") }

func (k *knobs) name(option, v, without string) string {
	if v != strings.TrimSpace(v) || strings.ContainsAny(v, without) || strings.ContainsFunc(v, unicode.IsControl) || !utf8.ValidString(v) {
		k.fault(option, "is %q: expected a name that can be printed, without spaces around it and without %s", v, without)
	}
	return v
}

func (k *knobs) bytes(name string, v, standard, most int64) int64 {
	switch {
	case v < 0:
		k.fault(name, "must be positive: %d", v)
	case most > 0 && v > most:
		k.fault(name, "must be at most %d: %d", most, v)
	}
	return cmp.Or(v, standard)
}

// modificationsPerDay is how often a table may be changed by jobs (BigQuery documentation, "Quotas and limits", standard tables).
const modificationsPerDay = 1_500

// Fits says what of a job MethodFileLoads cannot keep its promises in. The error is ErrUnsupportedPipeline.
func (s *Sink[T]) Fits(shape stream.Shape, log *slog.Logger) error {
	if s.config.method != MethodFileLoads {
		return nil
	}
	if err := fits(s.config.files.Options, shape, log); err != nil {
		return fmt.Errorf("bigquery sink: %w: %w", ErrUnsupportedPipeline, err)
	}
	return nil
}

// Fits is Fits of a sink with these options, whatever its records are. Its error is a line for each fault.
func (o SinkOptions) Fits(shape stream.Shape, log *slog.Logger) error {
	config, err := o.resolve()
	if err != nil || o.Method != MethodFileLoads {
		return err
	}
	return fits(config.files.Options, shape, log)
}

func fits(o fileload.Options, shape stream.Shape, log *slog.Logger) error {
	var faults []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(shape.Undecided, "nobody has decided whether the job runs as a batch or a stream: file loads have to know, so name one")
	refuse(!shape.Bounded && !shape.Streaming, "the job takes no checkpoints and never ends: staged files would never be loaded")
	refuse(shape.AtLeastOnce, "checkpoints are not exactly-once: rows from behind one would be loaded with it and then again")
	refuse(shape.NoCheckpointAtEnd, "no checkpoint follows the last record: the last files would be staged and never loaded")
	if !shape.Streaming {
		return errors.Join(faults...)
	}
	refuse(o.Plan.Disposition != WriteAppend, "FileLoads.WriteDisposition is %s, and a job that checkpoints on an interval can only %s: each checkpoint would replace "+
		"the rows of the one before. Take no checkpoints before the end, or append", o.Plan.Disposition, WriteAppend)
	if shape.Every < o.MinCheckpointInterval {
		refuse(true, "checkpoints come every %v, and FileLoads.MinCheckpointInterval is %v: each is a load of every table that got rows, and a table may be "+
			"changed %d times a day. Every minute is 1440 times, every 2 minutes 720, every 5 minutes 288", shape.Every, o.MinCheckpointInterval, modificationsPerDay)
	} else if shape.Every < 5*time.Minute {
		log.Warn("file loads at a short interval: jobs that fail count too", "every", shape.Every,
			"loads_per_table_and_day", int(24*time.Hour/shape.Every), "of", modificationsPerDay)
	}
	return errors.Join(faults...)
}
