package bigquery

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/storagewrite"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Sink writes records to BigQuery tables. It implements stream.Sink, stream.Encoding, stream.Particular and, with MethodExactlyOnce
// and MethodFileLoads, stream.TwoPhase. It is safe for concurrent use.
type Sink[T any] struct {
	to       Resolver[T]
	rows     row.Serializer[T]
	columns  row.Columnar[T] // rows, where they may go as parts of Arrow batches; else nil
	config   sinkConfig
	original func(*stream.Record[T]) []byte // nil when records cannot say what they were read as
	ledger   outcome.Ledger
}

var (
	_ stream.Sink[int]     = (*Sink[int])(nil)
	_ stream.Encoding[int] = (*Sink[int])(nil)
	_ stream.TwoPhase      = (*Sink[int])(nil)
)

// NewSink makes a sink that writes each record to the table that to names, as the row that rows makes of it. Every fault
// of the options is reported at once. Nothing is opened, no file is read and no call is made before the first record.
func NewSink[T any](to Resolver[T], rows row.Serializer[T], o SinkOptions) (*Sink[T], error) {
	config, err := o.resolve()
	faults := []error{err}
	if missing(to) {
		faults = append(faults, errors.New("a destination is required: bigquery.To, bigquery.Template or a resolver"))
	} else if dst, fixed := destination(to); fixed {
		faults = append(faults, dst.Validate())
	}
	if missing(rows) {
		faults = append(faults, errors.New("a serializer is required"))
	}
	columns, columnar := rows.(row.Columnar[T])
	switch {
	case !o.DefaultStream.ArrowBatches:
		columns = nil
	case !columnar:
		faults = append(faults, errors.New("DefaultStream.ArrowBatches needs a serializer of Arrow batches, which implements row.Columnar"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("bigquery sink: %w", err)
	}
	config.write.Rows, config.write.Columns = rows, columns
	s := &Sink[T]{to: to, rows: rows, columns: columns, config: config, original: originals[T]()}
	s.config.write.Ledger = &s.ledger
	s.config.files.Rows, s.config.files.Ledger = rows, &s.ledger
	s.config.files.Choice = staging.NewChoice(s.config.files.Options.Format)
	s.config.files.Fixed, _ = destination(to)
	s.config.write.KeepOriginals = s.config.write.KeepOriginals && s.original != nil
	return s, nil
}

// missing reports whether an interface holds nothing, or a nil pointer.
func missing(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Pointer || r.Kind() == reflect.Func) && r.IsNil()
}

// originals returns how records of type T say what they were read as, nil when they cannot.
func originals[T any]() func(*stream.Record[T]) []byte {
	if _, ok := any((*T)(nil)).(stream.Original); ok {
		// A pointer is put into an interface without being copied to the heap.
		return func(r *stream.Record[T]) []byte { return any(&r.Value).(stream.Original).OriginalBytes() }
	}
	var zero T
	_, ok := any(zero).(stream.Original)
	if !ok && reflect.TypeFor[T]().Kind() != reflect.Interface {
		return nil
	}
	return func(r *stream.Record[T]) []byte {
		if o, ok := any(r.Value).(stream.Original); ok {
			return o.OriginalBytes()
		}
		return nil
	}
}

// DestinationReport is what a sink has done to one table.
type DestinationReport = outcome.Report

// AppendFailure is a failed append, as a DestinationReport tells the last one of each table.
type AppendFailure = outcome.Failure

// Report says what the sink has done so far, by destination and in the order of their names, over all lanes and attempts
// of this process. It may be called at any time.
func (s *Sink[T]) Report() []DestinationReport { return s.ledger.Reports() }

// Dataset names a table for lineage systems, as OpenLineage does.
type Dataset struct {
	Namespace string // "bigquery"
	Name      string // "project.dataset.table"
	Kind      string // "bigquery-table"
	Table     table.Destination
}

// Lineage is the tables that the sink is configured to write to: one with To, none with any other resolver, whose tables
// only the records tell. It reads nothing but the configuration.
func (s *Sink[T]) Lineage() []Dataset {
	dst, fixed := destination(s.to)
	if !fixed {
		return nil
	}
	return []Dataset{{Namespace: "bigquery", Name: dst.String(), Kind: "bigquery-table", Table: dst}}
}

func destination[T any](r Resolver[T]) (table.Destination, bool) {
	t, fixed := r.(to[T])
	return t.dst, fixed
}

// NewWriter makes the writer of one lane. With MethodDefault and MethodFileLoads it has no state: after a failure the source's
// position says what to write again. With MethodExactlyOnce it goes on from wc.States.
func (s *Sink[T]) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[T], error) {
	if s.config.method == MethodFileLoads {
		return s.newFileWriter(ctx, wc)
	}
	core, err := storagewrite.New(ctx, s.laneConfig(wc))
	if err != nil {
		return nil, fmt.Errorf("bigquery sink: %w", err)
	}
	return &sinkWriter[T]{front: s.front(core.Log()), columns: s.columns, core: core, interval: s.config.flushInterval}, nil
}

// CommitScope is PerLane with MethodExactlyOnce, Global with MethodFileLoads where rows are appended, AtEnd where they replace others
// or want an empty table, and NoCommit with MethodDefault.
func (s *Sink[T]) CommitScope() stream.CommitScope {
	switch {
	case s.config.method == MethodExactlyOnce:
		return stream.PerLane
	case s.config.method == MethodFileLoads && s.config.files.Options.Plan.Disposition != WriteAppend:
		return stream.AtEnd
	case s.config.method == MethodFileLoads:
		return stream.Global
	}
	return stream.NoCommit
}

// NewCommitter makes what turns the rows of checkpoints visible, with MethodExactlyOnce and MethodFileLoads.
func (s *Sink[T]) NewCommitter(_ context.Context, cc stream.CommitterContext) (stream.Committer, error) {
	if s.config.method == MethodFileLoads {
		c := s.config.files
		c.Job, c.Meter, c.Log = cc.Job, cc.Meter, cc.Log
		return fileload.NewCommitter(c), nil
	}
	w := s.config.write
	return storagewrite.NewCommitter(storagewrite.CommitterConfig{Connection: w.Connection, CreateNever: w.Create.Never,
		Recovery: w.Options.Recovery, Pacer: w.Pacer, Log: cc.Log}), nil
}

func (s *Sink[T]) laneConfig(wc stream.WriterContext) storagewrite.Config {
	c := s.config.write
	c.Job, c.Lane, c.Meter, c.Log = wc.Job, wc.Lane, wc.Meter, wc.Log
	if c.Buffered {
		c.States = wc.States
	}
	return c
}
