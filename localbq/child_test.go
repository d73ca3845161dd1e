package localbq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/millrace-dev/millrace/localbq"
)

const childFolder = "MILLRACE_LOCALBQ_CHILD"

// serveAsChild serves a folder for ever, in the process that the kill test starts, and prints where.
func serveAsChild() bool {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return false
	}
	bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir, AutoCreateDataset: true})
	if err != nil {
		fmt.Println("failed", err)
		return true
	}
	if _, err := bq.NumRows("d.t"); err != nil {
		err = bq.CreateTable("d.t", &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{column("id", "INTEGER")}})
		if err != nil {
			fmt.Println("failed", err)
			return true
		}
	}
	fmt.Println("serving", bq.GRPC())
	fmt.Println("rest", bq.REST())
	fmt.Println("storage", bq.GCS())
	select {}
}

// serveChild starts a process that serves a folder, and connects to it. The test kills it and waits for it.
func serveChild(t *testing.T, dir string) (*exec.Cmd, *storage.BigQueryWriteClient) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, serving := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !serving {
		t.Fatalf("the child says %q, %v", line, err)
	}
	client, err := storage.NewBigQueryWriteClient(context.Background(), option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	return child, client
}
