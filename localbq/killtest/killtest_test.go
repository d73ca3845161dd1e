package killtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

// The test binary is the client and the service too. A careful client notes its progress once an append is acknowledged, a
// hasty one before.
const (
	role      = "KILLTEST_ROLE"
	rest      = "KILLTEST_REST"
	endpoint  = "KILLTEST_GRPC"
	state     = "KILLTEST_DIR"
	manner    = "KILLTEST_MANNER"
	lastWords = "KILLTEST_LAST_WORDS" // the append behind which a client does nothing more until it is killed

	careful, hasty = "careful", "hasty"

	appends = 3
)

func TestMain(m *testing.M) {
	roles := map[string]func(context.Context) error{"client": client, "exact": exactClient, "storage": storageClient, "service": service}
	play := roles[os.Getenv(role)]
	if play == nil {
		os.Exit(m.Run())
	}
	if err := play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(r string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), role+"="+r, "GORACE=atexit_sleep_ms=0"), env...)
	return cmd
}

func service(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	bq, err := localbq.Start(ctx, localbq.Config{Project: "p", AutoCreateDataset: true, Sync: localbq.SyncAlways,
		Dir: os.Getenv(state), RESTAddr: os.Getenv(rest), GRPCAddr: os.Getenv(endpoint), SinglePort: os.Getenv(endpoint) == ""})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return bq.Close()
}

func makeTable(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	if err := bq.CreateTable("p.d.t", &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{{Name: "id", Type: "INT64"}}}); err != nil {
		t.Fatal(err)
	}
}

func client(ctx context.Context) error {
	c, err := managedwriter.NewClient(ctx, "p", here()...)
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := c.NewManagedStream(ctx, managedwriter.WithDestinationTable(tablePath), managedwriter.WithSchemaDescriptor(descriptor))
	if err != nil {
		return err
	}
	defer w.Close()
	progress := filepath.Join(os.Getenv(state), "progress")
	for i, err := read(progress); i < appends; i++ {
		if err != nil {
			return err
		}
		if os.Getenv(manner) == hasty {
			err = write(progress, i+1)
		}
		if err == nil {
			err = appendRow(ctx, w, i)
		}
		if err == nil {
			err = write(progress, i+1)
		}
		if err != nil {
			return err
		}
		if os.Getenv(lastWords) == strconv.Itoa(i+1) {
			return untilKilled(ctx)
		}
	}
	return nil
}

func untilKilled(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	<-ctx.Done()
	return context.Cause(ctx)
}

const tablePath = "projects/p/datasets/d/tables/t"

var descriptor = &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{{
	Name: new("id"), Number: new(int32(1)),
	Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
}}}

// here is how to reach the service.
func here() []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(os.Getenv(endpoint)), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
}

// exactClient writes each row once: into a buffered stream that it keeps the name of, at the offset that is the row's number,
// and shows it before it notes its progress. That something is there already is as good as having done it.
func exactClient(ctx context.Context) error {
	c, err := storage.NewBigQueryWriteClient(ctx, here()...)
	if err != nil {
		return err
	}
	defer c.Close()
	name, err := ownStream(ctx, c)
	if err != nil {
		return err
	}
	call, err := c.AppendRows(ctx)
	if err != nil {
		return err
	}
	progress := filepath.Join(os.Getenv(state), "progress")
	for i, err := read(progress); i < appends; i++ {
		if err == nil {
			err = appendAt(call, name, i)
		}
		if err == nil {
			_, err = c.FlushRows(ctx, &storagepb.FlushRowsRequest{WriteStream: name, Offset: wrapperspb.Int64(int64(i))})
		}
		if err == nil || status.Code(err) == codes.AlreadyExists {
			err = write(progress, i+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownStream is the stream that an earlier run made, or a new one. A run that is killed in between leaves one without rows.
func ownStream(ctx context.Context, c *storage.BigQueryWriteClient) (string, error) {
	path := filepath.Join(os.Getenv(state), "stream")
	if name, err := os.ReadFile(path); err == nil {
		return string(name), nil
	}
	s, err := c.CreateWriteStream(ctx, &storagepb.CreateWriteStreamRequest{
		Parent: tablePath, WriteStream: &storagepb.WriteStream{Type: storagepb.WriteStream_BUFFERED}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path+".new", []byte(s.GetName()), 0o600); err != nil {
		return "", err
	}
	return s.GetName(), os.Rename(path+".new", path)
}

// appendAt appends row i at offset i.
func appendAt(call storagepb.BigQueryWrite_AppendRowsClient, name string, i int) error {
	if err := call.Send(&storagepb.AppendRowsRequest{
		WriteStream: name, Offset: wrapperspb.Int64(int64(i)),
		Rows: &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{
			WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: descriptor}, Rows: &storagepb.ProtoRows{SerializedRows: [][]byte{row(i)}},
		}},
	}); err != nil && !errors.Is(err, io.EOF) { // Recv knows why it is over
		return err
	}
	r, err := call.Recv()
	if err != nil {
		return err
	}
	if s := status.FromProto(r.GetError()); s.Code() != codes.AlreadyExists {
		return s.Err()
	}
	return nil
}

func row(i int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
}

func read(path string) (int, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

func write(path string, n int) error {
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(n)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func appendRow(ctx context.Context, w *managedwriter.ManagedStream, i int) error {
	r, err := w.AppendRows(ctx, [][]byte{row(i)})
	if err != nil {
		return err
	}
	_, err = r.GetResult(ctx)
	return err
}

func TestClient(t *testing.T) {
	killtest.Test{
		Config:  localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: makeTable,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			how := cmp.Or(os.Getenv(manner), careful)
			return command("client", endpoint+"="+bq.GRPC(), state+"="+dir, manner+"="+how, lastWords+"="+lastAppend(t, how))
		},
		Check:   everyRow,
		Methods: []string{"AppendRows"},
	}.Run(t)
}

// lastAppend is the append behind whose answer a hasty client is to be killed, "" for others. It might come to the next one before it
// dies, or might not: noted, and lost, or neither. So it rests. The point is the name of the test.
func lastAppend(t testing.TB, how string) string {
	n, phase, _ := strings.Cut(strings.TrimPrefix(path.Base(t.Name()), "AppendRows:"), ":")
	if how != hasty || phase != string(localbq.PhaseAnswered) {
		return ""
	}
	return n
}

func everyRow(t testing.TB, bq *localbq.Instance) {
	got, err := bq.Audit().ExactlyOnce("p.d.t", "id", []string{"0", "1", "2"})
	if err != nil || len(got.Missing) > 0 || len(got.Extra) > 0 { // the client writes at least once
		t.Errorf("rows %+v, %v", got, err)
	}
}

// onceEach requires every row once.
func onceEach(t testing.TB, bq *localbq.Instance) {
	got, err := bq.Audit().ExactlyOnce("p.d.t", "id", []string{"0", "1", "2"})
	if err != nil || !got.OK() {
		t.Errorf("rows %+v, %v", got, err)
	}
}

func TestExactClient(t *testing.T) {
	killtest.Test{
		Config:  localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: makeTable,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return command("exact", endpoint+"="+bq.GRPC(), state+"="+dir)
		},
		Check: onceEach,
	}.Run(t)
}

// A client that goes on with what it kept writes each row once however often it dies, wherever that is.
func TestExactClientAgainAndAgain(t *testing.T) {
	k := killtest.Test{
		Config:  localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: makeTable,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return command("exact", endpoint+"="+bq.GRPC(), state+"="+dir)
		},
		Check: onceEach, Deaths: 3, SampleSeed: 1,
	}
	t.Run("instants", func(t *testing.T) { k.RunAtInstants(t, 6) })
	k.Sample = 3
	t.Run("calls", k.Run)
}

// failing runs a test of this package in a process of its own, with clients of a manner, and answers what it says: it has to fail.
func failing(t *testing.T, test, how string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), manner+"="+how)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Fatalf("the suite let a client pass that it has to find out: %v\n%s", err, out)
	}
	return string(out)
}

// The service is killed at the same points, and loses nothing that it has acknowledged; streams, offsets and cursors neither.
func TestServer(t *testing.T) {
	methods := map[string][]string{
		"client": {"AppendRows"},
		"exact":  {"AppendRows", "FlushRows"}, // the official client waits up to 10 s before it asks for a stream again
	}
	for name, check := range map[string]func(testing.TB, *localbq.Instance){"client": everyRow, "exact": onceEach} {
		t.Run(name, func(t *testing.T) {
			k := killtest.ServerTest{
				Prepare: makeTable,
				Server: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
					return command("service", state+"="+dir, rest+"="+at.REST, endpoint+"="+at.GRPC)
				},
				Client: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
					return command(name, state+"="+dir, endpoint+"="+at.GRPC, manner+"="+careful)
				},
				Check: func(t testing.TB, bq *localbq.Instance) {
					check(t, bq)
					lost, err := bq.Audit().AckedNotVisible("p.d.t")
					if err != nil || len(lost) > 0 {
						t.Errorf("acknowledged and lost: %v, %v", lost, err)
					}
				},
				Methods: methods[name],
			}
			k.Run(t)
			k.Both, k.Deaths = true, 2
			t.Run("both", func(t *testing.T) { k.RunAtInstants(t, 2) })
		})
	}
}

// A client that loses rows is found out, at the points where it does and at no others.
func TestHastyClient(t *testing.T) {
	out := failing(t, "TestClient", hasty)
	for n := 1; n <= appends; n++ {
		for phase, fails := range map[string]bool{"receive": true, "applied": false, "answered": false} {
			verdict := map[bool]string{true: "FAIL", false: "PASS"}[fails]
			if want := fmt.Sprintf("--- %s: TestClient/at/AppendRows:%d:%s ", verdict, n, phase); !strings.Contains(out, want) {
				t.Errorf("expected %q in\n%s", want, out)
			}
		}
	}
}
