package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// SinkOptions are the options of a sink. The zero value is the default of each.
type SinkOptions struct {
	// Method is how rows get to BigQuery.
	Method Method
	// Create says what to do about tables that do not exist. By default they are created.
	Create Create
	// SchemaUpdate says whether the sink may change tables that exist. By default it does not.
	SchemaUpdate SchemaUpdate
	// Failures decides about records that are wrong by themselves. The default is stream.FailJob().
	Failures stream.FailurePolicy
	// Location is where the datasets are, "EU" or "us-east1", say. By default it is looked up, with one call for each
	// dataset.
	Location string
	// Connection is which service to write to, and as whom. The default is the real one, with application default
	// credentials.
	Connection Connection
	// DefaultStream are the knobs of MethodDefault.
	DefaultStream DefaultStreamOptions
	// BufferedStream are the knobs of MethodExactlyOnce.
	BufferedStream BufferedStreamOptions
	// FileLoads are the knobs of MethodFileLoads.
	FileLoads FileLoadOptions
	// PerDestinationMetrics adds counters for each destination. They stay for the life of the process, so it is off by
	// default.
	PerDestinationMetrics bool
}

// Method is a way to write.
type Method uint8

const (
	// MethodDefault appends to the tables' default streams: rows can be queried once they are acknowledged, and every row
	// arrives at least once.
	MethodDefault Method = iota
	// MethodExactlyOnce appends to streams of the lanes' own: rows can be queried once the checkpoint that covers them is
	// committed, and every row arrives exactly once for as long as checkpoints and streams are kept.
	MethodExactlyOnce
	// MethodFileLoads writes files to Cloud Storage, which load jobs bring into the tables: rows can be queried minutes later, once
	// the checkpoint that covers them is committed, or at the end of the input. Every row arrives exactly once for as long as
	// checkpoints and files are kept, and loading costs nothing.
	MethodFileLoads
)

// Disposition says whether tables may be created.
type Disposition uint8

const (
	CreateIfNeeded Disposition = iota // create tables that do not exist
	CreateNever                       // a table that does not exist ends the job
)

// Create says what to do about tables that do not exist, and how to create them. What is set here never touches a table
// that exists.
type Create struct {
	Disposition Disposition
	// Options are what tables are created with beside their schema.
	Options table.CreateOptions
	// PerDestination answers for each table instead of Options. It is called from all lanes, before a table is created.
	PerDestination func(table.Destination) table.CreateOptions
	// Datasets creates missing datasets too, in Location. It is meant for a local service.
	Datasets bool
}

// SchemaUpdate says which changes a sink may make to tables that exist. The zero value makes none.
//
// A table is changed when its serializer's schema has changed, before the first row under it is sent, and when BigQuery
// refuses rows because they have more columns. It gets the columns that it lacks at the end, NULLABLE even where the schema
// says REQUIRED; nothing is ever taken from it. New columns take BigQuery about half a minute to know everywhere, now and
// then much longer: rows are appended again for about a quarter of an hour, during which a checkpoint waits. It needs the
// permissions bigquery.tables.get and bigquery.tables.update.
type SchemaUpdate struct {
	AllowNewFields       bool // add columns, and members of STRUCTs, that rows have and the table lacks
	AllowFieldRelaxation bool // make REQUIRED columns NULLABLE that the serializer's schema does not have as REQUIRED
}

// DefaultStreamOptions are the knobs of the default-stream writer. The defaults are meant to be left alone.
type DefaultStreamOptions struct {
	// MaxAppendBytes is how many bytes of rows one request holds; a longer row travels alone. Default 524,288; at most
	// 9,437,184.
	MaxAppendBytes int
	// MaxBufferedBytes bounds what one lane holds in rows that are not acknowledged. Default 67,108,864, enough to keep
	// 100 MB/s going over half a second of latency.
	MaxBufferedBytes int

	// RecoveryInitialBackoff is the wait after the first failed repair of an append. It doubles from repair to repair.
	// Default 500 ms; at least 1 ms.
	RecoveryInitialBackoff time.Duration
	// RecoveryMaxBackoff is the longest such wait. Default 10 s; at least RecoveryInitialBackoff.
	RecoveryMaxBackoff time.Duration
	// RecoveryMaxAttempts is how many repairs are tried. Default 10, about a minute in all.
	RecoveryMaxAttempts int

	// RetryInitialDelay is the longest wait before an append that the service was too busy for is sent again on the same
	// connection. Default 500 ms; NoDelay sends at once.
	RetryInitialDelay time.Duration
	// RetryDelayMultiplier is how that wait grows. Default 2; at least 1.
	RetryDelayMultiplier float64
	// RetryMaxDelay is the longest it grows to. Default 30 s; at least RetryInitialDelay; NoDelay together with it.
	RetryMaxDelay time.Duration
	// RetryMaxAttempts is how often an append is sent again on its connection. Default 5.
	RetryMaxAttempts int
	// MaxRetryDuration is how long a lost connection is opened again without an answer in between. Default 5 min; NoLimit
	// goes on for ever.
	MaxRetryDuration time.Duration

	// MaxInflightRequests bounds the unanswered appends of one connection. Default 100; more than a fifth of it makes a
	// connection busy, and another one open.
	MaxInflightRequests int
	// MaxInflightBytes bounds their bytes. Default 104,857,600.
	MaxInflightBytes int
	// MinConnectionsPerRegion is how many connections are opened before any is shared. Default 2.
	MinConnectionsPerRegion int
	// MaxConnectionsPerRegion is the most that are opened. Default 20; at least MinConnectionsPerRegion.
	MaxConnectionsPerRegion int

	// DestinationIdleTimeout is after how long without a record a destination is closed. Default 1 h; NoLimit never
	// does.
	DestinationIdleTimeout time.Duration
	// ArrowBatches sends rows of Arrow batches as parts of their batch, without making a row message of each, wherever
	// BigQuery takes the batch as it is. It needs a serializer that is a row.Columnar, such as that of package arrowrow.
	// A batch stays in use until all its rows are sent, behind the call that handed it over: it must not be written to.
	// Off by default.
	ArrowBatches bool
	// FlushInterval bounds how long a row waits in a batch that does not fill. Off by default: rows then wait for the
	// next checkpoint. At least 1 ms. It needs an engine with timers.
	FlushInterval time.Duration
}

// BufferedStreamOptions are the knobs of the exactly-once writer. The defaults are meant to be left alone. Each is the option of
// DefaultStreamOptions of the same name.
type BufferedStreamOptions struct {
	MaxAppendBytes   int // default 524,288; at most 9,437,184
	MaxBufferedBytes int // of one lane; default 67,108,864

	RecoveryInitialBackoff time.Duration // default 500 ms
	RecoveryMaxBackoff     time.Duration // default 10 s
	// RecoveryMaxAttempts counts repairs of an append, creations of a stream, and flushes of one when it is committed.
	// Default 10.
	RecoveryMaxAttempts int

	RetryInitialDelay    time.Duration // default 500 ms; NoDelay sends at once
	RetryDelayMultiplier float64       // default 2
	RetryMaxDelay        time.Duration // default 30 s; NoDelay together with RetryInitialDelay
	RetryMaxAttempts     int           // default 5
	MaxRetryDuration     time.Duration // default 5 min; NoLimit goes on for ever

	// DestinationIdleTimeout is after how long without a record a destination is closed, once its rows are promised. A later
	// record gets a new stream, of which a project may create 10,000 an hour in a region. Default 1 h; NoLimit never does.
	DestinationIdleTimeout time.Duration
}

func (o BufferedStreamOptions) resolve() (storagewrite.Options, error) {
	return DefaultStreamOptions{
		MaxAppendBytes: o.MaxAppendBytes, MaxBufferedBytes: o.MaxBufferedBytes,
		RecoveryInitialBackoff: o.RecoveryInitialBackoff, RecoveryMaxBackoff: o.RecoveryMaxBackoff, RecoveryMaxAttempts: o.RecoveryMaxAttempts,
		RetryInitialDelay: o.RetryInitialDelay, RetryDelayMultiplier: o.RetryDelayMultiplier, RetryMaxDelay: o.RetryMaxDelay,
		RetryMaxAttempts: o.RetryMaxAttempts, MaxRetryDuration: o.MaxRetryDuration,
		DestinationIdleTimeout: o.DestinationIdleTimeout,
	}.resolve("BufferedStream")
}

const never = time.Duration(1<<63 - 1)

// sinkConfig is SinkOptions with everything set and checked.
type sinkConfig struct {
	method        Method
	write         storagewrite.Config // for streams
	files         fileload.Config     // for MethodFileLoads
	flushInterval time.Duration
}

// resolve reports every fault at once.
func (o SinkOptions) resolve() (sinkConfig, error) {
	streams, files, err := o.knobs()
	faults := []error{err, o.Connection.Validate(), o.Create.check()}
	if o.Location != strings.TrimSpace(o.Location) {
		faults = append(faults, fmt.Errorf("Location must be a place such as EU: %q", o.Location))
	}
	if o.Failures == nil {
		o.Failures = stream.FailJob()
	}
	create := o.Create.resolve()
	return sinkConfig{
		method: o.Method,
		write: storagewrite.Config{
			Connection:            o.Connection,
			Location:              o.Location,
			Options:               streams,
			Create:                create,
			Buffered:              o.Method == MethodExactlyOnce,
			Update:                table.UnionOptions(o.SchemaUpdate),
			SchemaWait:            retry.SchemaWait,
			Failures:              o.Failures,
			PerDestinationMetrics: o.PerDestinationMetrics,
			KeepOriginals:         o.Failures != stream.FailJob() && o.Failures != stream.LogAndDrop(),
		},
		files: fileload.Config{
			Connection: o.Connection, Options: files, Create: create, Update: table.UnionOptions(o.SchemaUpdate),
			Failures: o.Failures, PerDestinationMetrics: o.PerDestinationMetrics,
		},
		flushInterval: o.DefaultStream.FlushInterval,
	}, errors.Join(faults...)
}

// knobs are those of the method. Those of another one mean that something was mistaken.
func (o SinkOptions) knobs() (streams storagewrite.Options, files fileload.Options, err error) {
	var faults []error
	only := func(m Method, name string, knobs any, of string) {
		if o.Method != m && !reflect.ValueOf(knobs).IsZero() {
			faults = append(faults, fmt.Errorf("%s is only valid for %s", name, of))
		}
	}
	only(MethodDefault, "DefaultStream", o.DefaultStream, "MethodDefault")
	only(MethodExactlyOnce, "BufferedStream", o.BufferedStream, "MethodExactlyOnce")
	only(MethodFileLoads, "FileLoads", o.FileLoads, "MethodFileLoads")
	switch o.Method {
	case MethodDefault:
		streams, err = o.DefaultStream.resolve("DefaultStream")
	case MethodExactlyOnce:
		streams, err = o.BufferedStream.resolve()
	case MethodFileLoads:
		files, err = o.resolveFiles()
	default:
		err = fmt.Errorf("Method is %d: expected MethodDefault, MethodExactlyOnce or MethodFileLoads", o.Method)
	}
	return streams, files, errors.Join(append(faults, err)...)
}

func (c Create) check() error {
	var faults []error
	if c.Disposition > CreateNever {
		faults = append(faults, fmt.Errorf("Create.Disposition is %d: expected CreateIfNeeded or CreateNever", c.Disposition))
	}
	if c.PerDestination != nil && !reflect.ValueOf(c.Options).IsZero() {
		faults = append(faults, errors.New("set Create.Options or Create.PerDestination, not both"))
	}
	return errors.Join(append(faults, checkCreateOptions("Create.Options.", c.Options))...)
}

func (c Create) resolve() tableadmin.Create {
	options := func(table.Destination) (table.CreateOptions, error) { return c.Options, nil }
	if c.PerDestination != nil {
		options = func(dst table.Destination) (table.CreateOptions, error) {
			o := c.PerDestination(dst)
			return o, checkCreateOptions("", o)
		}
	}
	return tableadmin.Create{Never: c.Disposition == CreateNever, Options: options, Datasets: c.Datasets}
}

// checkCreateOptions reports what cannot be right for any table. prefix leads to the field at fault.
func checkCreateOptions(prefix string, o table.CreateOptions) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(prefix+format, args...))
	}
	if len(o.Cluster) > 4 {
		fault("Cluster has %d columns: expected 1 to 4", len(o.Cluster))
	}
	for i, c := range o.Cluster {
		if strings.TrimSpace(c) == "" {
			fault("Cluster[%d] must not be blank", i)
		}
	}
	p := o.Partition
	switch p.Type {
	case table.PartitionNone:
		if !reflect.ValueOf(p).IsZero() {
			fault("Partition needs a Type: Field, ExpirationMs and the others mean nothing without one")
		}
	case table.PartitionRange:
		if p.Field == "" {
			fault("Partition.Field must name the INT64 column of a range partition")
		}
		if p.Interval <= 0 || p.Start >= p.End {
			fault("Partition must have Start < End and Interval > 0: [%d, %d) by %d", p.Start, p.End, p.Interval)
		}
		if p.ExpirationMs != 0 {
			fault("Partition.ExpirationMs needs partitions by time")
		}
	case table.PartitionHour, table.PartitionDay, table.PartitionMonth, table.PartitionYear:
		if p.ExpirationMs < 0 {
			fault("Partition.ExpirationMs must be positive: %d", p.ExpirationMs)
		}
	default:
		fault("Partition.Type is unknown: %d", p.Type)
	}
	return errors.Join(faults...)
}

// knobs collects the faults of options and fills defaults in.
type knobs struct {
	of     string // the option that they are fields of
	faults []error
}

func (k *knobs) fault(name, format string, args ...any) {
	k.faults = append(k.faults, fmt.Errorf(k.of+"."+name+" "+format, args...))
}

func (k *knobs) count(name string, v, standard, most int) int {
	switch {
	case v < 0:
		k.fault(name, "must be positive: %d", v)
	case most > 0 && v > most:
		k.fault(name, "must be at most %d: %d", most, v)
	}
	return cmp.Or(v, standard)
}

// duration is at least 1 ms, or zero where zero is given its name: as is a Duration of -1.
func (k *knobs) duration(name string, v, standard, zero, named time.Duration) time.Duration {
	switch {
	case v == 0:
		return standard
	case v == named && named != 0:
		return zero
	case v < time.Millisecond:
		k.fault(name, "must be at least 1ms: %v", v)
	}
	return v
}

func (k *knobs) atLeast(name string, v time.Duration, than string, least time.Duration) {
	if v < least {
		k.fault(name, "must be >= %s.%s: %v < %v", k.of, than, v, least)
	}
}

func (o DefaultStreamOptions) resolve(name string) (storagewrite.Options, error) {
	k := knobs{of: name}
	out := storagewrite.Options{
		MaxAppendBytes:      k.count("MaxAppendBytes", o.MaxAppendBytes, 512<<10, storagewrite.MaxRowBytes),
		MaxBufferedBytes:    k.count("MaxBufferedBytes", o.MaxBufferedBytes, 64<<20, 0),
		MaxInflightRequests: k.count("MaxInflightRequests", o.MaxInflightRequests, 100, 0),
		MaxInflightBytes:    k.count("MaxInflightBytes", o.MaxInflightBytes, 100<<20, 0),
		MinConnections:      k.count("MinConnectionsPerRegion", o.MinConnectionsPerRegion, 2, 0),
		MaxConnections:      k.count("MaxConnectionsPerRegion", o.MaxConnectionsPerRegion, 20, 0),
		MaxRetryDuration:    k.duration("MaxRetryDuration", o.MaxRetryDuration, 5*time.Minute, retry.NoLimit, NoLimit),
		IdleTimeout:         k.duration("DestinationIdleTimeout", o.DestinationIdleTimeout, time.Hour, never, NoLimit),
		Recovery: retry.Schedule{
			Initial:  k.duration("RecoveryInitialBackoff", o.RecoveryInitialBackoff, 500*time.Millisecond, 0, 0),
			Max:      k.duration("RecoveryMaxBackoff", o.RecoveryMaxBackoff, 10*time.Second, 0, 0),
			Attempts: k.count("RecoveryMaxAttempts", o.RecoveryMaxAttempts, 10, 0),
		},
		Resend: retry.Schedule{
			Initial:    k.duration("RetryInitialDelay", o.RetryInitialDelay, 500*time.Millisecond, 0, NoDelay),
			Max:        k.duration("RetryMaxDelay", o.RetryMaxDelay, 30*time.Second, 0, NoDelay),
			Multiplier: cmp.Or(o.RetryDelayMultiplier, 2),
			Attempts:   k.count("RetryMaxAttempts", o.RetryMaxAttempts, 5, 0) + 1, // the first send is one of them
			Spread:     retry.Below,
		},
	}
	if m := out.Resend.Multiplier; !(m >= 1 && m < 1e300) {
		k.fault("RetryDelayMultiplier", "must be a number of at least 1: %v", m)
	}
	k.duration("FlushInterval", o.FlushInterval, 0, 0, 0)
	k.atLeast("RecoveryMaxBackoff", out.Recovery.Max, "RecoveryInitialBackoff", out.Recovery.Initial)
	k.atLeast("RetryMaxDelay", out.Resend.Max, "RetryInitialDelay", out.Resend.Initial)
	if out.MaxConnections < out.MinConnections {
		k.fault("MaxConnectionsPerRegion", "must be >= %s.MinConnectionsPerRegion: %d < %d", name, out.MaxConnections, out.MinConnections)
	}
	return out, errors.Join(k.faults...)
}
