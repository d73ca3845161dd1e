package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

// defaultFolder is where a local BigQuery keeps its data unless told otherwise.
const defaultFolder = ".millrace"

// localFlag is --local[=DIR].
type localFlag struct{ dir string }

func (f *localFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "local", "", "use a local BigQuery in this process, with its data in `DIR`")
	cmd.Flags().Lookup("local").NoOptDefVal = defaultFolder
}

func (f localFlag) on() bool { return f.dir != "" }

// flag is how to type it again.
func (f localFlag) flag() string {
	switch f.dir {
	case "":
		return ""
	case defaultFolder:
		return " --local"
	}
	return " --local=" + shellWord(f.dir)
}

// localBigQuery is a service in this process.
type localBigQuery struct{ *localbq.Instance }

func (l localBigQuery) connection() *bigquery.Connection {
	return &bigquery.Connection{GRPCEndpoint: l.GRPC(), RESTEndpoint: l.REST(), StorageEndpoint: l.GCS()}
}

// makeBucket makes the bucket that a job stages files in, as datasets are made with --local.
func (l localBigQuery) makeBucket(f job.File) error {
	bucket := f.Sink.BigQuery.FileLoads.Bucket()
	if bucket == "" {
		return nil
	}
	return l.CreateBucket(bucket)
}

func (a *app) startLocal(ctx context.Context, f localFlag) (localBigQuery, error) {
	i, err := a.serveLocal(ctx, localbq.Config{Dir: f.dir, AutoCreateDataset: true})
	return localBigQuery{i}, err
}

func (a *app) serveLocal(ctx context.Context, c localbq.Config) (*localbq.Instance, error) {
	queries, err := duckdb.New()
	if err != nil {
		a.log().Warn("the local BigQuery cannot run queries", "reason", err)
	} else {
		c.Queries = queries
	}
	c.Logger = a.log()
	i, err := localbq.Start(ctx, c)
	if err != nil && queries != nil {
		err = errors.Join(err, queries.Close())
	}
	return i, err
}

func (a *app) local() *cobra.Command {
	var c localbq.Config
	var faults, ready, clock, profile, deny string
	var rules []localbq.Fault
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Serve a local BigQuery",
		Long: `local serves a BigQuery on this machine until it is interrupted: the REST API, the Storage Write API, the Storage
Read API and what staging and loading need of Cloud Storage, for the official clients as they are. It listens on the
loopback interface unless told otherwise and checks no credentials: an address of another interface opens it to
everybody there, which is logged, and "exposed" in the ready file names the listeners. Web pages are refused.

Without --dir the data is gone when it ends.`,
		Example: `  millrace local
  millrace local --dir .millrace --rest 127.0.0.1:8050 --grpc 127.0.0.1:8060
  millrace local --ready-file ready.json & until [ -s ready.json ]; do :; done`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setTimes(&c, clock, profile); err != nil {
				return err
			}
			if faults != "" {
				text, err := os.ReadFile(faults)
				if err != nil {
					return usagef("--faults: %w", err)
				}
				if rules, err = localbq.ParseFaults(text); err != nil {
					return usagef("--faults %s: %w", faults, err)
				}
			}
			if deny != "" {
				text, err := os.ReadFile(deny)
				if err != nil {
					return usagef("--deny: %w", err)
				}
				if c.Deny, err = localbq.ParseDenials(text); err != nil {
					return usagef("--deny %s: %w", deny, err)
				}
			}
			return a.serve(cmd.Context(), c, rules, ready)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "", "folder to keep the data in (default: memory)")
	f.StringVar(&c.Project, "project", localbq.DefaultProject, "project of tables that are named without one")
	f.StringVar(&c.RESTAddr, "rest", "127.0.0.1:9050", "address of the REST API; port 0 picks a free one")
	f.StringVar(&c.GRPCAddr, "grpc", "127.0.0.1:9060", "address of the Storage Read and Write APIs; port 0 picks a free one")
	f.StringVar(&c.GCSAddr, "storage", "127.0.0.1:9070", "address of Cloud Storage; port 0 picks a free one")
	f.StringArrayVar(&c.Hosts, "allow-host", nil, "a `name` with dots that HTTP clients may call it by, again for each; addresses and localhost always may")
	f.StringVar(&clock, "clock", "real", "real, manual (moved by POST /local/v1/clock/advance), or how many times as fast as the machine's it runs")
	f.StringVar(&profile, "profile", "friendly", "friendly, or service: with BigQuery's windows of propagation and its quotas")
	f.StringVar(&faults, "faults", "", "`file` of fault rules, a JSON array")
	f.StringVar(&deny, "deny", "", "`file` of permissions to refuse, a JSON array of principal, permission and resource, each of which may be left out")
	f.StringVar(&ready, "ready-file", "", "`file` to write the endpoints to, as JSON, once they answer")
	f.BoolVar(&c.AutoCreateDataset, "create-datasets", true, "make a dataset when a table is created in it")
	return cmd
}

// setTimes reads --clock and --profile.
func setTimes(c *localbq.Config, clock, profile string) error {
	switch profile {
	case "friendly":
	case "service":
		c.Profile = localbq.ServiceProfile()
	default:
		return usagef("--profile %q: expected friendly or service", profile)
	}
	switch clock {
	case "real":
		return nil
	case "manual":
		c.Clock = localbq.NewManualClock()
		return nil
	}
	factor, err := strconv.ParseFloat(clock, 64)
	if err != nil || !(factor > 0) || factor > 1e6 {
		return usagef("--clock %q: expected real, manual, or a number above 0 and up to 1000000", clock)
	}
	c.Clock = localbq.ScaledClock(factor)
	return nil
}

// endpoints is what --ready-file holds.
type endpoints struct {
	REST    string `json:"rest"`
	GRPC    string `json:"grpc"`
	Storage string `json:"storage"`
	Project string `json:"project"`
	// Exposed names the listeners that others than this machine can reach.
	Exposed []string `json:"exposed,omitempty"`
}

func (a *app) serve(ctx context.Context, c localbq.Config, rules []localbq.Fault, ready string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.RESTAddr, c.GRPCAddr, c.GCSAddr = loopback(c.RESTAddr), loopback(c.GRPCAddr), loopback(c.GCSAddr)
	i, err := a.serveLocal(ctx, c)
	if err != nil {
		return err
	}
	if err := i.Faults().Add(rules...); err != nil {
		return errors.Join(usagef("--faults: %w", err), i.Close())
	}
	e := endpoints{REST: i.REST(), GRPC: i.GRPC(), Storage: i.GCS(), Project: i.Project(), Exposed: i.Exposed()}
	if err := a.announce(e, c.Dir, ready); err != nil {
		return errors.Join(err, i.Close())
	}
	<-ctx.Done()
	a.say("millrace: closing\n")
	if ready != "" {
		if err = os.Remove(ready); errors.Is(err, fs.ErrNotExist) {
			err = nil // whoever waited for it has taken it away
		}
	}
	return errors.Join(err, i.Close())
}

// announce tells where the service is: to people, and to whoever waits for the ready file.
func (a *app) announce(e endpoints, dir, ready string) error {
	a.say(`local BigQuery, project %s, data in %s

  REST API                    http://%s
  Storage Read and Write API  %s
  Cloud Storage               http://%s

Point clients at it:
  export BIGQUERY_EMULATOR_HOST=http://%s   # Python, Node
  export STORAGE_EMULATOR_HOST=%s          # Go; http://%s elsewhere
  Go: option.WithEndpoint("http://%s"), option.WithoutAuthentication()
  millrace query 'SELECT 1' --project %s --rest-endpoint %s --grpc-endpoint %s

Interrupt to end it.
`, e.Project, cmp.Or(dir, "memory"), e.REST, e.GRPC, e.Storage, e.REST, e.Storage, e.Storage, e.REST, shellWord(e.Project), e.REST, e.GRPC)
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "%s\n", text); err != nil {
		return err
	}
	if ready == "" {
		return nil
	}
	return replace(ready, nil, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
