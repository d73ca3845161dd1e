package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// In the environment, these make this test program the job or the service, and say which.
const (
	roleKey    = "MILLRACE_E2E_ROLE"
	dirKey     = "MILLRACE_E2E_DIR"
	restKey    = "MILLRACE_E2E_REST"
	grpcKey    = "MILLRACE_E2E_GRPC"
	storageKey = "MILLRACE_E2E_STORAGE"
	methodKey  = "MILLRACE_E2E_METHOD"
	lanesKey   = "MILLRACE_E2E_LANES"
	restartKey = "MILLRACE_E2E_RESTARTS"
)

func TestMain(m *testing.M) {
	play, ok := map[string]func(context.Context) error{"job": runJob, "service": runService, "source": runSource}[os.Getenv(roleKey)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// as is the command that plays a role.
func as(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// Without the option, programs under the race detector wait a second before they exit.
	cmd.Env = append(append(os.Environ(), roleKey+"="+role, "GORACE=atexit_sleep_ms=0"), env...)
	return cmd
}

// config is of the service, in this process or another: no dataset is there.
func config() localbq.Config { return localbq.Config{Project: "p", AutoCreateDataset: true} }

// runService serves the folder until it is interrupted.
func runService(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	c := config()
	c.Dir, c.RESTAddr, c.GRPCAddr, c.GCSAddr = os.Getenv(dirKey), os.Getenv(restKey), os.Getenv(grpcKey), os.Getenv(storageKey)
	bq, err := localbq.Start(ctx, c)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return bq.Close()
}
