package localbq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
)

// TestStreamsRestart shows that streams go on where they were, whether the log was replayed or a checkpoint read.
func TestStreamsRestart(t *testing.T) {
	dir := t.TempDir()
	var buffered, pending, committed string
	ids := describe(t, "id int64")
	run := func(f func(w *writer)) {
		t.Helper()
		bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir, AutoCreateDataset: true})
		if err != nil {
			t.Fatal(err)
		}
		f(&writer{t, bq, writeClient(t, bq), ids})
		if err := bq.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run(func(w *writer) {
		makeTable(t, w.bq, "d.t", column("id", "INTEGER"))
		buffered, pending, committed = w.buffered(), w.pending(), w.committed()
		w.write(buffered, 0, 5)
		w.mustFlush(buffered, 1)
		w.write(pending, 0, 2)
		w.write(committed, 0, 1)
		w.holds(0, 1, 0)
	})
	run(func(w *writer) {
		w.holds(0, 1, 0)
		w.write(buffered, 5, 1)
		w.mustFlush(buffered, 3)
		w.flushRefused(buffered, 1, codes.AlreadyExists, "already been flushed")
		w.write(committed, 1, 1)
		w.write(pending, 2, 1)
		w.mustFinalize(pending, 3)
		w.holds(0, 1, 0, 2, 3, 1)
	})
	run(func(w *writer) {
		w.mustCommit(pending)
		w.commitRefused(storagepb.StorageError_STREAM_ALREADY_COMMITTED, pending)
		w.mustFlush(buffered, 5)
		w.mustFinalize(buffered, 6)
	})
	run(func(w *writer) {
		w.holds(0, 1, 0, 2, 3, 1, 0, 1, 2, 4, 5)
		w.commitRefused(storagepb.StorageError_STREAM_ALREADY_COMMITTED, pending)
		w.flushRefused(buffered, 5, codes.InvalidArgument, "finalized")
		w.accounted()
		if gaps, err := w.bq.Audit().Gaps(buffered); err != nil || len(gaps) != 0 {
			t.Errorf("gaps %v, %v", gaps, err)
		}
	})
}

// TestKillBuffered kills a serving process at random points of a client that appends to a buffered stream and flushes it. The
// client goes on by offsets alone: whatever was acknowledged is there, and in the end every row is visible once.
func TestKillBuffered(t *testing.T) {
	dir := t.TempDir()
	client := bufferedClient{t: t, ids: describe(t, "id int64"), flushed: -1}
	rounds := 6
	for range rounds {
		child, connection := serveChild(t, dir)
		client.run(connection, 20+rand.IntN(200), child.Process)
		_ = child.Wait()
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
		bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w := &writer{t, bq, nil, client.ids}
		visible, _ := bq.NumRows("d.t")
		if visible <= client.flushed || visible > client.end+rowsPerAppend {
			t.Errorf("%d rows are visible: flushed up to %d, appended %d", visible, client.flushed, client.end)
		}
		w.holds(upTo(visible)...)
		w.accounted()
		if gaps, err := bq.Audit().Gaps(client.stream); err != nil || len(gaps) != 0 {
			t.Errorf("gaps %v, %v", gaps, err)
		}
		if err := bq.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rows of one stream, flushed up to %d, over %d kills", client.end, client.flushed, rounds)
}

func upTo(n int64) (out []int) {
	for i := range n {
		out = append(out, int(i))
	}
	return out
}

const rowsPerAppend = 3

// bufferedClient writes rows that count up to one stream.
type bufferedClient struct {
	t       *testing.T
	ids     *rowType
	stream  string
	end     int64 // acknowledged
	flushed int64 // the last offset whose flush was acknowledged
}

// run appends and flushes until the service has answered so many calls, then kills it in the middle of another.
func (b *bufferedClient) run(c *storage.BigQueryWriteClient, answers int, victim *os.Process) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // the client repeats a flush for as long as it may
	defer cancel()
	if b.stream == "" {
		s, err := c.CreateWriteStream(ctx, &storagepb.CreateWriteStreamRequest{
			Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_BUFFERED},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		b.stream = s.GetName()
	}
	call, err := c.AppendRows(ctx)
	for n := 0; err == nil; n++ {
		if n == answers {
			go func() {
				_ = victim.Kill()
				cancel()
			}()
		}
		if n%5 == 4 && b.end > b.flushed+1 {
			err = b.flush(ctx, c)
		} else {
			err = b.append(call)
		}
	}
	if n := status.Code(err); n != codes.Unavailable && n != codes.Canceled && !errors.Is(err, context.Canceled) {
		b.t.Errorf("the client ended with %v", err)
	}
}

func (b *bufferedClient) append(call storagepb.BigQueryWrite_AppendRowsClient) error {
	if err := call.Send(at(b.ids.first(b.t, b.stream, rows(int(b.end), rowsPerAppend)...), b.end)); err != nil {
		_, err := call.Recv()
		return err
	}
	r, err := call.Recv()
	if err != nil {
		return err
	}
	switch code := codes.Code(r.GetError().GetCode()); code {
	case codes.OK, codes.AlreadyExists: // or written before the last kill, unheard
		b.end += rowsPerAppend
		return nil
	default:
		return fmt.Errorf("append at %d: %v", b.end, r.GetError())
	}
}

func (b *bufferedClient) flush(ctx context.Context, c *storage.BigQueryWriteClient) error {
	_, err := c.FlushRows(ctx, &storagepb.FlushRowsRequest{WriteStream: b.stream, Offset: wrapperspb.Int64(b.end - 1)})
	if err == nil || status.Code(err) == codes.AlreadyExists {
		b.flushed = b.end - 1
		return nil
	}
	return err
}
