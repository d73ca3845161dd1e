package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// The table that is read: ids from 0 on, and their text.
var (
	bigTable  = table.Destination{Project: "p", Dataset: "d", Table: "big"}
	bigSchema = &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "text", Type: table.String}}}
)

const bigStreams = 8

// fillSource writes the rows of the table.
func fillSource(t testing.TB, bq *localbq.Instance, rows int) {
	t.Helper()
	sink, err := bigquery.NewSink(bigquery.To[int64](bigTable), row.Serializer[int64](numbered{}), bigquery.SinkOptions{
		Connection: bigquery.Connection{RESTEndpoint: bq.REST(), GRPCEndpoint: bq.GRPC()}, DefaultStream: bigquery.DefaultStreamOptions{MaxAppendBytes: 9 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	w, err := sink.NewWriter(ctx, stream.WriterContext{Job: "fill", Lanes: 1, Meter: stream.NoMeter, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(ctx, &stream.Record[int64]{Value: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(ctx, true), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// numbered makes a row of a number.
type numbered struct{}

func (numbered) Schema(table.Destination) (*table.Schema, error) { return bigSchema, nil }
func (numbered) Fingerprint(table.Destination) uint64            { return 0 }
func (numbered) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return row.Descriptor(bigSchema)
}

func (numbered) AppendRow(buf []byte, _ table.Destination, id int64) ([]byte, error) {
	buf = row.AppendInt(append(buf, row.Tag(0, &bigSchema.Fields[0])...), id)
	buf, start := row.BeginLength(append(buf, row.Tag(1, &bigSchema.Fields[1])...))
	return row.EndLength(strconv.AppendInt(buf, id, 10), start), nil
}

// Deserialize makes the number of a row whose text agrees.
func (numbered) Deserialize(r *row.Row, emit func(int64) error) error {
	id := r.Values[0].Int
	if text := string(r.Values[1].Bytes); text != strconv.FormatInt(id, 10) {
		return fmt.Errorf("row %d has the text %q", id, text)
	}
	return emit(id)
}

// runSource reads the table into files that become visible by commits, until it is read or the service does not answer.
func runSource(ctx context.Context) error {
	lanes, err := lanesOfLife()
	if err != nil {
		return err
	}
	source, err := bigquery.NewSource(bigquery.FromTable(bigTable), row.Deserializer[int64](numbered{}), bigquery.SourceOptions{
		MaxStreamCount: bigStreams, MaxRecordsPerFetch: 5000, Connection: bigquery.Connection{RESTEndpoint: os.Getenv(restKey), GRPCEndpoint: os.Getenv(grpcKey)}})
	if err != nil {
		return err
	}
	restart := engine.Restart{Policy: engine.NoRestart}
	if n, _ := strconv.Atoi(os.Getenv(restartKey)); n > 0 {
		restart = engine.Restart{Policy: engine.FixedDelay, Initial: 5 * time.Millisecond, Attempts: n}
	}
	sessions := &sessionCount{}
	result, err := engine.Run(ctx, engine.Job[int64, int64]{Name: "read", Source: source, Sink: toFiles{os.Getenv(dirKey)}}, engine.Options{
		From: engine.Latest, Lanes: lanes, Restart: restart, Meter: sessions,
		Checkpoint: engine.Checkpointing{Every: 20 * time.Millisecond, URL: "file://" + filepath.Join(os.Getenv(dirKey), "checkpoints")},
	})
	fmt.Printf("%+v, %d sessions\n", result, sessions.n)
	if err != nil || restart.Policy != engine.NoRestart || result.Outcome == engine.NothingToDo {
		return err
	}
	// A checkpoint that was taken before there was a plan holds none. Had it held rows, those of another session would join them.
	if fresh := result.ResumedFrom == 0; sessions.n > 1 || fresh && sessions.n != 1 {
		return fmt.Errorf("read_sessions_created is %d after going on from checkpoint %d", sessions.n, result.ResumedFrom)
	}
	return nil
}

// sessionCount is the counter of read sessions.
type sessionCount struct{ n int64 }

func (c *sessionCount) Counter(in stream.Instrument, _ ...stream.Label) stream.Counter {
	if strings.HasSuffix(in.Name, "read_sessions_created") {
		return c
	}
	return stream.NoMeter.Counter(in)
}

func (c *sessionCount) Gauge(in stream.Instrument, l ...stream.Label) stream.Gauge {
	return stream.NoMeter.Gauge(in, l...)
}

func (c *sessionCount) Add(n int64) { c.n += n }

// toFiles is a sink whose rows are in files that a commit gives their names: a session on the first line, and numbers.
type toFiles struct{ dir string }

func (s toFiles) CommitScope() stream.CommitScope { return stream.PerLane }

func (s toFiles) NewCommitter(context.Context, stream.CommitterContext) (stream.Committer, error) {
	return s, nil
}

func (s toFiles) Commit(_ context.Context, cs []stream.Committable) error {
	for _, c := range cs {
		err := os.Rename(filepath.Join(s.dir, c.Key+".part"), filepath.Join(s.dir, c.Key+".rows"))
		if _, there := os.Stat(filepath.Join(s.dir, c.Key+".rows")); err != nil && there != nil {
			return err
		}
	}
	return nil
}

func (s toFiles) Close() error { return nil }

func (s toFiles) NewWriter(_ context.Context, wc stream.WriterContext) (stream.Writer[int64], error) {
	return &fileWriter{dir: s.dir, name: fmt.Sprintf("%s-%d-%d", wc.Run, wc.Attempt, wc.Lane)}, nil
}

type fileWriter struct {
	dir, name string
	n         int
	session   string
	rows      []byte
}

func (w *fileWriter) Write(_ context.Context, r *stream.Record[int64]) error {
	session, _, _ := strings.Cut(r.At.Split, "/streams/")
	if w.session != "" && w.session != session {
		return fmt.Errorf("rows of %s and %s", w.session, session)
	}
	w.session = session
	w.rows = binary.LittleEndian.AppendUint64(w.rows, uint64(r.Value))
	return nil
}

func (w *fileWriter) Flush(context.Context, bool) error { return nil }

func (w *fileWriter) Prepare(context.Context, int64) ([]stream.Committable, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	w.n++
	key := fmt.Sprintf("%s-%d", w.name, w.n)
	data := append([]byte(w.session+"\n"), w.rows...)
	w.rows = w.rows[:0]
	return []stream.Committable{{Key: key}}, os.WriteFile(filepath.Join(w.dir, key+".part"), data, 0o600)
}

func (w *fileWriter) Snapshot(context.Context, int64) ([]stream.State, error) { return nil, nil }
func (w *fileWriter) Close() error                                            { return nil }
