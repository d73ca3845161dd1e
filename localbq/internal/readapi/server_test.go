package readapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the service over a store with the dataset p:d, and the official client.
type fixture struct {
	testing.TB
	store  *store.Store
	clock  *clock.Manual
	client *bqstorage.BigQueryReadClient
}

func setup(t testing.TB, change ...func(*Deps)) *fixture {
	manual := clock.NewManual(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	kept, err := store.Open(store.Options{Clock: manual})
	if err != nil {
		t.Fatal(err)
	}
	deps := Deps{Store: kept, Clock: manual, NoQueries: "tests of this room have no engine", Seed: 1}
	for _, c := range change {
		c(&deps)
	}
	face, server := New(deps), grpc.NewServer()
	face.Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // joined in the cleanup
	client, err := bqstorage.NewBigQueryReadClient(t.Context(), option.WithEndpoint(listener.Addr().String()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Stop()
		<-served
		face.Close()
		kept.Close()
	})
	if _, err := kept.CreateDataset(store.DatasetRef{Project: "p", Dataset: "d"}, store.DatasetOptions{}); err != nil {
		t.Fatal(err)
	}
	return &fixture{t, kept, manual, client}
}

const tablePath = "projects/p/datasets/d/tables/t"

var tableRef = store.TableRef{Project: "p", Dataset: "d", Table: "t"}

// table makes p:d.t with these columns.
func (f *fixture) table(fields ...*schema.Field) {
	f.Helper()
	if _, err := f.store.CreateTable(tableRef, &schema.Definition{Schema: &schema.Schema{Fields: fields}}); err != nil {
		f.Fatal(err)
	}
}

// write adds rows, a JSON array in Arrow's form, to p:d.t.
func (f *fixture) write(rows string) {
	f.Helper()
	t, err := f.store.Table(tableRef)
	if err != nil {
		f.Fatal(err)
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, t.Info().Schema.Arrow(), strings.NewReader(rows))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := t.Write(store.Rows{Info: t.Info(), Batches: []arrow.RecordBatch{b}}); err != nil {
		f.Fatal(err)
	}
}

// numbers makes p:d.t with rows {n: 0, s: "row 0"} … .
func (f *fixture) numbers(n int) {
	f.Helper()
	f.table(&schema.Field{Name: "n", Type: schema.Int64, Mode: schema.Required}, &schema.Field{Name: "s", Type: schema.String})
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"n": %d, "s": "row %d"}`, i, i)
	}
	if n > 0 {
		f.write("[" + b.String()[1:] + "]")
	}
}

// avroSession asks for a session in Avro; change edits the request.
func avroSession(change ...func(*storagepb.CreateReadSessionRequest)) *storagepb.CreateReadSessionRequest {
	r := &storagepb.CreateReadSessionRequest{
		Parent:      "projects/p",
		ReadSession: &storagepb.ReadSession{Table: tablePath, DataFormat: storagepb.DataFormat_AVRO, ReadOptions: &storagepb.ReadSession_TableReadOptions{}},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func inArrow(r *storagepb.CreateReadSessionRequest) {
	r.ReadSession.DataFormat = storagepb.DataFormat_ARROW
}

func selecting(fields ...string) func(*storagepb.CreateReadSessionRequest) {
	return func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.ReadOptions.SelectedFields = fields }
}

func (f *fixture) session(r *storagepb.CreateReadSessionRequest) *storagepb.ReadSession {
	f.Helper()
	s, err := f.client.CreateReadSession(f.Context(), r)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// read is all responses of a stream from an offset on.
func (f *fixture) read(stream string, offset int64) ([]*storagepb.ReadRowsResponse, error) {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	call, err := f.client.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: stream, Offset: offset})
	if err != nil {
		return nil, err
	}
	var out []*storagepb.ReadRowsResponse
	for {
		r, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
}

// refused checks a status.
func refused(t testing.TB, err error, code codes.Code, message string) {
	t.Helper()
	if s := status.Convert(err); s.Code() != code || s.Message() != message {
		t.Errorf("got %v %q\nwant %v %q", s.Code(), s.Message(), code, message)
	}
}
