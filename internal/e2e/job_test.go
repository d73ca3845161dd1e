package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// The job's input: splits that three lanes read in two rounds, a batch of each between two checkpoints. The rows of the second
// round have a column more.
var input = streamtest.Ranges{Splits: 6, Rows: batchRows * checkpoints / rounds, Batch: batchRows}

const (
	tables      = 5
	lanes       = 3
	checkpoints = 20
	rounds      = 2
	batchRows   = 3
)

// tableOf is where a row belongs: a batch holds two rows for one table and one for another.
func tableOf(row int64) string { return fmt.Sprint("t", row/2%tables) }

// noteOf is the value of the column that only rows of the second round have.
func noteOf(row int64) (note string, ok bool) {
	if row < int64(input.Splits*input.Rows/rounds) {
		return "", false
	}
	return fmt.Sprint("row ", row), true
}

// runJob runs the job until it is done, or fails for want of a service that answers.
func runJob(ctx context.Context) error {
	lanes, err := lanesOfLife()
	if err != nil {
		return err
	}
	resolver := bigquery.ResolverFunc[streamtest.Item](func(_ context.Context, r *stream.Record[streamtest.Item]) (table.Destination, error) {
		return table.Destination{Project: "p", Dataset: "d", Table: tableOf(r.Value.Row)}, nil
	})
	sink, err := bigquery.NewSink(resolver, row.Serializer[streamtest.Item](&widening{}), options())
	if err != nil {
		return err
	}
	restart := engine.Restart{Policy: engine.NoRestart}
	if n, _ := strconv.Atoi(os.Getenv(restartKey)); n > 0 {
		restart = engine.Restart{Policy: engine.FixedDelay, Initial: 10 * time.Millisecond, Attempts: n}
	}
	job := engine.Job[streamtest.Item, streamtest.Item]{Name: "killed", Source: paced{input}, Sink: sink}
	every := 2 * time.Millisecond
	if sink.CommitScope() == stream.AtEnd {
		job.Source, every = input, 0
	}
	result, err := engine.Run(ctx, job, engine.Options{
		// A process that is killed once everything is committed, and before it has said so, has nothing left to do.
		From: engine.Latest, Lanes: lanes, Restart: restart,
		Checkpoint: engine.Checkpointing{Every: every, URL: "file://" + filepath.Join(os.Getenv(dirKey), "checkpoints")},
	})
	fmt.Printf("%+v\n", result)
	if err == nil && every > 0 && result.ResumedFrom == 0 && result.Checkpoints < checkpoints {
		return fmt.Errorf("the job took %d checkpoints, want %d", result.Checkpoints, checkpoints)
	}
	return err
}

// lanesOfLife is the number of lanes of this process: the first of a list for the first process on the folder, and so on; the
// last one stays.
func lanesOfLife() (int, error) {
	notes, err := os.OpenFile(filepath.Join(os.Getenv(dirKey), "lives"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer notes.Close()
	info, err := notes.Stat()
	if err != nil {
		return 0, err
	}
	if _, err := notes.WriteString("."); err != nil {
		return 0, err
	}
	list := strings.Split(os.Getenv(lanesKey), ",")
	return strconv.Atoi(list[min(int(info.Size()), len(list)-1)])
}

// options have every row travel alone, and waits that a kill of the service does not outlast by much.
func options() bigquery.SinkOptions {
	o := bigquery.SinkOptions{
		SchemaUpdate: bigquery.SchemaUpdate{AllowNewFields: true},
		Connection:   bigquery.Connection{RESTEndpoint: os.Getenv(restKey), GRPCEndpoint: os.Getenv(grpcKey)},
	}
	const first, longest, attempts = 5 * time.Millisecond, 200 * time.Millisecond, 50
	switch method := os.Getenv(methodKey); method {
	case exactlyOnce:
		o.Method = bigquery.MethodExactlyOnce
		o.BufferedStream = bigquery.BufferedStreamOptions{MaxAppendBytes: 1,
			RecoveryInitialBackoff: first, RecoveryMaxBackoff: longest, RecoveryMaxAttempts: attempts}
	case fileLoads, fileLoadsAtEnd:
		o.Method = bigquery.MethodFileLoads
		o.Connection.StorageEndpoint = os.Getenv(storageKey)
		o.FileLoads = bigquery.FileLoadOptions{StagingPath: "gs://" + stagingBucket + "/jobs", MinCheckpointInterval: time.Millisecond,
			// A file for each row: a table that gets one at a checkpoint has one load job, one that gets more has one for each, and a copy.
			MaxStagingFileBytes: 1, MaxLoadFiles: 1, CallTimeout: 5 * time.Second,
			LoadJobPollInitialBackoff: time.Millisecond, LoadJobPollMaxBackoff: 20 * time.Millisecond,
			SchemaReconcileInitialBackoff: first, SchemaReconcileMaxBackoff: longest, SchemaReconcileMaxAttempts: attempts}
		if method == fileLoadsAtEnd {
			// Three loads for each table, and two copies.
			o.FileLoads.WriteDisposition, o.FileLoads.MaxLoadFiles, o.FileLoads.MaxCopyTables = bigquery.WriteTruncate, 15, 2
		}
	default:
		o.DefaultStream = bigquery.DefaultStreamOptions{MaxAppendBytes: 1,
			RecoveryInitialBackoff: first, RecoveryMaxBackoff: longest, RecoveryMaxAttempts: attempts}
	}
	return o
}

// stagingBucket is where files are staged.
const stagingBucket = "staging"

// paced is the input with readers that give one batch between two checkpoints, so that no machine is too quick for them.
type paced struct{ streamtest.Ranges }

func (p paced) NewReader(ctx context.Context, rc stream.ReaderContext) (stream.Reader[streamtest.Item], error) {
	r, err := p.Ranges.NewReader(ctx, rc)
	return &pacedReader{Reader: r}, err
}

type pacedReader struct {
	stream.Reader[streamtest.Item]
	enough bool
}

func (p *pacedReader) Fetch(ctx context.Context, b *stream.Batch[streamtest.Item]) error {
	if p.enough {
		b.Reset()
		<-ctx.Done()
		return ctx.Err()
	}
	err := p.Reader.Fetch(ctx, b)
	p.enough = err == nil
	return err
}

func (p *pacedReader) Barrier(int64, int64) { p.enough = false }

func (p *pacedReader) Acknowledge(context.Context, int64) error { return nil }

// widening is a serializer that learns of a column when it meets the first row that has it.
type widening struct{ wide atomic.Bool }

var wideSchema = table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "note", Type: table.String},
}}

func (w *widening) Schema(table.Destination) (*table.Schema, error) {
	if w.wide.Load() {
		return &wideSchema, nil
	}
	return &table.Schema{Fields: wideSchema.Fields[:1]}, nil
}

func (w *widening) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	s, err := w.Schema(dst)
	if err != nil {
		return nil, err
	}
	return row.Descriptor(s)
}

func (w *widening) Fingerprint(table.Destination) uint64 {
	if w.wide.Load() {
		return 2
	}
	return 1
}

func (w *widening) AppendRow(buf []byte, _ table.Destination, rec streamtest.Item) ([]byte, error) {
	buf = append(buf, row.Tag(0, &wideSchema.Fields[0])...)
	buf = row.AppendInt(buf, rec.Row)
	if note, ok := noteOf(rec.Row); ok {
		w.wide.Store(true)
		buf = append(buf, row.Tag(1, &wideSchema.Fields[1])...)
		buf = row.AppendText(buf, note)
	}
	return buf, nil
}
