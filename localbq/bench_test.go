package localbq_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/localbq"
)

// encoded is a request that is marshalled already: the client's own work is left out of the figures as far as it goes.
type encoded struct{ bytes []byte }

type passthrough struct{}

func (passthrough) Name() string { return "proto" }
func (passthrough) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*encoded).bytes)}, nil
}
func (passthrough) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

// BenchmarkAppend pushes requests of rows of 100 bytes over two connections as fast as they are answered.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []localbq.Mode{localbq.ModeNull, localbq.ModeValidate, localbq.ModeStore} {
		for _, rows := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s/%d_rows", mode, rows), func(b *testing.B) {
				benchmarkAppend(b, localbq.Config{Modes: map[string]localbq.Mode{"*": mode}, Audit: localbq.AuditOptions{CountsOnly: true}}, rows)
			})
		}
	}
	b.Run("store_digests/500_rows", func(b *testing.B) { benchmarkAppend(b, localbq.Config{}, 500) })
	b.Run("store_folder/500_rows", func(b *testing.B) { benchmarkAppend(b, localbq.Config{Dir: b.TempDir()}, 500) })
	b.Run("store_folder_always/500_rows", func(b *testing.B) {
		benchmarkAppend(b, localbq.Config{Dir: b.TempDir(), Sync: localbq.SyncAlways}, 500)
	})
}

func benchmarkAppend(b *testing.B, c localbq.Config, rows int) {
	bq := start(b, c)
	makeTable(b, bq, "d.t", column("id", "INTEGER", "REQUIRED"), column("name", "STRING"), column("score", "FLOAT"), column("at", "TIMESTAMP"), column("note", "STRING"))
	r := describe(b, "id int64", "name string", "score double", "at int64", "note string")
	row := r.rows(b, `id: 123456789 name: "a name of some length" score: 0.25 at: 1785027723456789 note: "`+strings.Repeat("x", 50)+`"`)[0]
	q := r.first(b, stream("d.t"))
	for range rows {
		q.GetProtoRows().GetRows().SerializedRows = append(q.GetProtoRows().GetRows().SerializedRows, row)
	}
	first := marshal(b, q)
	q.GetProtoRows().WriterSchema, q.WriteStream = nil, ""
	next := marshal(b, q)

	conn, err := grpc.NewClient(bq.GRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(passthrough{})))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	const calls = 2
	requests := make(chan struct{}, 64)
	var done sync.WaitGroup
	for range calls {
		done.Go(func() { push(b, conn, requests, first, next) })
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		requests <- struct{}{}
	}
	close(requests)
	done.Wait()
	b.StopTimer()
	b.SetBytes(int64(rows * len(row)))
	b.ReportMetric(float64(b.N)*float64(rows)/b.Elapsed().Seconds(), "rows/s")
	if got, err := bq.NumRows("d.t"); err != nil || got != int64(rows)*(int64(b.N)+calls) {
		b.Errorf("%d rows landed, %v, want %d", got, err, int64(rows)*(int64(b.N)+calls))
	}
}

// push sends a request for each token, with up to 32 on the way, and one to begin with.
func push(b *testing.B, conn *grpc.ClientConn, tokens <-chan struct{}, first, next []byte) {
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, storagepb.BigQueryWrite_AppendRows_FullMethodName)
	if err != nil {
		b.Error(err)
		return
	}
	open := make(chan struct{}, 32)
	received := make(chan struct{})
	go func() {
		defer close(received)
		for {
			r := &storagepb.AppendRowsResponse{}
			err := stream.RecvMsg(r)
			if err == io.EOF {
				return
			}
			if err != nil || r.GetError() != nil {
				b.Errorf("answer %v, %v", r, err)
				return
			}
			<-open
		}
	}()
	message := &encoded{first}
	send := func() {
		open <- struct{}{}
		if err := stream.SendMsg(message); err != nil {
			b.Error(err)
		}
		message = &encoded{next}
	}
	send()
	for range tokens {
		send()
	}
	if err := stream.CloseSend(); err != nil {
		b.Error(err)
	}
	<-received
}

func marshal(b *testing.B, m proto.Message) []byte {
	out, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return out
}
