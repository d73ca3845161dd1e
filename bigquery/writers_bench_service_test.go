package bigquery

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// benchService is a local service with tables that keep nothing, in this process or apart from it.
type benchService struct {
	connection Connection
	tables     []table.Destination
	// arrived tells how many rows all tables have together, and the processor time of a service that is apart.
	arrived func() (rows int64, cpu time.Duration)
}

func startBenchService(b *testing.B, s *table.Schema, tables int, apart bool) *benchService {
	b.Helper()
	service := &benchService{}
	for i := range tables {
		service.tables = append(service.tables, table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprintf("t%d", i)})
	}
	if apart {
		service.startApart(b, s)
		return service
	}
	bq, err := newBenchInstance(s, tables)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bq.Close() })
	service.connection = Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}
	service.arrived = func() (int64, time.Duration) {
		rows, err := benchRows(bq, tables)
		if err != nil {
			b.Fatal(err)
		}
		return rows, 0
	}
	return service
}

func newBenchInstance(s *table.Schema, tables int) (*localbq.Instance, error) {
	bq, err := startBenchInstance(context.Background())
	if err != nil {
		return nil, err
	}
	err = bq.CreateDataset("d")
	for i := range tables {
		if err == nil {
			err = bq.CreateTable(fmt.Sprintf("d.t%d", i), tableadmin.ToREST(s))
		}
	}
	return bq, err
}

// startBenchInstance starts a service that counts rows and keeps none.
func startBenchInstance(ctx context.Context) (*localbq.Instance, error) {
	return localbq.Start(ctx, localbq.Config{Project: "p", AutoCreateDataset: true, Modes: map[string]localbq.Mode{"*": localbq.ModeNull},
		Audit: localbq.AuditOptions{CountsOnly: true}})
}

func benchRows(bq *localbq.Instance, tables int) (all int64, err error) {
	for i := range tables {
		n, err := bq.NumRows(fmt.Sprintf("d.t%d", i))
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// clientOptions are those of the official client.
func (s *benchService) clientOptions() []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(s.connection.GRPCEndpoint), option.WithoutAuthentication(), option.WithTelemetryDisabled(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

const benchServiceVariable = "MILLRACE_BENCH_SERVICE"

// startApart starts the service in a process of its own. It answers every line on its standard input with one, and ends with
// the last.
func (s *benchService) startApart(b *testing.B, schema *table.Schema) {
	b.Helper()
	setup, err := json.Marshal(benchSetup{schema, len(s.tables)})
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestBenchService$")
	child.Env = append(os.Environ(), benchServiceVariable+"="+string(setup))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := child.Wait(); err != nil {
			b.Errorf("the service: %v", err)
		}
	})
	answers := bufio.NewReader(out)
	line := func() (first, second string) {
		text, err := answers.ReadString('\n')
		fields := strings.Fields(text)
		if err != nil || len(fields) != 2 {
			b.Fatalf("the service says %q, %v", text, err)
		}
		return fields[0], fields[1]
	}
	s.connection.RESTEndpoint, s.connection.GRPCEndpoint = line()
	s.arrived = func() (int64, time.Duration) {
		_, failed := io.WriteString(in, "\n")
		first, second := line()
		rows, err := strconv.ParseInt(first, 10, 64)
		cpu, e := strconv.ParseInt(second, 10, 64)
		if failed != nil || err != nil || e != nil {
			b.Fatalf("the service says %q %q: %v, %v, %v", first, second, failed, err, e)
		}
		return rows, time.Duration(cpu)
	}
}

type benchSetup struct {
	Schema *table.Schema
	Tables int
}

// TestBenchService is no test: it is the service of BenchmarkWriters.
func TestBenchService(t *testing.T) {
	text := os.Getenv(benchServiceVariable)
	if text == "" {
		return
	}
	var setup benchSetup
	if err := json.Unmarshal([]byte(text), &setup); err != nil {
		t.Fatal(err)
	}
	bq, err := newBenchInstance(setup.Schema, setup.Tables)
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	fmt.Println(bq.REST(), bq.GRPC())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		rows, err := benchRows(bq, setup.Tables)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(rows, int64(processorTime()))
	}
}
