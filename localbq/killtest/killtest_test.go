package killtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/managedwriter"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

// The test binary is the client and the service too. A careful client notes its progress once an append is acknowledged, a
// hasty one before.
const (
	role     = "KILLTEST_ROLE"
	rest     = "KILLTEST_REST"
	endpoint = "KILLTEST_GRPC"
	state    = "KILLTEST_DIR"
	manner   = "KILLTEST_MANNER"

	careful, hasty = "careful", "hasty"

	appends = 3
)

func TestMain(m *testing.M) {
	roles := map[string]func(context.Context) error{"client": client, "service": service}
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
		Dir: os.Getenv(state), RESTAddr: os.Getenv(rest), GRPCAddr: os.Getenv(endpoint)})
	if err != nil {
		return err
	}
	if _, err := bq.NumRows("d.t"); err != nil {
		if err := bq.CreateTable("d.t", ids); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return bq.Close()
}

var ids = &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{{Name: "id", Type: "INT64"}}}

func client(ctx context.Context) error {
	c, err := managedwriter.NewClient(ctx, "p", option.WithEndpoint(os.Getenv(endpoint)), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return err
	}
	defer c.Close()
	column := &descriptorpb.FieldDescriptorProto{Name: new("id"), Number: new(int32(1)),
		Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	w, err := c.NewManagedStream(ctx, managedwriter.WithDestinationTable("projects/p/datasets/d/tables/t"),
		managedwriter.WithSchemaDescriptor(&descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{column}}))
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
	}
	return nil
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
	row := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
	r, err := w.AppendRows(ctx, [][]byte{row})
	if err != nil {
		return err
	}
	_, err = r.GetResult(ctx)
	return err
}

func TestClient(t *testing.T) {
	killtest.Test{
		Config: localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: func(t testing.TB, bq *localbq.Instance) {
			if err := bq.CreateTable("d.t", ids); err != nil {
				t.Fatal(err)
			}
		},
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return command("client", endpoint+"="+bq.GRPC(), state+"="+dir, manner+"="+cmp.Or(os.Getenv(manner), careful))
		},
		Check:   everyRow,
		Methods: []string{"AppendRows"},
	}.Run(t)
}

func everyRow(t testing.TB, bq *localbq.Instance) {
	got, err := bq.Audit().ExactlyOnce("p.d.t", "id", []string{"0", "1", "2"})
	if err != nil || len(got.Missing) > 0 || len(got.Extra) > 0 { // the client writes at least once
		t.Errorf("rows %+v, %v", got, err)
	}
}

// The service is killed at the same points, and loses nothing that it has acknowledged.
func TestServer(t *testing.T) {
	killtest.ServerTest{
		Server: func(_ testing.TB, dir, restAddr, grpcAddr string) *exec.Cmd {
			return command("service", state+"="+dir, rest+"="+restAddr, endpoint+"="+grpcAddr)
		},
		Client: func(_ testing.TB, dir, _, grpcAddr string) *exec.Cmd {
			return command("client", state+"="+dir, endpoint+"="+grpcAddr, manner+"="+careful)
		},
		Check: func(t testing.TB, bq *localbq.Instance) {
			everyRow(t, bq)
			lost, err := bq.Audit().AckedNotVisible("p.d.t")
			if err != nil || len(lost) > 0 {
				t.Errorf("acknowledged and lost: %v, %v", lost, err)
			}
		},
		Methods: []string{"AppendRows"},
	}.Run(t)
}

// A client that loses rows is found out, at the points where it does and at no others.
func TestHastyClient(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestClient$", "-test.v")
	cmd.Env = append(os.Environ(), manner+"="+hasty)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the suite let a client pass that loses rows: %v\n%s", err, out)
	}
	for n := 1; n <= appends; n++ {
		for phase, fails := range map[string]bool{"receive": true, "applied": false, "answered": false} {
			verdict := map[bool]string{true: "FAIL", false: "PASS"}[fails]
			if want := fmt.Sprintf("--- %s: TestClient/at/AppendRows:%d:%s ", verdict, n, phase); !strings.Contains(string(out), want) {
				t.Errorf("expected %q in\n%s", want, out)
			}
		}
	}
}
